package server_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/lsp/server"
	"golang.org/x/tools/txtar"
)

// explained runs the command explain.
func explained(t *testing.T, dir, address string) string {
	t.Helper()
	system, err := sys.Real()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	system.Dir, system.Env, system.Args = dir, sys.Env{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, []string{"terrace", "--no-exec", "explain", address}
	system.Stdout, system.Stderr, system.Stdin = &out, &bytes.Buffer{}, strings.NewReader("")
	if cli.Main(context.Background(), system) != 0 {
		return ""
	}
	return strings.TrimSpace(out.String())
}

var quotedLine = regexp.MustCompile(`(?m)^terrace explain '?([A-Za-z_][^ '\n]*)'?$`)

// Hover shows the answers of explain: for each address that a script of the command line requests, and
// that is a name in a file.
func TestHoverIsExplain(t *testing.T) {
	names, err := filepath.Glob("../../cli/testdata/script/*.txtar")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d scripts: %v", len(names), err)
	}
	counts := map[string]int{}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(archive.Comment, []byte("terrace explain ")) {
			continue
		}
		// The answer depends on a state, on the environment, or on files that the script writes.
		special := false
		for _, word := range []string{"terrace apply", "terrace init", "\nenv ", "\ncp ", "\nrm ", "\nmkdir ", "\nsymlink ", "terrace workspace"} {
			special = special || bytes.Contains(archive.Comment, []byte(word))
		}
		dir, at := "", "."
		var hovered func(string, string) (string, string)
		for _, line := range strings.Split(string(archive.Comment), "\n") {
			if to, ok := strings.CutPrefix(line, "cd "); ok {
				at = filepath.Join(at, strings.TrimPrefix(to, "$WORK/"))
				continue
			}
			if !strings.HasPrefix(line, "terrace explain ") {
				continue
			}
			m := quotedLine.FindStringSubmatch(line)
			switch {
			case m == nil:
				counts["skipped: flags"]++
				continue
			case special:
				counts["skipped: a state, the environment or files that the script writes"]++
				continue
			case hovered == nil:
				dir = server.Unpack(t, string(txtar.Format(&txtar.Archive{Files: archive.Files})))
				hovered = server.Hovering(t, dir)
			}
			want := explained(t, filepath.Join(dir, at), m[1])
			if want == "" || strings.Contains(want, "whose state cannot be read") || strings.Contains(want, "which has none yet") {
				counts["skipped: explain needs the state of a unit"]++
				continue // the server does not try to read it
			}
			got, file := hovered(at, m[1])
			if file == "" {
				counts["skipped: the address is not a name in a file"]++
				continue
			}
			counts["equal"]++
			if got != want {
				t.Errorf("%s: %s in %s:\n%s\nexplain:\n%s", filepath.Base(name), m[1], file, got, want)
			}
		}
	}
	t.Logf("%v", counts)
	if counts["equal"] < 30 {
		t.Errorf("only %d answers were compared", counts["equal"])
	}
}
