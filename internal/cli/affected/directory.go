package affected

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/revision"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
)

// compareDirectories compares the working directory in two revisions.
func compareDirectories(ctx context.Context, c *command.Call, o *options, pair *revision.Pair, r *affected.Report) diag.List {
	workspace, ds := c.Workspace()
	if ds.HasErrors() {
		return ds
	}
	useModules(c, pair)
	base, ds := openSide(ctx, c, o, pair.Base, workspace)
	if ds.HasErrors() {
		return ds
	}
	defer base.close()
	head, more := openSide(ctx, c, o, pair.Head, workspace)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
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
		return err
	}
	if err := head.evaluate(ctx, c, nil); err.HasErrors() {
		return err
	}
	if moves = head.Loaded.Engine.MovedFrom(head.Outlined, base.Outlined); len(moves) > 0 {
		if err := base.evaluate(ctx, c, func(a addr.Instance) addr.Instance {
			if to, ok := moves[a]; ok {
				return to
			}
			return a
		}); err.HasErrors() {
			return err
		}
	}
	if objects := affected.Compare(ctx, &base.Side, &head.Side); len(objects) > 0 {
		r.Units = append(r.Units, &affected.Unit{Name: ".", Action: affected.Action(objects), Objects: objects})
	}
	return ds
}

// A side is the configuration of the working directory in one revision.
type side struct {
	affected.Side
	*workdir.Loaded
	dir     *workdir.Directory
	of      *revision.Revision
	schemas func(addr.Provider) *schema.Provider
}

func (s *side) close() { s.Loaded.Close() }

// useModules lets the base use the modules that are installed in the working directory.
func useModules(c *command.Call, pair *revision.Pair) {
	for _, r := range []*revision.Revision{pair.Base, pair.Head} {
		if r.ID == "" {
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

// openSide loads the configuration of the working directory in a revision.
func openSide(ctx context.Context, c *command.Call, o *options, r *revision.Revision, workspace string) (*side, diag.List) {
	if err := os.MkdirAll(r.Dir, 0o755); r.ID != "" && err != nil {
		return nil, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to make a directory", "The directory cannot be made: %s.", err)
	}
	d := c.Directory.In(r.Dir, c.Env, nil)
	d.Set = &source.Set{}
	lo := workdir.LoadOptions{Partial: true, Vars: o.vars, Workspace: workspace}
	loaded, ds := workdir.Load(ctx, d, lo)
	if loaded == nil && !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool { return !module.Missing(m) }) {
		lo.RootOnly = true
		loaded, ds = workdir.Load(ctx, d, lo)
	}
	if loaded == nil {
		c.Report.Set.Include(d.Set)
		return nil, ds.Errors()
	}
	s := &side{Loaded: loaded, dir: d, of: r}
	s.Show = units.ShownIn(c, r)
	return s, nil
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
