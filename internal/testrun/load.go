package testrun

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// DefaultDirectory is the default directory of test files, in addition to the module's directory.
const DefaultDirectory = "tests"

// Load reads the test files of a module's directory and of its test directory, sorted by name.
// Names are relative to the directory of fsys. root is the module under test: if it declares that it
// is compatible with OpenTofu alone, parts of test files that OpenTofu rejects are errors. It may be
// nil.
func Load(fsys config.FS, directory string, set *source.Set, root *config.Module) ([]*testfile.File, diag.List) {
	dir := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(directory)), "/")
	var ds diag.List
	var names []string
	for _, d := range []string{".", dir} {
		if d == dir && dir == "." {
			break
		}
		found, err := testFiles(fsys, d)
		switch {
		case errors.Is(err, fs.ErrNotExist) && d == dir:
			if directory != DefaultDirectory {
				ds = append(ds, diag.Warnf(diag.CodeTestFolder, nil, "Test directory does not exist", "Requested test directory %s does not exist.", dir)...)
			}
		case err != nil:
			ds = append(ds, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read test directory", "The directory %s cannot be read: %s.", d, err)...)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	var out []*testfile.File
	for _, name := range names {
		text, err := fsys.ReadFile(name)
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "The file %q cannot be read: %s.", name, err)...)
			continue
		}
		f, more := testfile.Parse(name, text, set)
		ds = append(ds, more...)
		for _, part := range f.NotInOpenTofu {
			if root != nil {
				ds = append(ds, root.NotInOpenTofu(part.At, part.What)...)
			}
		}
		out = append(out, f)
	}
	return out, ds
}

// testFiles returns the test files of a directory that are not overridden by others.
func testFiles(fsys config.FS, dir string) ([]string, error) {
	if _, err := fsys.ReadDir(dir); err != nil {
		return nil, err
	}
	files, _ := config.Files(dir, config.Options{FS: fsys})
	var out []string
	for _, f := range files {
		if f.Role == config.RoleTest {
			out = append(out, filepath.ToSlash(f.Path))
		}
	}
	return out, nil
}

// mockSuffixes contains the suffixes of files with mocks. Only Terrace and OpenTofu read the last
// two.
var mockSuffixes = [...]string{".tfmock.hcl", ".tfmock.json", ".tofumock.hcl", ".tofumock.json"}

// LoadMocks reads the mocks of a directory.
func LoadMocks(fsys config.FS, dir string, set *source.Set) (*testfile.Mock, diag.List) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read mocks", "The directory %q with mocks cannot be read: %s.", dir, err)
	}
	var ds diag.List
	var out *testfile.Mock
	for _, e := range entries {
		if !slices.ContainsFunc(mockSuffixes[:], func(end string) bool { return strings.HasSuffix(e.Name(), end) }) {
			continue
		}
		name := filepath.ToSlash(filepath.Join(dir, e.Name()))
		text, err := fsys.ReadFile(name)
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read mocks", "The file %q cannot be read: %s.", name, err)...)
			continue
		}
		m, more := testfile.ParseMocks(name, text, set)
		ds = append(ds, more...)
		if out == nil {
			out = m
		} else {
			out.Add(m)
		}
	}
	if out == nil && !ds.HasErrors() {
		ds = append(ds, diag.Errorf(diag.CodeTestMock, nil, "No mocks found", "The directory %q has no files with mocks; their names end with .tfmock.hcl.", dir)...)
	}
	return out, ds
}

// Calls returns the modules that runs execute instead of the module under test, by the keys under
// which they are installed.
func Calls(files []*testfile.File) map[string]*config.Call {
	out := map[string]*config.Call{}
	for _, f := range files {
		for _, r := range f.Runs {
			if r.Module == nil {
				continue
			}
			arg := func(name, text string, at source.Range) *config.Setting {
				return &config.Setting{Attribute: &hcl.Attribute{Name: name, Expr: hcl.StaticExpr(cty.StringVal(text), at), Range: at, NameRange: at}}
			}
			c := &config.Call{Source: arg("source", r.Module.Source, r.Module.SourceAt), Body: hcl.EmptyBody(), At: r.Module.At}
			if r.Module.Version != "" {
				c.Version = arg("version", r.Module.Version, r.Module.VersionAt)
			}
			out[InstallKey(f.Name, r.Name)] = c
		}
	}
	return out
}

// Requirements returns the providers that test files need in addition to those of the module
// under test, root: those of the runs' modules, and those of provider blocks without mocks. The
// test reports modules that cannot be loaded.
func Requirements(ctx context.Context, o engine.Options, root *config.Module, files []*testfile.File) map[addr.Provider][]config.Constraint {
	out := map[addr.Provider][]config.Constraint{}
	for _, f := range files {
		for _, a := range Configured(root, f) {
			if _, ok := out[a]; !ok {
				out[a] = nil
			}
		}
	}
	EachModule(ctx, o, files, func(_ *testfile.File, _ *testfile.Run, e *engine.Engine) {
		for a, cs := range e.Requirements() {
			out[a] = append(out[a], cs...)
		}
	})
	return out
}

// Configured returns the providers that a test file configures and does not mock. Their local
// names are those of the module under test.
func Configured(root *config.Module, f *testfile.File) []addr.Provider {
	var out []addr.Provider
	for _, key := range slices.Sorted(maps.Keys(f.Providers)) {
		p := f.Providers[key]
		if a := root.Source(p.Name); p.Mock == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// EachModule calls do for each run that executes another module than the one under test, with
// that module, in the order of the files. It skips modules that cannot be loaded.
func EachModule(ctx context.Context, o engine.Options, files []*testfile.File, do func(*testfile.File, *testfile.Run, *engine.Engine)) {
	for _, f := range files {
		for _, r := range f.Runs {
			if r.Module == nil {
				continue
			}
			at := rootOf(f, r)
			o.Root = engine.RootModule{Dir: at.dir, Key: at.key}
			e, ds := engine.Open(ctx, o)
			if e == nil {
				continue
			}
			if !ds.HasErrors() {
				do(f, r, e)
			}
			e.Close()
		}
	}
}
