//go:build unix

package local

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"golang.org/x/sys/unix"
)

// setlk takes the lock that OpenTofu and Terraform take.
func setlk(f *os.File, typ int16) error {
	l := unix.Flock_t{Type: typ, Whence: io.SeekStart}
	return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &l)
}

// TestChild is not a test. It runs in the processes that other tests start, until its standard
// input ends.
func TestChild(t *testing.T) {
	path := os.Getenv("LOCAL_CHILD_PATH")
	if path == "" {
		t.Skip("only run by other tests")
	}
	stop := make(chan struct{})
	go func() { io.Copy(io.Discard, os.Stdin); close(stop) }()
	switch os.Getenv("LOCAL_CHILD") {
	case "hold": // the lock of OpenTofu or Terraform without an info file
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err == nil {
			err = setlk(f, unix.F_WRLCK)
		}
		fmt.Println("locked", err)
		<-stop
	case "store": // the lock of this package
		unlock, ds := Open(Options{Path: path, Who: "child@there", Now: clock}).Lock(context.Background(), store.LockInfo{Operation: "op"}, 0)
		fmt.Println("locked", ds.Err())
		<-stop
		unlock()
	case "probe": // tries repeatedly, each time by name
		tries, granted, torn := 0, 0, 0
		for {
			select {
			case <-stop:
				fmt.Printf("tries %d granted %d torn %d\n", tries, granted, torn)
				return
			default:
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				torn++
				continue
			}
			tries++
			if setlk(f, unix.F_WRLCK) == nil {
				granted++
			}
			f.Close()
			if b, err := os.ReadFile(path); err != nil || !bytes.HasSuffix(b, []byte("}\n\n")) {
				torn++
			}
			if tries == 1 {
				fmt.Println("started")
			}
		}
	case "wait": // opens the file once and waits for its lock, like tofu -lock-timeout
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		fmt.Println("opened", err)
		for setlk(f, unix.F_WRLCK) != nil {
			time.Sleep(5 * time.Millisecond)
		}
		b, _ := readAt(f)
		have, _ := f.Stat()
		want, _ := os.Stat(path)
		fmt.Printf("same file %v, %s\n", os.SameFile(have, want), strings.Fields(string(b[bytes.Index(b, []byte(`"serial"`)):]))[1])
	case "kill": // writes under the lock until it is killed
		s := Open(Options{Path: path, Who: "child@there", Now: clock})
		if _, ds := s.Lock(context.Background(), store.LockInfo{}, 0); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		for n := 0; ; n++ {
			if ds := s.Write(context.Background(), storetest.Sample(n%50)); ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			fmt.Println("wrote", n%50)
		}
	}
}

type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, mode, path string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "LOCAL_CHILD="+mode, "LOCAL_CHILD_PATH="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *child) line() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the child said nothing more: %v", c.out.Err())
	}
	return c.out.Text()
}

func (c *child) stop() {
	c.in.Close()
	for c.out.Scan() {
	}
	c.cmd.Wait()
}

func newStore(t *testing.T) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	return Open(Options{Dir: dir, Who: "me@here", Now: clock}), filepath.Join(dir, DefaultPath)
}

func lockNow(t *testing.T, s *Store) func() {
	t.Helper()
	unlock, ds := s.Lock(context.Background(), store.LockInfo{Operation: "OperationTypeApply", Version: "1.12.6"}, 0)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return func() {
		t.Helper()
		if ds := unlock(); len(ds) > 0 {
			t.Fatal(ds[0].Detail)
		}
	}
}

func write(t *testing.T, s *Store, n int) {
	t.Helper()
	if ds := s.Write(context.Background(), storetest.Sample(n)); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
}

func TestRefusedByAPeersLock(t *testing.T) {
	s, path := newStore(t)
	write(t, s, 1)
	c := start(t, "hold", path)
	if got := c.line(); got != "locked <nil>" {
		t.Fatal(got)
	}
	_, ds := s.Lock(context.Background(), store.LockInfo{}, 100*time.Millisecond)
	if !ds.HasErrors() || !strings.Contains(ds[0].Detail, "is locked: another process works on it") {
		t.Fatalf("%v", ds.Err())
	}
	if got, ds := s.Read(context.Background()); ds.HasErrors() || got.Serial != 2 {
		t.Errorf("reading: %v", ds.Err())
	}
	go func() { time.Sleep(100 * time.Millisecond); c.in.Close() }()
	unlock, ds := s.Lock(context.Background(), store.LockInfo{}, time.Minute)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	unlock()
}

func TestRefusedByAnotherRun(t *testing.T) {
	s, path := newStore(t)
	c := start(t, "store", path)
	if got := c.line(); got != "locked <nil>" {
		t.Fatal(got)
	}
	_, ds := s.Lock(context.Background(), store.LockInfo{}, 0)
	if !ds.HasErrors() {
		t.Fatal("granted twice")
	}
	info := ds[0].Extra.(*store.LockInfo)
	if info.Who != "child@there" || info.Operation != "op" || info.Path != path || !info.Created.Equal(clock()) {
		t.Errorf("%+v", info)
	}
	c.stop()
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) > 0 {
		t.Errorf("a lock without a write left %v", entries)
	}
}

