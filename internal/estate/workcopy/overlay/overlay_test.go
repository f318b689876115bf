package overlay_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
)

const files = `
-- pkg/mod/main.tf --
module
-- pkg/mod/only.tf --
only
-- pkg/mod/.secret --
-- pkg/shared/x.tf --
shared
-- unit/main.tf --
unit
-- unit/own.tf --
own
-- outside.tf --
-- work/.terraform/modules/modules.json --
{}
`

// open returns the FS of the module pkg/mod with the files of the unit over it.
func open(t *testing.T) (f *overlay.FS, root string) {
	t.Helper()
	root = testkit.Files(t, files)
	f, err := overlay.New(nil, filepath.Join(root, "pkg"), "mod", filepath.Join(root, "unit"), filepath.Join(root, "work"), "", copytree.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return f, root
}

// A generated file takes precedence over the unit's, which takes precedence over the module's. A
// generated file without content hides both. Names outside of the package do not exist.
func TestReadFile(t *testing.T) {
	f, _ := open(t)
	f.Generated["only.tf"], f.Generated["made.tf"] = nil, []byte("made\n")
	for name, want := range map[string]string{
		"main.tf": "unit\n", "./own.tf": "own\n", "made.tf": "made\n", "../shared/x.tf": "shared\n", ".terraform/modules/modules.json": "{}\n",
		"only.tf": "", "../../outside.tf": "", ".secret": "", "missing": "",
	} {
		b, err := f.ReadFile(name)
		if string(b) != want || want == "" && !errors.Is(err, fs.ErrNotExist) || want != "" && err != nil {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
}

// ReadDir lists each name once, sorted, as ReadFile finds them. Reading creates no file.
func TestReadDir(t *testing.T) {
	f, root := open(t)
	f.Generated["only.tf"], f.Generated["made.tf"] = nil, []byte("made\n")
	entries, err := f.ReadDir(".")
	var names []string
	for _, en := range entries {
		names = append(names, en.Name())
	}
	if got := strings.Join(names, " "); err != nil || !strings.Contains(got, "made.tf main.tf own.tf") || strings.Contains(got, "only.tf") {
		t.Error(got, err)
	}
	for _, name := range []string{"missing", "../.."} {
		if entries, err := f.ReadDir(name); !errors.Is(err, fs.ErrNotExist) {
			t.Error(name, entries, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(root, "work")); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
}

// A file is read from disk once, so that all readers see the same text.
func TestReadOnce(t *testing.T) {
	f, root := open(t)
	for range 2 {
		if b, err := f.ReadFile("main.tf"); err != nil || string(b) != "unit\n" {
			t.Errorf("%q %v", b, err)
		}
		if err := os.WriteFile(filepath.Join(root, "unit", "main.tf"), []byte("changed"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Locate returns the path of the file that ReadFile reads, and "" for generated and missing files.
func TestLocate(t *testing.T) {
	f, root := open(t)
	f.Generated["made.tf"] = []byte("made")
	for name, want := range map[string]string{"main.tf": "unit/main.tf", "only.tf": "pkg/mod/only.tf", "made.tf": "", "missing": "", ".": ""} {
		if want != "" {
			want = filepath.Join(root, want)
		}
		if got := f.Locate(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// HasValues finds variable files of the unit, of the module's directory and of generate blocks, and none
// that generate blocks hide or that are elsewhere.
func TestHasValues(t *testing.T) {
	const values = `
-- pkg/mod/main.tf --
-- pkg/mod/a.auto.tfvars --
-- pkg/mod/sub/terraform.tfvars --
-- pkg/terraform.tfvars --
-- pkg/plain/main.tf --
-- unit/main.tf --
-- unit/terraform.tfvars.json --
{}
-- bare/main.tf --
`
	none := map[string][]byte{}
	for _, c := range []struct {
		sub, unit string
		exclude   []string
		generated map[string][]byte
		want      bool
	}{
		{"mod", "bare", nil, none, true},
		{"plain", "bare", nil, none, false},
		{"plain", "", nil, none, false},
		{"", "bare", nil, none, true},
		{"plain", "unit", nil, none, true},
		{"mod", "bare", []string{"mod/*.tfvars"}, none, false},
		{"mod", "bare", nil, map[string][]byte{"a.auto.tfvars": nil}, false},
		{"plain", "unit", nil, map[string][]byte{"./terraform.tfvars.json": nil}, false},
		{"plain", "bare", nil, map[string][]byte{"x.auto.tfvars": []byte("x = 1")}, true},
		{"plain", "bare", nil, map[string][]byte{"sub/terraform.tfvars": []byte("x = 1")}, false},
		{"..", "bare", nil, none, false},
	} {
		root := testkit.Files(t, values)
		unit := ""
		if c.unit != "" {
			unit = filepath.Join(root, c.unit)
		}
		f, err := overlay.New(nil, filepath.Join(root, "pkg"), c.sub, unit, filepath.Join(root, "work"), "", copytree.Rules{Exclude: c.exclude})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range c.generated {
			f.Generated[name] = text
		}
		entries, _ := f.ReadDir(".")
		listed := slices.ContainsFunc(entries, func(en fs.DirEntry) bool { return overlay.IsValues(en.Name()) })
		if got := f.HasValues(); got != c.want || got != listed {
			t.Errorf("%+v: got %t, listed %t", c, got, listed)
		}
	}
}
