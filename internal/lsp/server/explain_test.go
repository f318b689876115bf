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

// Hover shows the answers of explain: for each address that a script of explain requests, and that is
// a name in a file.
func TestHoverIsExplain(t *testing.T) {
	names, err := filepath.Glob("../../cli/testdata/script/*explain*.txtar")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d scripts: %v", len(names), err)
	}
	compared := 0
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(archive.Comment, []byte("terrace apply")) || bytes.Contains(archive.Comment, []byte("\nenv ")) || bytes.Contains(archive.Comment, []byte("\ncp ")) {
			continue // the answer depends on a state or on the environment
		}
		dir := server.Unpack(t, string(txtar.Format(&txtar.Archive{Files: archive.Files})))
		hovered := server.Hovering(t, dir)
		at := "."
		for _, line := range strings.Split(string(archive.Comment), "\n") {
			if to, ok := strings.CutPrefix(line, "cd "); ok {
				at = filepath.Join(at, strings.TrimPrefix(to, "$WORK/"))
				continue
			}
			m := quotedLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			want := explained(t, filepath.Join(dir, at), m[1])
			if want == "" || strings.Contains(want, "whose state cannot be read") || strings.Contains(want, "which has none yet") {
				continue // the server does not try to read the state of another unit
			}
			got, file := hovered(at, m[1])
			if file == "" {
				continue
			}
			compared++
			if got != want {
				t.Errorf("%s: %s in %s:\n%s\nexplain:\n%s", filepath.Base(name), m[1], file, got, want)
			}
		}
	}
	t.Logf("%d answers are equal", compared)
	if compared < 20 {
		t.Errorf("only %d answers were compared", compared)
	}
}
