package config

import (
	"os"
	"path/filepath"
	"testing"
)

// versions is a directory whose files have locations with a version.
type versions struct {
	osFS
	dir     string
	version map[string]string
}

func (v *versions) ReadDir(name string) ([]os.DirEntry, error) {
	return v.osFS.ReadDir(filepath.Join(v.dir, name))
}

func (v *versions) ReadFile(name string) ([]byte, error) {
	return v.osFS.ReadFile(filepath.Join(v.dir, name))
}

func (v *versions) Locate(name string) string { return name + v.version[name] }

// After a change, only the changed file is parsed again.
func TestNextParses(t *testing.T) {
	v := &versions{dir: t.TempDir(), version: map[string]string{}}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(v.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.tf", "variable \"a\" {}\n")
	write("b.tf", "variable \"b\" {}\n")
	var p *Parses
	for i, want := range []int{2, 1, 0, 1} {
		if i%2 == 1 {
			write("b.tf", "variable \"b\" {}\nvariable \"more\" {}\n")
			v.version["b.tf"] += "x"
		}
		p = p.Next()
		m, ds := Load(".", Options{FS: v, Parses: p})
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		if p.Parsed() != want || (m.Variables["more"] != nil) != (i > 0) || m.Variables["a"] == nil {
			t.Errorf("load %d: %d files parsed, variables %v", i, p.Parsed(), m.Variables)
		}
	}
	if p.earlier.Load().earlier.Load() != nil {
		t.Error("the caches of all changes stay in memory")
	}
}
