package format

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

func TestConfiguration(t *testing.T) {
	a, err := txtar.ParseFile("testdata/configuration.txtar")
	if err != nil {
		t.Fatal(err)
	}
	in, want := a.Files[0].Data, a.Files[1].Data
	got, diags := Configuration(in, "in.tf")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if again, _ := Configuration(got, "out.tf"); string(again) == string(in) {
		t.Error("formatting what is formatted gives the text before")
	}
}

func TestBroken(t *testing.T) {
	for _, src := range []string{"a = {\n", "x y", "b \"x\" {"} {
		if out, diags := Configuration([]byte(src), "x.tf"); out != nil || !diags.HasErrors() {
			t.Errorf("%q: %q, %v", src, out, diags)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x.tf", "sub/y.tofu", ".hid/z.tf", "v.auto.tfvars", "t.tftest.hcl", "u.hcl", ".h.tf", "z.tf~", "#q.tf#", "j.tf.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		target    string
		recursive bool
		want      []string
	}{
		{".", false, []string{"t.tftest.hcl", "v.auto.tfvars", "x.tf"}},
		{".", true, []string{"sub/y.tofu", "t.tftest.hcl", "v.auto.tfvars", "x.tf"}},
		{"sub", false, []string{"sub/y.tofu"}},
		{"x.tf", false, []string{"x.tf"}},
	} {
		got, err := Find(dir, c.target, c.recursive)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.target, got, err, c.want)
		}
	}
	var ext *ErrExtension
	if _, err := Find(dir, "u.hcl", false); !errors.As(err, &ext) {
		t.Errorf("u.hcl: %v", err)
	}
	if _, err := Find(dir, "missing", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
