package discovery

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
	"github.com/terrace-iac/terrace/unit"
)

// modules reads the modules of units that are on this machine.
type modules struct {
	maker    *workcopy.Maker
	static   *unit.Loader                     // evaluates with all outputs unknown
	below    parallel.Cache[string, []string] // directories of local modules, by that of the root module
	listings parallel.Cache[string, []string] // configuration files below a directory
}

// root returns the root module of a unit. It returns nil if the module is not on this machine.
func (m *modules) root(ctx context.Context, u *Unit) *config.Module {
	return m.maker.LocalRoot(m.static.Task(ctx), u.In(m.static))
}

// takes returns a function that reports whether the module of a unit declares an input. It
// returns nil if that is unknown without fetching the module.
func (m *modules) takes(ctx context.Context, u *Unit) func(name string) bool {
	root := m.root(ctx, u)
	if root == nil {
		return nil
	}
	return func(name string) bool {
		if root.Variables[name] != nil {
			return true
		}
		all := m.maker.Module(m.static.Task(ctx), u.In(m.static))
		return all.Root == nil || !all.Whole || all.Root.Variables[name] != nil
	}
}

// dirs returns the directories of a unit's local module and of the local modules that it calls,
// directly or indirectly.
func (m *modules) dirs(ctx context.Context, u *Unit) []string {
	if u.unread() {
		return nil
	}
	root := m.root(ctx, u)
	if root == nil {
		return nil
	}
	return m.below.Local(root.Dir, func() ([]string, bool) {
		disk, whole := m.maker.Disk(), true
		seen := map[string]bool{}
		var visit func(m *config.Module)
		visit = func(m *config.Module) {
			if seen[m.Dir] {
				return
			}
			seen[m.Dir] = true
			for _, call := range m.Calls {
				if call.Source == nil {
					continue
				}
				v, ds := call.Source.Expr.Value(nil)
				if ds.HasErrors() || !value.IsText(v) || !strings.HasPrefix(v.AsString(), ".") {
					continue
				}
				sub, more := config.Load(filepath.Join(m.Dir, filepath.FromSlash(v.AsString())), config.Options{FS: disk})
				if !more.HasErrors() {
					visit(sub)
				}
				whole = whole && !config.Unread(more)
			}
		}
		visit(root)
		out := make([]string, 0, len(seen))
		for dir := range seen {
			out = append(out, dir)
		}
		slices.Sort(out)
		return out, whole
	})
}

// files returns the configuration files below the directory of a unit's source, if the source is
// local.
func (m *modules) files(t *demand.Task, u *Unit) []string {
	tf, ds := u.Terraform(t)
	if ds.HasErrors() || tf == nil || tf.Source == nil {
		return nil
	}
	root := m.root(t.Context(), u)
	if root == nil {
		return nil
	}
	dir := root.Dir
	return m.listings.Local(dir, func() ([]string, bool) {
		var found []string
		whole := true
		_ = m.maker.Disk().WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				whole = false
				return nil // the unit cannot read such files either
			case d.IsDir() && copytree.Private(d.Name()):
				return filepath.SkipDir
			case !d.IsDir() && (overlay.IsConfig(d.Name()) || strings.HasSuffix(d.Name(), ".hcl")):
				found = append(found, p)
			}
			return nil
		})
		return found, whole
	})
}

// Reading returns the files that a unit reads, except its own file: those that its file includes,
// and the configuration of a local module. Files whose paths cannot be computed are missing.
func (f *Found) Reading(t *demand.Task, u *Unit) []string {
	if u.unread() {
		return nil
	}
	out, _ := u.Files(t)
	out = slices.DeleteFunc(slices.Clone(out), func(p string) bool { return p == u.Path })
	out = append(out, f.modules.files(t, u)...)
	slices.Sort(out)
	return slices.Compact(out)
}

// ReadingStack returns the files that a stack file reads, except itself. name is that of the stack's
// directory. Files whose paths cannot be computed are missing.
func (f *Found) ReadingStack(t *demand.Task, name string) []string {
	st, _ := f.modules.static.Stack(t, filepath.Join(f.s.Root, filepath.FromSlash(name)))
	if st == nil {
		return nil
	}
	out, _ := st.Files(t)
	return out
}
