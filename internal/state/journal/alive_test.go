//go:build unix

package journal

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/state"
)

// TestAlive inspects a journal while its run is working, and after the run was killed.
func TestAlive(t *testing.T) {
	if path := os.Getenv("JOURNAL_ALIVE"); path != "" {
		j, err := Create(path, Options{Run: Run{Operation: "apply", Who: "me@here", Process: 7, Since: time.Unix(0, 0)}})
		must(t, err, j.Begin(1, "t.x[0]", "create"), j.Answer(1, []state.Change{set(0, `{}`)}), j.Begin(2, "t.x[1]", "create"))
		os.Stdout.WriteString("ready\n")
		time.Sleep(time.Minute)
	}
	path := filepath.Join(t.TempDir(), "j")
	cmd := exec.Command(os.Args[0], "-test.run=^TestAlive$")
	cmd.Env = append(os.Environ(), "JOURNAL_ALIVE="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	if line != "ready\n" {
		t.Fatal(line)
	}
	rec, err := Inspect(path, nil, User{})
	must(t, err)
	if _, _, ds := Fold(nil, rec); !rec.Live || len(rec.Changes) != 1 || len(ds) != 0 {
		t.Errorf("of a run that is at work: %+v, %v", rec, ds)
	}
	var live *LiveError
	if _, err := TakeOver(path, nil); !errors.As(err, &live) || live.Run.Process != 7 {
		t.Errorf("the journal of a run that is at work was taken over: %v", err)
	}
	must(t, cmd.Process.Kill())
	cmd.Wait()
	rec, err = Inspect(path, nil, User{})
	must(t, err)
	if _, _, ds := Fold(nil, rec); rec.Live || len(ds) != 2 {
		t.Errorf("of a run that was killed: %+v, %v", rec, ds)
	}
	c, err := TakeOver(path, nil)
	must(t, err)
	if _, err := TakeOver(path, nil); !errors.As(err, &live) {
		t.Errorf("two have it: %v", err)
	}
	must(t, c.Discard())
	c.Close()
	if _, err := TakeOver(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
