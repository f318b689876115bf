package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"golang.org/x/tools/txtar"
)

// elsewhere contains the codes that a directory of files cannot provoke, with their tests.
var elsewhere = map[string]string{
	"read-dir":         "TestUnreadable",
	"read-file":        "TestUnreadable",
	"language-version": "TestLanguageVersion",
	"too-deep":         "TestTooDeep",
	"duplicate-":       "the start of several codes",
}

// TestMessages provokes every message code with a minimal program, and checks that every code
// has one.
func TestMessages(t *testing.T) {
	text, err := os.ReadFile("testdata/messages.txtar")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]map[string][]byte{}
	for _, f := range txtar.Parse(text).Files {
		code, name, _ := strings.Cut(f.Name, "/")
		if cases[code] == nil {
			cases[code] = map[string][]byte{}
		}
		cases[code][name] = f.Data
	}
	for code, files := range cases {
		t.Run(code, func(t *testing.T) {
			m, ds := LoadFiles(".", files, Options{})
			disk := fstest.MapFS{}
			for name, text := range files {
				disk[name] = &fstest.MapFile{Data: text}
			}
			q, more := LoadQueries(".", Options{FS: disk})
			_, twice := q.Into(m)
			ds = slices.Concat(ds, more, twice)
			if !slices.ContainsFunc(ds, func(d *diag.Message) bool { return d.Code == "config/"+code && blamed(d, files) }) {
				t.Errorf("the message was not provoked, or blames another line: %v", ds.Err())
			}
		})
	}
	want := codesInSource(t)
	for code := range elsewhere {
		delete(want, code)
	}
	for _, code := range []string{"variable", "output", "module", "resource", "data", "ephemeral", "provider", "check"} {
		want["duplicate-"+code] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(cases))); diff != "" {
		t.Errorf("codes in the source and in testdata/messages.txtar differ (-source +testdata):\n%s", diff)
	}
}

// blamed reports whether the position of a message is on a marked line.
func blamed(d *diag.Message, files map[string][]byte) bool {
	if d.At == nil {
		return false
	}
	lines := strings.Split(string(files[d.At.Filename]), "\n")
	return d.At.Start.Line <= len(lines) && strings.HasSuffix(lines[d.At.Start.Line-1], "# HERE")
}

func codesInSource(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`diag\.CodeConfig([A-Za-z]+)`).FindAllSubmatch(text, -1) {
			words := regexp.MustCompile(`[A-Z][a-z]*`).FindAllString(string(m[1]), -1)
			out[strings.ToLower(strings.Join(words, "-"))] = true
		}
	}
	return out
}

type brokenFS struct{ fs.ReadDirFS }

func (brokenFS) ReadFile(string) ([]byte, error) { return nil, errors.New("disk on fire") }

// TestUnreadable checks the messages about unreadable directories and files.
func TestUnreadable(t *testing.T) {
	m, ds := Load(filepath.Join(t.TempDir(), "none"), Options{})
	if len(ds) != 1 || ds[0].Code != "config/read-dir" || m == nil || m.Variables == nil {
		t.Errorf("directory: %v", ds.Err())
	}
	if IsConfigDir(filepath.Join(t.TempDir(), "none"), Options{}) {
		t.Error("a directory that does not exist is a configuration")
	}
	dir := os.DirFS("testdata/example").(fs.ReadDirFS)
	m, ds = Load(".", Options{FS: brokenFS{dir}})
	if len(ds) != 2 || ds[0].Code != "config/read-file" || !strings.Contains(ds[0].Detail, "disk on fire") {
		t.Errorf("files: %v", ds.Err())
	}
	if len(m.Files) != 2 {
		t.Errorf("files: %v", m.Files)
	}
}

// TestLanguageVersion checks constraints against a given version, and against the implemented ones.
func TestLanguageVersion(t *testing.T) {
	files := map[string][]byte{"a.tofu": []byte("terraform {\n  required_version = \"~> 2.0\"\n}\nvariable \"v\" {}\n")}
	m, ds := LoadFiles(".", files, Options{Version: "2.1.0"})
	if ds != nil || m.Variables["v"] == nil {
		t.Error(ds.Err())
	}
	for text, want := range map[string]bool{"~> 1.12.0": true, ">= 1.13": true, "< 1.13": true, "~> 1.13.0": true, ">= 1.14": false, "> 1.12.6, < 1.13": false} {
		_, ds := LoadFiles(".", map[string][]byte{"a.tofu": []byte("terraform {\n  required_version = \"" + text + "\"\n}\n")}, Options{})
		if (ds == nil) != want {
			t.Errorf("%s: %v", text, ds.Err())
		}
	}
	_, ds = LoadFiles(".", files, Options{Version: "two"})
	if len(ds) != 1 || ds[0].Code != "config/language-version" {
		t.Error(ds.Err())
	}
}

// TestIsConfigDir checks which files make a directory a configuration.
func TestIsConfigDir(t *testing.T) {
	for name, want := range map[string]bool{"a.tf": true, "a.tofu.json": true, "override.tf": true, "a.tftest.hcl": false, ".a.tf": false, "a.txt": false} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"[:2*strings.Count(name, "json")]), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "sub.tf"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := IsConfigDir(dir, Options{}); got != want {
			t.Errorf("%s: %t", name, got)
		}
		m, ds := Load(dir, Options{})
		if ds != nil || len(m.Files) != 1 {
			t.Errorf("%s: %v %v", name, m.Files, ds.Err())
		}
	}
}
