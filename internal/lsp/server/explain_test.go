package server_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
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

// addressOf returns the address in a line of a script that runs explain, without the flags. class is the
// reason why the line has none that a hover can show.
func addressOf(line string) (address, class string) {
	words := strings.Fields(strings.ReplaceAll(line, "'", ""))
	for i := 2; i < len(words); i++ {
		switch word := strings.TrimLeft(words[i], "-"); {
		case word == words[i]:
			return word, ""
		case word == "code":
			return "", "about a message"
		case word == "module" || word == "config":
			return "", "about one of several modules"
		case word == "var" || word == "var-file" || word == "feature" || word == "state":
			i++ // the explanation without the flag is compared
		}
	}
	return "", "without an address"
}

// Hover shows the answers of explain: for each address that a script of the command line requests, with
// the files as they are before the script runs, and without flags. If the file has a viewpoint in another
// directory, hover also shows the answer of explain there.
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
		dir, at := "", "."
		var hovered func(string, string) (string, string)
		var nearest func(string, string) (string, string, string)
		done := map[string]bool{}
		for _, line := range strings.Split(string(archive.Comment), "\n") {
			if to, ok := strings.CutPrefix(line, "cd "); ok {
				if to, fromWork := strings.CutPrefix(strings.TrimSpace(to), "$WORK"); fromWork {
					at = filepath.Join(".", to)
				} else {
					at = filepath.Join(at, to)
				}
				continue
			}
			if !strings.HasPrefix(line, "terrace explain ") {
				continue
			}
			address, class := addressOf(line)
			if key := at + " " + address; class == "" && done[key] {
				class = "the same address again"
			} else {
				done[key] = true
			}
			if class != "" {
				counts[class]++
				continue
			}
			if hovered == nil {
				dir = server.Unpack(t, string(txtar.Format(&txtar.Archive{Files: archive.Files})))
				hovered, nearest = server.Hovering(t, dir)
			}
			want := explained(t, filepath.Join(dir, at), address)
			switch {
			case want == "":
				class = "explain has no answer before the script has run"
			case strings.Contains(want, "what this reads has an error") && bytes.Contains(txtar.Format(archive), []byte("run_cmd(")):
				class = "a program is an error for explain, and unknown for the server"
			case strings.Contains(want, "whose state cannot be read") || strings.Contains(want, "which has none yet"):
				class = "explain reads the state of another unit"
			}
			if class != "" {
				counts[class]++
				t.Logf("%s: %s: %s", filepath.Base(name), address, class)
				continue
			}
			got, file := hovered(at, address)
			if file == "" {
				counts["the address is not written in a file"]++
				t.Logf("%s: %s in %s is not a name in a file", filepath.Base(name), address, at)
				continue
			}
			counts["equal"]++
			if got != want {
				t.Errorf("%s: %s in %s:\n%s\nexplain:\n%s", filepath.Base(name), address, file, got, want)
			}
			got, from, address := nearest(file, address)
			if from == "" {
				continue
			}
			switch want := explained(t, filepath.Join(dir, from), address); {
			case got == want:
				counts["equal from the nearest viewpoint"]++
			case want != "":
				t.Errorf("%s: %s seen from %s:\n%s\nexplain:\n%s", filepath.Base(name), address, from, got, want)
			}
		}
	}
	t.Logf("%v", counts)
	if n := counts["equal from the nearest viewpoint"]; n < 10 {
		t.Errorf("only %d answers seen from another directory were compared", n)
	}
	if counts["equal"] < 100 {
		t.Errorf("only %d answers were compared", counts["equal"])
	}
}
