package run

import (
	"context"

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
// A unit's state is where the unit's own turn has it: in the workspace that its environment
// selects, reached with its credentials, at a place and with keys that may be made of its
// inputs. A reader (outputs, moves, the commands on backends) therefore prepares the same Site
// that a turn prepares, and computes the inputs alone that the place and the keys are made of:
// all others may need units that are not applied yet, or not any more.

// Output is the command that extra_arguments name for readers of outputs, as in Terragrunt,
// which runs it in the unit.
const Output = "output"

// Site prepares a unit for a reader of its state. commands are those whose extra_arguments
// count; beside means that the command does not run on this unit.
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

// Place tells where the state of the unit is, for a reader. The module is opened where it says
// something about that. A module that cannot be read is an error with whole, or if nothing
// else says where the state is.
func (s *Site) Place(ctx context.Context, whole bool) (states.Place, diag.List) {
	var eng *engine.Engine
	var root *config.Module
	if rs := s.dir.Remote; whole || rs == nil || s.needsModule() {
		var ds diag.List
		if eng, ds = s.open(ctx); ds.HasErrors() && (eng == nil || eng.Tree() == nil) {
			return states.Place{}, ds
		}
		defer eng.Close()
		root = eng.Root()
	}
	return s.where(ctx, root, eng, nil)
}

// Bootstrap makes the store of the unit's state. Where there is nothing to be made, nothing
// says why.
func (s *Site) Bootstrap(ctx context.Context) (nothing string, ds diag.List) {
	return s.r.States.Bootstrap(ctx, s.unit.Name, s.dir, s.Environ())
}

// needsModule reports whether the module says something about the state beside remote_state:
// how it is encrypted, or arguments of the backend.
func (s *Site) needsModule() bool {
	root := s.dir.Root()
	return root != nil && (root.Encryption != nil || root.Backend != nil && s.dir.Remote.Generate == nil)
}

// open opens an engine that only evaluates the module.
func (s *Site) open(ctx context.Context) (*engine.Engine, diag.List) {
	return engine.Open(ctx, s.engine(s.Directory(), nil, nil))
}

// Given are the values of variables that come by other ways than a unit's inputs.
func (r *Runner) Given(task *demand.Task, u *discovery.Unit, d *workcopy.Dir, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	s := r.site(task, u)
	s.found(d, r.Command)
	return s.given(declared)
}
