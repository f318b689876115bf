package functions

import (
	"errors"
	"fmt"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Files caches the status of files and directories. It may be used concurrently.
type Files struct {
	tree  Tree
	ids   parallel.Cache[string, string]
	stats parallel.Memo[string, stat]
	finds parallel.Cache[[2]string, string]
}

type stat struct{ exists, dir bool }

// A Tree contains functions that read a file system, like those of packages os and path/filepath. All
// are required.
type Tree struct {
	ReadFile     func(path string) ([]byte, error)
	Stat         func(path string) (fs.FileInfo, error)
	ReadDir      func(path string) ([]fs.DirEntry, error)
	EvalSymlinks func(path string) (string, error)
}

// NewFiles returns a Files of a file system.
func NewFiles(tree Tree) *Files { return &Files{tree: tree} }

func (f *Files) stat(path string) stat {
	return f.stats.Of(path, func() (stat, bool) {
		info, err := f.tree.Stat(path)
		if err != nil {
			return stat{}, errors.Is(err, fs.ErrNotExist)
		}
		return stat{exists: true, dir: info.IsDir()}, true
	})
}

// Exists reports whether a file or directory exists.
func (f *Files) Exists(path string) bool { return f.stat(path).exists }

// IsDir reports whether a path is a directory.
func (f *Files) IsDir(path string) bool { return f.stat(path).dir }

// Identity returns the cleaned path of a file with symbolic links resolved.
func (f *Files) Identity(path string) string {
	dir := f.ids.Pure(filepath.Dir(path), func() string {
		if d, err := f.tree.EvalSymlinks(filepath.Dir(path)); err == nil {
			return d
		}
		return filepath.Dir(path)
	})
	return f.ids.Pure(path, func() string {
		if p, err := f.tree.EvalSymlinks(filepath.Join(dir, filepath.Base(path))); err == nil {
			return p
		}
		return filepath.Join(dir, filepath.Base(path))
	})
}

// FindUp returns the path of name in dir or in its nearest parent directory that contains
// it, or "".
func (f *Files) FindUp(dir, name string) string {
	return f.finds.Pure([2]string{dir, name}, func() string {
		if p := filepath.Join(dir, name); f.Exists(p) {
			return p
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		return f.FindUp(up, name)
	})
}

// Repository returns the directory that contains .git, at or above dir.
func (f *Files) Repository(dir string) (string, error) {
	git := f.FindUp(dir, ".git")
	if git == "" {
		return "", fmt.Errorf("%s is not in a git repository", dir)
	}
	return filepath.Dir(git), nil
}

// AbsPath returns an absolute, clean path. Relative paths are resolved from dir.
func AbsPath(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Near returns the absolute path for a path in a file. A relative path is resolved from the
// directory of the file. If nothing is there, and the unit that includes the file has the path,
// it is resolved from the unit, as before Terragrunt 1.1.4.
func (f *Files) Near(file, unit, path string) string {
	near := AbsPath(file, path)
	if file == unit || f.Exists(near) {
		return near
	}
	if far := AbsPath(unit, path); f.Exists(far) {
		return far
	}
	return near
}

// lookupFile returns the functions that read files or mark them as read, or nil.
func lookupFile(name string) *definition {
	s := cty.String
	switch name {
	case "read_tfvars_file":
		return &definition{min: 1, max: 1, ret: s, do: (*call).readTfvars}
	case "mark_as_read":
		return &definition{min: 1, max: 1, ret: s, do: (*call).markRead}
	case "mark_glob_as_read":
		return &definition{min: 1, max: 3, ret: cty.List(s), do: (*call).markGlob}
	case "read_terragrunt_config":
		return &definition{dynamic: (*call).readConfig}
	}
	return nil
}

// readConfig implements read_terragrunt_config.
func (k *call) readConfig() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "path", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			v, err := k.ReadConfig(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return k.ReadConfig(args) },
	})
}

// readTfvars implements read_tfvars_file: it returns the variables of a file as JSON text.
func (k *call) readTfvars(args []string) (cty.Value, error) {
	path := k.Files.Near(k.FileDir(), k.Dir(), args[0])
	text, err := k.ReadFile(path)
	if err != nil {
		return cty.NilVal, fmt.Errorf("cannot read %s: %s", path, plainError(err))
	}
	k.Reads(path)
	if ds := diag.TooDeep(path, text); ds != nil {
		return cty.NilVal, ds.Err()
	}
	var f *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(path, ".json") {
		f, diags = hcljson.Parse(text, path)
	} else {
		f, diags = hclnative.ParseConfig(text, path)
	}
	if diags.HasErrors() {
		return cty.NilVal, unreadable(text, diags)
	}
	attrs, diags := f.Body.JustAttributes()
	if diags.HasErrors() {
		return cty.NilVal, unreadable(text, diags)
	}
	vals := make(map[string]cty.Value, len(attrs))
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			return cty.NilVal, unreadable(text, diags)
		}
		vals[name] = v
	}
	v := cty.ObjectVal(vals)
	out, err := ctyjson.Marshal(v, v.Type())
	k.HandsIn(string(out), "read_tfvars_file(…)")
	return cty.StringVal(string(out)), err
}

// unreadable returns the error for an invalid file of values.
func unreadable(text []byte, diags hcl.Diagnostics) error {
	return errors.New(strings.TrimSuffix(diag.FromValues(text, diags).Err().Error(), "."))
}

func (k *call) markRead(args []string) (cty.Value, error) {
	path := k.Files.Near(k.FileDir(), k.Dir(), args[0])
	k.Reads(path)
	return cty.StringVal(args[0]), nil
}

// markGlob implements mark_glob_as_read: it returns the matching files and marks them as
// read.
func (k *call) markGlob(args []string) (cty.Value, error) {
	if args[0] == "--terragrunt-boundary" {
		if len(args) != 3 {
			return cty.NilVal, errors.New("--terragrunt-boundary needs a directory, and the pattern after it")
		}
		args = args[2:]
	}
	if len(args) != 1 {
		return cty.NilVal, fmt.Errorf("1 pattern expected, not %d", len(args))
	}
	found, err := k.Files.glob(AbsPath(k.Dir(), args[0]))
	if err != nil {
		return cty.NilVal, err
	}
	slices.Sort(found)
	for _, p := range found {
		k.Reads(p)
	}
	return stringList(found), nil
}

// glob returns the files whose absolute paths match a pattern.
func (f *Files) glob(pattern string) ([]string, error) {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	dir := filepath.FromSlash(base)
	found, err := doublestar.Glob(readfile.DirFS{Dir: dir, ReadContent: f.tree.ReadFile, Status: f.tree.Stat, List: f.tree.ReadDir}, rest, doublestar.WithFilesOnly())
	for i, name := range found {
		found[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return found, err
}
