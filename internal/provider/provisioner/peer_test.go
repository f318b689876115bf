//go:build unix

package provisioner

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// TestPeer runs the same provisioners with OpenTofu and with Terrace against the same kind
// of server, and compares the output and the files on the server.
func TestPeer(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("TERRACE_TEST_TOFU names no OpenTofu to compare with")
	}
	host, _ := newSigner(t)
	_, key := newSigner(t)
	socket := startAgent(t, []string{key})
	tests := []struct {
		name, typ, text string
		config          object
	}{
		{"local", "local-exec", `command = "echo a; printf 'b\\r\\nc'"`, object{"command": str(`echo a; printf 'b\r\nc'`)}},
		{"quiet", "local-exec", "command = \"echo a\"\nquiet = true\ninterpreter = [\"/bin/sh\", \"-ec\"]", object{"command": str("echo a"), "quiet": cty.True, "interpreter": strs("/bin/sh", "-ec")}},
		{"inline", "remote-exec", `inline = ["echo a; printf 'b\\rc'", "cat $0"]`, object{"inline": strs(`echo a; printf 'b\rc'`, "cat $0")}},
		{"shebang", "remote-exec", `inline = ["#!/bin/bash", "basename $BASH"]`, object{"inline": strs("#!/bin/bash", "basename $BASH")}},
		{"file", "file", "source = \"d/f\"\ndestination = \"new\"", object{"source": str("d/f"), "destination": str("new")}},
		{"content", "file", "content = \"x\"\ndestination = \"dest/it's\"", object{"content": str("x"), "destination": str("dest/it's")}},
		{"folder", "file", "source = \"d\"\ndestination = \"dest\"", object{"source": str("d"), "destination": str("dest")}},
		{"contents", "file", "source = \"d/\"\ndestination = \"dest\"", object{"source": str("d/"), "destination": str("dest")}},
		{"new directory", "file", "source = \"d\"\ndestination = \"other\"", object{"source": str("d"), "destination": str("other")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			theirs, ours := startServer(t, host), startServer(t, host)
			dir := t.TempDir()
			for _, d := range []string{filepath.Join(dir, "d/sub"), filepath.Join(theirs.home, "dest"), filepath.Join(ours.home, "dest")} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, mode := range map[string]fs.FileMode{"d/f": 0o600, "d/sub/g.sh": 0o755} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), mode); err != nil {
					t.Fatal(err)
				}
			}
			want := peerLines(t, tofu, dir, socket, tt.typ, tt.text, theirs)
			r := newRun(t, tt.typ, tt.config).over(t, ours, object{"script_path": cty.NullVal(cty.String)})
			r.Dir, r.Env = dir, r.Env.With("SSH_AUTH_SOCK="+socket)
			r.must(t)
			if d := cmp.Diff(want, r.output()); d != "" {
				t.Error("output (-theirs +ours):", d)
			}
			if d := cmp.Diff(tree(t, theirs.home), tree(t, ours.home)); d != "" {
				t.Error("files (-theirs +ours):", d)
			}
			forwards := func(s *server) bool { return slices.Contains(s.asked(), "auth-agent-req@openssh.com") }
			if tt.typ == "remote-exec" && forwards(theirs) != forwards(ours) {
				t.Errorf("they forward the agent: %t; we: %t", forwards(theirs), forwards(ours))
			}
		})
	}
}

var outputLine = regexp.MustCompile(`(?m)^terraform_data\.x \([a-z-]+\): (.*)$`)

func peerLines(t *testing.T, tofu, dir, socket, typ, text string, s *server) (out []string) {
	t.Helper()
	config := fmt.Sprintf(`resource "terraform_data" "x" {
  provisioner %q {
    %s
    connection {
      host     = "127.0.0.1"
      port     = %s
      user     = "tester"
      password = "let me in"
    }
  }
}`, typ, text, s.port())
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	var text2 []byte
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve", "-no-color"}} {
		cmd := exec.Command(tofu, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		var err error
		if text2, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text2)
		}
	}
	for _, m := range outputLine.FindAllSubmatch(text2, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// tree returns the files with mode and size.
func tree(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !info.IsDir() {
			out = append(out, fmt.Sprintf("%s %s %d", strings.TrimPrefix(path, dir), info.Mode(), info.Size()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
