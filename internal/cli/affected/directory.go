package affected

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/revision"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// compareDirectories compares the working directory in two revisions.
func compareDirectories(ctx context.Context, c *command.Call, o *options, pair *revision.Pair, r *affected.Report) diag.List {
	objects, ds := objectsOf(ctx, c, o, c.Dir, "", pair.Base, pair.Head)
	if len(objects) > 0 {
		r.Units = append(r.Units, &affected.Unit{Name: ".", Action: affected.Action(objects), Objects: objects})
	}
	return ds
}

// compareLibrary compares all directories of configuration at and below the working directory, and the
// units if there are any. After errors in one of them, it compares the others, and records what it could
// not compare in r.NotCompared.
func compareLibrary(ctx context.Context, c *command.Call, o *options, pair *revision.Pair, r *affected.Report) diag.List {
	names, ofUnits := map[string]bool{}, map[string]bool{}
	for _, x := range []*revision.Revision{pair.Base, pair.Head} {
		files := x.Files(c.Files)
		err := files.WalkDir(x.Dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.IsDir():
				return err
			case copytree.Private(d.Name()):
				return filepath.SkipDir
			}
			name := sys.RelativeTo(x.Dir, path)
			at := *c
			at.Directory = c.Directory.In(path, c.Env, nil)
			at.Files = files
			if info, err := files.Stat(filepath.Join(path, syntax.StackName)); err == nil && !info.IsDir() || units.IsUnit(&at, &o.units.Selection) {
				ofUnits[name] = true
			}
			if config.IsConfigDir(path, config.Options{FS: files}) {
				names[name] = true
			}
			return nil
		})
		if err != nil {
			return diag.Errorf(diag.CodeFilesRead, nil, "Failed to look for files", "The directory cannot be read: %s.", diag.Reason(err))
		}
	}
	var all failures
	if o.overUnits = len(ofUnits) > 0; o.overUnits {
		ds := compareEstates(ctx, c, o, pair, r)
		if all.list = ds; ds.HasErrors() && len(r.NotCompared) == 0 {
			r.NotCompared = append(r.NotCompared, ".")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if ofUnits[name] { // its module was compared with the values of the unit
			continue
		}
		if ctx.Err() != nil {
			return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The comparison was interrupted.")
		}
		at, own := *c, *o
		if name != "." {
			at.Directory = c.Directory.In(filepath.Join(c.Dir, name), c.Env, nil)
			own.vars = nil // they are those of the working directory
		}
		objects, more := objectsOf(ctx, &at, &own, c.Dir, filepath.ToSlash(name), belowOrEmpty(c.Files, pair.Base, name), belowOrEmpty(c.Files, pair.Head, name))
		all.add(filepath.ToSlash(name), more)
		switch {
		case more.HasErrors():
			if name = filepath.ToSlash(name); !slices.Contains(r.NotCompared, name) {
				r.NotCompared = append(r.NotCompared, name)
			}
		case len(objects) > 0:
			r.Units = append(r.Units, &affected.Unit{Name: filepath.ToSlash(name), Action: affected.Action(objects), Objects: objects})
		}
	}
	slices.Sort(r.NotCompared)
	return all.messages()
}

// failures collects messages about several directories, or several units. Messages that directories have in common, such as
// those about a module that all of them call, are kept once.
type failures struct {
	list  diag.List
	one   map[string]*failure // by text
	all   []*failure
	units bool // they are about units
}

// A failure is a message and the directories that have it.
type failure struct {
	m     *diag.Message
	names []string
}

// add adds the messages about a directory.
func (f *failures) add(name string, ds diag.List) {
	for _, m := range ds {
		key := m.String()
		for _, n := range m.Notes {
			key += "\x00" + n.Text
		}
		x := f.one[key]
		if x == nil {
			x = &failure{m: m}
			f.all = append(f.all, x)
			if f.one == nil {
				f.one = map[string]*failure{}
			}
			f.one[key] = x
		}
		if n := len(x.names); name != "" && (n == 0 || x.names[n-1] != name) {
			x.names = append(x.names, name)
		}
	}
}

// messages returns the messages with the names of their directories.
func (f *failures) messages() diag.List {
	for _, x := range f.all {
		if len(x.names) == 0 {
			f.list = append(f.list, x.m)
			continue
		}
		m := *x.m
		one, many := "directory", "directories"
		if f.units {
			one, many = "unit", "units"
		}
		slices.Sort(x.names) // units are compared in any order
		names := slices.Compact(x.names)
		text := "This came up in the " + one + " " + names[0] + "."
		if len(names) == 1 && names[0] == "." {
			text = "This came up in the working directory."
		}
		if n := len(names); n > maxUnits {
			text = fmt.Sprintf("This came up in the %s %s and %d more.", many, strings.Join(names[:maxUnits], ", "), n-maxUnits)
		} else if n > 1 {
			text = "This came up in the " + many + " " + strings.Join(names, ", ") + "."
		}
		m.Notes = append(slices.Clone(m.Notes), diag.Note{Text: text})
		f.list = append(f.list, &m)
	}
	return f.list
}

// belowOrEmpty returns the revision of a directory below that of r. If the revision lacks the directory,
// the directory is empty.
func belowOrEmpty(files *readfile.Kept, r *revision.Revision, name string) *revision.Revision {
	below := r.Below(name)
	if _, err := r.Files(files).Stat(below.Dir); !errors.Is(err, fs.ErrNotExist) {
		return below
	}
	if below.Patch == nil {
		below.Patch = readfile.NewPatch(r.Dir)
	}
	below.Patch.PutDir(below.Dir)
	return below
}

