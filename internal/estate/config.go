package estate

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/unit"
)

// A UnitConfig is the configuration of a unit that is known without outputs.
type UnitConfig struct {
	Files  []string      // the files that the unit reads beside its own, absolute
	Edges  []unit.Edge   // the units that the unit depends on
	Source *unit.Setting // the source of its module; nil if the module is in the unit's directory
	Module *config.Module
	dir    *workcopy.UnitDirectory
}

// Config returns the configuration of a unit. It fetches nothing and creates no directory. A module that is
// on this machine and cannot be read is an error.
func (e *Estate) Config(ctx context.Context, u *discovery.Unit) (*UnitConfig, diag.List) {
	if u.Broken != nil {
		return nil, u.Broken
	}
	t, in := e.static.Task(ctx), u.In(e.static)
	out := &UnitConfig{}
	var ds, more diag.List
	out.Files, ds = in.Files(t)
	out.Edges, more = in.Dependencies(t, nil)
	ds = append(ds, more...)
	tf, more := in.Terraform(t)
	if ds = append(ds, more...); tf != nil {
		out.Source = tf.Source
	}
	switch m := e.dirs.Module(t, in); {
	case m.Dir == nil:
	case m.Root != nil:
		out.Module, out.dir = m.Root, m.Dir
	case m.Whole: // otherwise hooks may still change the files
		errs, set := m.Dir.RootErrors()
		e.Sources().Include(set)
		if u.Excluded != "" { // from the command, so that it may wait for something
			errs = errs.AsWarnings()
		}
		ds = append(ds, errs...)
	}
	return out, ds
}

// Release frees what was computed about a unit, for a caller that no longer uses the unit. Everything is
// computed again on demand.
func (e *Estate) Release(u *discovery.Unit) {
	if u.Broken != nil {
		return
	}
	for _, l := range []*unit.Loader{e.loader, e.static} {
		u.In(l).ForgetFile()
	}
	e.dirs.Forget(u.ID)
}

// Overridden returns the arguments and blocks of a unit's files that a later file replaces.
func (e *Estate) Overridden(ctx context.Context, u *discovery.Unit) []unit.Overridden {
	if u.Broken != nil {
		return nil
	}
	return u.In(e.static).Overridden(e.static.Task(ctx))
}

// Shared identifies the files of the module. Units with the same files have the same result. It
// is nil if the module is not on this machine.
func (c *UnitConfig) Shared() any {
	if c.dir == nil {
		return nil
	}
	return c.dir.Parsed
}

// Origin returns the path of a file of the module, and whether the unit generates it.
func (c *UnitConfig) Origin(name string) (path string, generated bool) {
	path, layer := c.dir.Origin(name)
	return path, layer != ""
}