// During many writes another program is always refused, and a reader that opens the file by
// name sees a complete state. Reading the file in this process in any way does not release the
// lock.
func TestHoldsAtEveryMoment(t *testing.T) {
	t.Run("as on this system", func(t *testing.T) { holds(t, runtime.GOOS == "linux") })
	t.Run("with locks of the process", func(t *testing.T) {
		defer func(c []int) { lockCommands = c }(lockCommands)
		lockCommands = []int{unix.F_SETLK}
		holds(t, false)
	})
}

func holds(t *testing.T, ownReads bool) {
	s, path := newStore(t)
	write(t, s, 3)
	unlock := lockNow(t, s)
	c := start(t, "probe", path)
	c.line()
	for n := range 60 {
		write(t, s, n)
		if _, ds := ReadFile(context.Background(), path); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		if !ownReads {
			continue
		}
		if _, err := os.ReadFile(path); err != nil { // like the function file()
			t.Fatal(err)
		}
	}
	c.in.Close()
	got := c.line()
	var tries, granted, torn int
	fmt.Sscanf(got, "tries %d granted %d torn %d", &tries, &granted, &torn)
	if tries == 0 || granted > 0 || torn > 0 {
		t.Error(got)
	}
	c.stop()
	unlock()
	if got, ds := s.Read(context.Background()); ds.HasErrors() || got.Serial != 60 {
		t.Errorf("%v %v", got, ds.Err())
	}
}

// A process that opened the file before it was written, and waits for the lock on it, gets the
// file that has the name, with the written content.
func TestWhoWaitsGetsTheLastState(t *testing.T) {
	s, path := newStore(t)
	write(t, s, 3)
	unlock := lockNow(t, s)
	c := start(t, "wait", path)
	if got := c.line(); got != "opened <nil>" {
		t.Fatal(got)
	}
	write(t, s, 40)
	write(t, s, 7)
	unlock()
	if got := c.line(); got != "same file true, 8," {
		t.Error(got)
	}
}

func TestKilledWriterLeavesAWholeState(t *testing.T) {
	for round := range 8 {
		s, path := newStore(t)
		write(t, s, 49)
		c := start(t, "kill", path)
		c.line()
		time.Sleep(time.Duration(round*7) * time.Millisecond)
		c.cmd.Process.Kill()
		last := ""
		for c.out.Scan() {
			last = c.out.Text()
		}
		c.cmd.Wait()
		got, ds := s.Read(context.Background())
		if ds.HasErrors() || got == nil {
			t.Fatalf("the state is gone: %v", ds.Err())
		}
		var n int
		if _, err := fmt.Sscanf(last, "wrote %d", &n); err == nil && got.Serial != uint64(n)+1 && got.Serial != uint64(n+1)%50+1 {
			t.Errorf("serial %d after %q", got.Serial, last)
		}
		unlock := lockNow(t, s) // the lock ended with its process, and its files are removed
		write(t, s, 3)
		unlock()
		entries, _ := os.ReadDir(filepath.Dir(path))
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != "terraform.tfstate terraform.tfstate.backup" {
			t.Errorf("left behind: %s", got)
		}
	}
}

func TestTwoUnitsWithOneState(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "shared.tfstate")
	os.Symlink(path, filepath.Join(dir, "link"))
	a := Open(Options{Dir: dir, Path: "shared.tfstate", Unit: "live/a", Now: clock})
	b := Open(Options{Dir: dir, Path: "link", Unit: "live/b", Now: clock})
	unlock := lockNow(t, a)
	_, ds := b.Lock(context.Background(), store.LockInfo{}, time.Minute)
	if !ds.HasErrors() || ds[0].Summary != "Two units with one state" || !strings.Contains(ds[0].Detail, "live/a and live/b") || !strings.Contains(ds[0].Detail, "shared.tfstate") {
		t.Errorf("while a has the lock: %v", ds.Err())
	}
	unlock()
	if a.Place() != b.Place() {
		t.Errorf("a run sees two places, %s and %s", a.Place(), b.Place())
	}
	// A later run of the same process may use another name for the unit.
	lockNow(t, b)()
	lockNow(t, a)() // the same unit again
}

func TestLockInfoAsOpenTofuWritesIt(t *testing.T) {
	s, path := newStore(t)
	unlock, ds := s.Lock(context.Background(), store.LockInfo{ID: "9a873a0c-5374-e1d6-d53f-1bfad98837a2", Operation: "OperationTypeApply", Version: "1.12.6"}, 0)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	defer unlock()
	file := filepath.Join(filepath.Dir(path), ".terraform.tfstate.lock.info")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ID":"9a873a0c-5374-e1d6-d53f-1bfad98837a2","Operation":"OperationTypeApply","Info":"","Who":"me@here","Version":"1.12.6","Created":"2026-11-21T11:25:23.753197909Z","Path":"terraform.tfstate"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}
