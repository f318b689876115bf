package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"golang.org/x/tools/txtar"
)

// TestCommandVectors compares the output and exit status of commands with OpenTofu's answers
// in testdata/vectors/commands. The comment of each archive contains the commands, each on a
// line after "$ ". The file "answer" contains the output on standard output.
//
// With TERRACE_TEST_TOFU, -update runs OpenTofu again.
func TestCommandVectors(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/vectors/commands/*.txtar")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d vectors: %v", len(names), err)
	}
	peer := os.Getenv("TERRACE_TEST_TOFU")
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, want := t.TempDir(), -1
			for i, f := range a.Files {
				if f.Name == "answer" {
					want = i
				}
			}
			if want < 0 {
				a.Files, want = append(a.Files, txtar.File{Name: "answer"}), len(a.Files)
			}
			if peer != "" && *update {
				a.Files[want].Data = []byte(answers(t, a, t.TempDir(), func(dir string, words []string) (string, int) { return askPeer(t, peer, dir, words) }))
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := answers(t, a, dir, askTerrace); got != string(a.Files[want].Data) {
				t.Errorf("is\n%s\nnot\n%s", got, a.Files[want].Data)
			}
		})
	}
}

// answers returns the answers to the commands of a vector, in a directory with its files.
func answers(t *testing.T, a *txtar.Archive, dir string, ask func(dir string, words []string) (out string, status int)) string {
	for _, f := range a.Files {
		if f.Name == "answer" {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for line := range strings.Lines(string(a.Comment)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			continue
		}
		out, status := ask(dir, strings.Fields(command))
		fmt.Fprintf(&b, "$ %s\nstatus %d\n", command, status)
		for line := range strings.Lines(strings.NewReplacer("OpenTofu", "Terrace", "tofu ", "terrace ", dir, "DIR").Replace(out)) {
			b.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
		}
	}
	return b.String()
}

func askPeer(t *testing.T, peer, dir string, words []string) (string, int) {
	c := exec.Command(peer, words...)
	c.Dir, c.Env = dir, append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1")
	out, err := c.Output()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func askTerrace(dir string, words []string) (string, int) {
	var out bytes.Buffer
	status := cli.Main(context.Background(), &sys.System{
		Dir: dir, Env: sys.Env{"HOME=" + dir, "TF_CLI_CONFIG_FILE=" + os.DevNull}, Args: append([]string{"terrace"}, words...),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &bytes.Buffer{}, Now: time.Now, Run: sys.Run,
		Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
		Executable: os.Executable, Host: func() string { return "" }, User: func() string { return "" },
	})
	return out.String(), status
}
