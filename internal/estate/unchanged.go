package estate

import (
	"context"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
)

// An Unchanged finds units that have the same values in two revisions, without comparing values:
// no file that they can read differs between the revisions. Its methods may be called concurrently.
type Unchanged struct {
	e       *Estate
	changed map[string]bool // files that differ; true means that only one revision contains the file
	dirs    map[string]bool // directories of the files that only one revision contains

	done     parallel.Cache[string, bool]
	packages parallel.Cache[string, bool]
}

// Unchanged returns an Unchanged for the files that differ between this revision and another one.
// The value is true for files that only one revision contains. Directories that this program and
// Terragrunt create need not be listed.
func (e *Estate) Unchanged(changed map[string]bool) *Unchanged {
	x := &Unchanged{e: e, changed: changed, dirs: map[string]bool{}}
	for f, one := range changed {
		if one {
			x.dirs[filepath.Dir(f)] = true
		}
	}
	return x
}

// Unit reports whether a unit has the same values in both revisions. false means that it may differ.
func (x *Unchanged) Unit(ctx context.Context, u *discovery.Unit) bool {
	same, err := x.done.Do(ctx, u.ID, func() (bool, bool) { return x.unit(ctx, u), true })
	return err == nil && same
}

func (x *Unchanged) unit(ctx context.Context, u *discovery.Unit) bool {
	if u.Broken != nil || u.Partial || len(u.External) > 0 {
		return false
	}
	if !x.sameDir(u.Dir) || !x.sameFile(u.Path) {
		return false
	}
	l := x.e.static
	t, in := l.Task(ctx), u.In(l)
	files, ok := in.Reads(t)
	if !ok || slices.ContainsFunc(files, func(f string) bool { return !x.sameFile(f) }) {
		return false
	}
	for _, n := range u.Needs {
		if !x.Unit(ctx, n) {
			return false
		}
	}
	m := x.e.dirs.Module(t, in)
	if m.Dir == nil || m.Root == nil || !m.Whole {
		return false
	}
	if tf := m.Dir.Terraform; tf != nil && len(tf.ExtraArguments) > 0 {
		return false // they may name variable files anywhere
	}
	return x.module(m.Dir.Files.Package)
}

// sameFile reports whether a file is the same in both revisions, and no file was added to or removed
// from its directory or a directory above, in which a function may look for files.
func (x *Unchanged) sameFile(path string) bool {
	if _, differs := x.changed[path]; differs || !unlinked(path) {
		return false
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, submodule := x.changed[dir]; submodule || x.dirs[dir] {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// sameDir reports whether all files below a directory are the same in both revisions.
func (x *Unchanged) sameDir(dir string) bool {
	prefix := dir + string(filepath.Separator)
	for f := range x.changed {
		if strings.HasPrefix(f, prefix) {
			return false
		}
	}
	return true
}

// module reports whether a module package has the same values in both revisions for the same inputs.
func (x *Unchanged) module(dir string) bool {
	return x.packages.Pure(dir, func() bool { return x.sameFile(dir) && x.sameDir(dir) && readsOnly(dir, x.e.o.Host.Files().Whole) })
}

// unlinked reports whether a path contains no symbolic link.
func unlinked(path string) bool {
	to, err := filepath.EvalSymlinks(path)
	return err == nil && to == path
}

// readsFiles matches calls of functions that read files or look for files, and a first argument
// that is below the directory of the module.
var readsFiles = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(file[a-z0-9]*|templatefile|templatestring)\s*\(\s*("\$\{path\.module\}/[^"$%]*")?`)
})

// readsOnly reports whether the modules in a directory read files of this directory only.
func readsOnly(dir string, read func(path string) ([]byte, error)) bool {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
			return fs.ErrInvalid
		case d.IsDir():
			if name := d.Name(); name == ".terraform" || name == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if name := d.Name(); !strings.HasSuffix(name, ".tf") && !strings.HasSuffix(name, ".tofu") && !strings.HasSuffix(name, ".json") {
			return nil
		}
		text, err := read(path)
		if err != nil {
			return err
		}
		for _, m := range readsFiles().FindAllSubmatch(text, -1) {
			if arg := string(m[2]); arg == "" || strings.Contains(arg, "..") {
				return fs.ErrInvalid
			}
		}
		return nil
	})
	return err == nil
}
