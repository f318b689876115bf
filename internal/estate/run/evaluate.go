package run

import (
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
)

// # The state of another unit
//
// The state of a unit is in the workspace that the unit's environment selects. It is reached with
// the unit's credentials. Its location and its keys may depend on the unit's inputs. A reader of
// the state (outputs, moves, the commands on backends) therefore prepares the same Site as a
// turn. It evaluates only the inputs that the location and the keys depend on, because the other
// inputs may need units that are not applied yet or that are already destroyed.

// Output is the command whose extra_arguments apply to readers of outputs. Terragrunt runs this
// command in the unit to read them.
const Output = "output"

// Site prepares the unit u for a reader of its state. The extra_arguments of the given commands
// apply. beside means that the command of the run does not run on this unit. Site returns an error
// if the location of the state depends on outputs that are not known yet.
func (r *Runner) Site(task *demand.Task, u *discovery.Unit, beside bool, commands ...string) (*Site, diag.List) {
	d, ds := r.Dirs.Dir(task, u.Unit, true)
	if ds.HasErrors() {
		return nil, ds
	}
	waits := d.Waits
	if tf := d.Terraform; waits == "" && tf != nil {
		for _, x := range tf.ExtraArguments {
			if x.Late && arguments.About(x, commands...) {
				waits = "the extra_arguments block \"" + x.Name + "\""
			}
		}
	}
	if waits != "" {
		return nil, append(ds, diag.Errorf(diag.CodeEstateStatePlace, nil, "Place of the state is not known", "The state of the unit %s cannot be read, since this depends on outputs that are not known yet: %s.", u.Called(), waits)...)
	}
	s := r.site(task, u)
	s.beside = beside
	return s, append(ds, s.prepare(d, commands...)...)
}

// Place returns the location of the unit's state. It opens the module only if the module affects
// the location. If whole is set, or if only the module specifies the location, a module that
// cannot be read is an error.
//
// The messages and the location have the absolute paths of files; see Outside.
func (s *Site) Place(ctx context.Context, whole bool) (states.Location, diag.List) {
	p, ds := s.place(ctx, whole)
	if p.At != nil {
		at := *p.At
		at.Filename = s.outside(at.Filename)
		p.At = &at
	}
	return p, s.Outside(ds)
}

func (s *Site) place(ctx context.Context, whole bool) (states.Location, diag.List) {
	var eng *engine.Engine
	var root *config.Module
	if rs := s.dir.Remote; whole || rs == nil || s.needsModule() {
		var ds diag.List
		if eng, ds = s.open(ctx); ds.HasErrors() && (eng == nil || eng.Tree() == nil) {
			return states.Location{}, ds
		}
		defer eng.Close()
		root = eng.Root()
	}
	return s.where(ctx, root, eng, nil)
}

// Bootstrap creates the store of the unit's state. If there is nothing to create, nothing is the
// reason.
func (s *Site) Bootstrap(ctx context.Context) (nothing string, ds diag.List) {
	nothing, ds = s.r.States.Bootstrap(ctx, s.unit.Name, s.dir, s.Environ())
	return nothing, s.Outside(ds)
}

// Outside returns messages about the directory for a reader in another directory: file names that
// are relative to this directory become absolute, and the reader can show the lines of the files.
func (s *Site) Outside(ds diag.List) diag.List { return ds.Rename(s.outside) }

// outside returns the absolute path of a file of the directory, and adds its text to the files
// that the reader can show.
func (s *Site) outside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	path := s.dir.Locate(name)
	s.r.Loader.Sources().Adopt(path, s.dir.Parsed.Set, name)
	return path
}

// needsModule reports whether the module affects the state in addition to remote_state: by its
// encryption, or by arguments of its backend block.
func (s *Site) needsModule() bool {
	root := s.dir.Root()
	return root != nil && (root.Encryption != nil || root.Backend != nil && s.dir.Remote.Generate == nil)
}

// open opens an engine that is only used to evaluate the module.
func (s *Site) open(ctx context.Context) (*engine.Engine, diag.List) {
	return engine.Open(ctx, s.engine(s.Directory(), nil, nil))
}

// Given returns the values of variables that are set by anything but the unit's inputs, such as
// the environment, flags and variable files.
func (r *Runner) Given(task *demand.Task, u *discovery.Unit, d *workcopy.UnitDirectory, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	s := r.site(task, u)
	s.found(d, r.Command)
	return s.given(declared)
}