// objectsOf returns the objects that differ between two revisions of the working directory of c. Names of
// files are shown relative to from. name is the name of the directory in messages; "" is not shown.
func objectsOf(ctx context.Context, c *command.Call, o *options, from, name string, before, after *revision.Revision) ([]*affected.Object, diag.List) {
	workspace, ds := c.Workspace()
	if ds.HasErrors() {
		return nil, ds
	}
	useModules(c, before, after)
	base, ds := openSide(ctx, c, o, from, before, workspace)
	if ds.HasErrors() {
		return nil, ds
	}
	defer base.close()
	head, more := openSide(ctx, c, o, from, after, workspace)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	defer head.close()
	required := head.Required()
	maps.Copy(required, base.Required())
	if plugins, more := c.Directory.Plugins(); !more.HasErrors() { // both revisions have the providers of the working directory
		head.schemas = plugins.KeptSchemas(ctx, required)
		base.schemas = head.schemas
	}
	var moves map[addr.Instance]addr.Instance
	if err := base.evaluate(ctx, c, nil); err.HasErrors() {
		return nil, shownErrors(c, before, base.dir.Set, err)
	}
	if err := head.evaluate(ctx, c, nil); err.HasErrors() {
		return nil, shownErrors(c, after, head.dir.Set, err)
	}
	if moves = head.Loaded.Engine.MovedFrom(head.Outlined, base.Outlined); len(moves) > 0 {
		if err := base.evaluate(ctx, c, func(a addr.Instance) addr.Instance {
			if to, ok := moves[a]; ok {
				return to
			}
			return a
		}); err.HasErrors() {
			return nil, shownErrors(c, before, base.dir.Set, err)
		}
	}
	for i, s := range []*side{base, head} {
		r := []*revision.Revision{before, after}[i]
		set, all := o.warnings.side(i == 1)
		all.add(name, located(c, r, set, s.dir.Set, slices.Concat(s.warnings, s.Outlined.Warnings())))
	}
	return affected.Compare(ctx, &base.Side, &head.Side), ds
}

// A side is the configuration of the working directory in one revision.
type side struct {
	affected.Side
	*workdir.Loaded
	dir      *workdir.Directory
	of       *revision.Revision
	schemas  func(addr.Provider) *schema.Provider
	warnings diag.List // of the load
}

func (s *side) close() { s.Loaded.Close() }

// useModules lets the base use the modules that are installed in the working directory.
func useModules(c *command.Call, revisions ...*revision.Revision) {
	for _, r := range revisions {
		if r.ID == "" || r.Patch != nil {
			continue
		}
		installed, here := c.DataPath("modules"), filepath.Join(r.Dir, c.DataDir())
		if _, err := os.Stat(filepath.Join(installed, "modules.json")); err != nil || filepath.IsAbs(c.DataDir()) {
			continue
		}
		if err := os.MkdirAll(here, 0o755); err == nil { // a module that is then missing is reported
			_ = os.Symlink(installed, filepath.Join(here, "modules"))
		}
	}
}

// openSide loads the configuration of the working directory of c in a revision. Names of files are shown
// relative to from.
func openSide(ctx context.Context, c *command.Call, o *options, from string, r *revision.Revision, workspace string) (*side, diag.List) {
	if r.ID != "" && r.Patch == nil {
		if err := os.MkdirAll(r.Dir, 0o755); err != nil {
			return nil, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to make a directory", "The directory cannot be made: %s.", err)
		}
	}
	d := c.Directory.In(r.Dir, c.Env, nil)
	d.Set, d.Files = &source.Set{}, r.Files(c.Files)
	d.ReadOnce()
	lo := workdir.LoadOptions{Partial: true, Vars: o.vars, Workspace: workspace}
	loaded, ds := workdir.Load(ctx, d, lo)
	if loaded == nil && !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool { return !module.Missing(m) }) {
		lo.RootOnly = true
		loaded, ds = workdir.Load(ctx, d, lo)
	}
	if loaded == nil {
		return nil, shownErrors(c, r, d.Set, ds.Errors())
	}
	s := &side{Loaded: loaded, dir: d, of: r, warnings: ds.Warnings()}
	shown, below := units.ShownIn(from, r), sys.RelativeTo(from, c.Dir)
	s.Show = func(file string) string {
		if !filepath.IsAbs(file) {
			file = filepath.Join(below, file) // names are relative to the directory of the module
		}
		return shown(file)
	}
	return s, nil
}

// shownErrors returns errors in a revision of a directory with the paths that are shown, and adds the files
// to those of the command.
func shownErrors(c *command.Call, r *revision.Revision, files *source.Set, ds diag.List) diag.List {
	return located(c, r, c.Report.Set, files, ds)
}

// located is shownErrors for a set that receives the files.
func located(c *command.Call, r *revision.Revision, set, files *source.Set, ds diag.List) diag.List {
	file := func(name string) string {
		if !filepath.IsAbs(name) {
			name = filepath.Join(r.Dir, name) // names are relative to the directory of the module
		}
		return sys.RelativeTo(c.Report.Dir, r.Located(name))
	}
	return units.OfRevision(r, file, set, files, ds)
}

// evaluate evaluates the configuration.
func (s *side) evaluate(ctx context.Context, c *command.Call, moved func(addr.Instance) addr.Instance) diag.List {
	lost, _ := workdir.GatherVariables(workdir.VarSources{Dir: s.dir.Dir, FS: s.dir.View, Env: s.dir.Env, Read: s.dir.Files})
	var ds diag.List
	s.Outlined, ds = s.Loaded.Engine.Outline(ctx, engine.OutlineOptions{
		Explain: engine.ExplainOptions{Variables: s.Vars, Lost: lost.Lost, Show: func(file string) (string, string) { return s.Show(file), "" }},
		Rename:  s.of.Rename, Moved: moved, Schema: s.schemas,
	})
	return ds
}
