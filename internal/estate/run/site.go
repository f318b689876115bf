package run

import (
	"context"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
	"github.com/terrace-iac/terrace/internal/folder"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/internal/vars"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// A Site is where a unit runs: its working directory, with the environment, the flags and
// the values of variables that its file adds to a command there. Nothing is run by it.
type Site struct {
	r    *Runner
	unit *discovery.Unit
	task *demand.Task

	dir         *workdir.Dir
	credentials []string // environment
	extra       arguments.Extra
	unchecked   bool // the inputs are not what it is about
}

// site is where a unit runs whose working directory is known.
func (r *Runner) site(task *demand.Task, u *discovery.Unit, d *workdir.Dir) *Site {
	s := &Site{r: r, unit: u, task: task}
	s.found(d)
	return s
}

// found takes the working directory.
func (s *Site) found(d *workdir.Dir) {
	s.dir = d
	s.adds(d)
}

// adds reads what the unit's file adds to the command.
func (s *Site) adds(d *workdir.Dir) {
	if d.Terraform != nil {
		s.extra = arguments.Read(d.Terraform.ExtraArguments, s.r.Command, d.Locate)
	}
}

// forInit is the site with what the environment and the unit's file add to init, which
// runs before other commands too.
func (s *Site) forInit() (*Site, diag.List) {
	n := *s
	var blocks []unit.ExtraArguments
	if s.dir.Terraform != nil {
		blocks = s.dir.Terraform.ExtraArguments
	}
	var ds diag.List
	n.extra, ds = arguments.Init(s.Environ(), blocks, s.dir.Locate)
	return &n, ds
}

// Dir is the working directory.
func (s *Site) Dir() string { return s.dir.Path }

// Home is the folder for what must outlive the working directory, which may be a cache.
func (s *Site) Home() string { return s.r.States.Home(s.dir.Unit) }

// Files is the working directory as it is read, from where things lie. Each file of
// configuration is opened once.
func (s *Site) Files() config.FS { return s.dir.Files }

// Sources is the configuration in the working directory.
func (s *Site) Sources() *engine.Sources { return &s.dir.Parsed.Sources }

// Secret are the generated files in the working directory whose text must not be shown.
func (s *Site) Secret() []string { return s.dir.Files.Secret }

// Locate is where a file of the working directory comes from, as workdir.Dir.Origin tells
// it.
func (s *Site) Locate(name string) (path, layer string) { return s.dir.Origin(name) }

// Words are what extra_arguments add to the words of the command.
func (s *Site) Words() []string { return s.extra.Words }

// Backend are the arguments of init that a remote_state without generate stands for, as
// -backend-config has them.
func (s *Site) Backend() []string { return s.r.States.Arguments(s.dir.Remote) }

// Environ is the environment of the unit.
func (s *Site) Environ() sys.Env {
	if len(s.credentials)+len(s.extra.Env) == 0 {
		return s.r.Machine.Environ
	}
	return s.r.Machine.Environ.With(append(s.credentials[:len(s.credentials):len(s.credentials)], s.extra.Env...)...)
}

// Programs is the environment of the programs that run for the unit: hooks, and what its
// module's provisioners start. Its inputs are in it.
func (s *Site) Programs(ctx context.Context) sys.Env {
	return s.Environ().With(inputs.Environ(s.r.Loader.Task(ctx), s.unit.Unit, s.r.Machine.Environ)...)
}

// Folder is the working directory as the program works in it.
func (s *Site) Folder() *folder.Folder {
	f := s.r.Host.In(s.dir.Path, s.Environ(), func() sys.Env { return s.Programs(context.Background()) })
	f.Locate = s.OfBackend
	return f
}

// OfBackend gives messages about the backend their place in the unit's remote_state.
func (s *Site) OfBackend(ds diag.List) diag.List { return states.Located(s.dir.Remote, ds) }

// Moves are those between units that the unit has a part in.
func (s *Site) Moves() operation.Moves { return s.r.Moves.Of(s.unit.ID) }

// Refer is the value of a reference in the language of units, seen from the unit.
func (s *Site) Refer(ref hcl.Traversal) (cty.Value, diag.List) {
	return s.unit.Refer(s.task, ref)
}

// Origin tells where the unit's values come from.
func (s *Site) Origin() explanation.Unit { return s.unit.Origin(s.task) }

// Values are the values that the unit, and what extra_arguments add, give the variables
// that a module declares. What is wrong with them is reported as before a run.
func (s *Site) Values(root *config.Module) (map[string]engine.InputValue, diag.List) {
	values, _, ds := s.variables(root.Variables)
	if s.unchecked {
		return values, ds
	}
	return values, append(ds, s.checkInputs(root.Variables)...).Once()
}

// Value is the one that a variable has, alone: sources of modules are made of some while
// the module is loaded. What is wrong with it is said with all the others.
func (s *Site) Value(v *config.Variable) (engine.InputValue, bool) {
	alone := map[string]*config.Variable{v.Name: v}
	if given, _ := s.given(alone); len(given) > 0 {
		return given[v.Name], true
	}
	values, _, ds := inputs.Of(s.r.Loader.Task(context.Background()), s.unit.Unit, alone)
	in, ok := values[v.Name]
	return in, ok && !ds.HasErrors()
}

// variables are the values of the variables that a module declares: inputs, and over them
// what comes by other ways. waits are the inputs with something unknown in them.
func (s *Site) variables(declared map[string]*config.Variable) (values map[string]engine.InputValue, waits []*unit.Setting, ds diag.List) {
	values, waits, ds = inputs.Of(s.task, s.unit.Unit, declared)
	given, more := s.given(declared)
	return values, inputs.Override(values, waits, given), append(ds, more...)
}

// given are the values that come by other ways than inputs.
func (s *Site) given(declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	all, first := s.r.Host.Vars, s.r.Host.VarsFirst
	from := vars.Sources{Env: s.Environ(), Flags: slices.Concat(all[:first], s.extra.Vars, all[first:]), Set: s.r.Host.Texts, Read: s.r.Host.Files()}
	if s.dir.HasValues() {
		from.Dir, from.FS = s.dir.Path, s.dir.Files
	}
	return vars.Collect(from, declared)
}

// checkInputs holds the inputs to what the module declares.
func (s *Site) checkInputs(declared map[string]*config.Variable) diag.List {
	var ds diag.List
	if s.r.Inputs.Debug {
		ds = inputs.WriteDebug(s.task, s.unit.Unit, s.unit.Called(), declared)
	}
	return append(ds, s.unit.CheckInputs(s.task, inputs.Optional(declared), s.r.Inputs.Strict)...)
}

// engine are the options of an engine in the working directory.
func (s *Site) engine(at *folder.Folder, plugins *folder.Plugins, encrypted folder.Encrypted) engine.Options {
	o := s.r.Host.Engine(at, plugins, encrypted)
	o.Set, o.Sources, o.Now = s.dir.Parsed.Set, &s.dir.Parsed.Sources, s.r.Machine.Now
	o.Workspace = s.r.States.Workspace(s.dir.Path, at.Env)
	if s.r.Loader != nil { // else nothing is asked of the unit
		o.Value = s.Value
	}
	return o
}

// where tells where the state of the unit is that runs in a directory; see states.Keeper.
func (s *Site) where(ctx context.Context, d *workdir.Dir, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (states.Place, diag.List) {
	p, ds := s.r.States.Where(ctx, s.unit.Name, d, root, eng, values, s.Environ())
	p.Config.Renew = s.r.Credentials.Renewing(s.r.Loader, s.unit.Unit, s.extra.Env...)
	return p, ds
}

// Note notes where the state of the unit is that an apply is about to change, if the unit's
// files do not say so without outputs.
func (s *Site) Note(ctx context.Context, at backend.Config, workspace string) diag.List {
	task, in := s.r.Static.Task(ctx), s.unit.In(s.r.Static)
	rs, ds := in.RemoteState(task)
	if ds.HasErrors() || (rs == nil || unit.Known(rs.Config)) && s.r.Dirs.Module(task, in).Whole {
		return nil
	}
	if err := s.r.States.Note(s.dir.Path, at, workspace); err != nil {
		return diag.Errorf(nil, "Failed to note where the state is", "%s.", err)
	}
	return nil
}
