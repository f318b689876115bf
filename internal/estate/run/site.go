package run

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// A Site is where a unit runs: its working directory, with the environment, the flags and
// the values of variables that its file adds to a command there. Nothing is run by it.
type Site struct {
	r      *Runner
	unit   *discovery.Unit
	task   *demand.Task
	asking *sync.Mutex // held while task is used by value

	dir         *workcopy.Dir
	credentials []string // environment
	extra       arguments.Extra
	unchecked   bool // the inputs are not what it is about
	beside      bool // the command runs on other units, which need this one
}

// site is where a unit runs. Its working directory is not known yet.
func (r *Runner) site(task *demand.Task, u *discovery.Unit) *Site {
	return &Site{r: r, unit: u, task: task, asking: &sync.Mutex{}}
}

// found takes the working directory, and reads what the unit's file adds to commands.
func (s *Site) found(d *workcopy.Dir, commands ...string) {
	s.dir = d
	if d.Terraform != nil {
		s.extra = arguments.Read(d.Terraform.ExtraArguments, d.Locate, commands...)
	}
}

// prepare takes the working directory and sets up what the state of the unit is opened with:
// the environment of the unit, with its credentials and what its file adds to commands. The
// workspace and the values of variables follow from it. The unit's own turn calls prepare with
// its command; so does every reader of the state, see Runner.Site.
func (s *Site) prepare(d *workcopy.Dir, commands ...string) (ds diag.List) {
	s.found(d, commands...)
	s.credentials, ds = s.r.Credentials.For(s.task, s.unit.Unit)
	return ds
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

// Source is where a file of the working directory comes from, as workcopy.Dir.Origin tells
// it.
func (s *Site) Source(name string) (path, layer string) { return s.dir.Origin(name) }

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

// ofPrograms is the environment of the programs that run for the unit: hooks, and what its
// module's provisioners start. Its inputs are in it.
func (s *Site) ofPrograms(ctx context.Context) sys.Env {
	return s.Environ().With(inputs.Environ(s.r.Loader.Task(ctx), s.unit.Unit, s.r.Machine.Environ)...)
}

// Directory is the working directory as the program works in it.
func (s *Site) Directory() *workdir.Directory {
	d := s.directory(siteUnit{s})
	d.Sources, d.Keep = s.Sources(), s.Home()
	return d
}

func (s *Site) directory(u workdir.Unit) *workdir.Directory {
	return s.r.Host.In(s.dir.Path, s.Environ(), u)
}

// Origin tells where the unit's values come from.
func (s *Site) Origin() explanation.Unit { return s.unit.Origin(s.task) }

// value returns the value of one variable, and computes no other input. What the user gives by
// flags to other units counts only if nothing else gives a required variable a value. It evaluates with the
// task of the site, so that a cycle through another unit is found and an interrupt ends it.
func (s *Site) value(v *config.Variable) (in engine.InputValue, ok bool, ds diag.List) {
	s.asking.Lock()
	defer s.asking.Unlock()
	from := s.sources()
	if !s.beside {
		from.Flags = append(from.Flags, s.r.Host.VarsOfCommand.typed()...)
	}
	given, ds := workdir.GatherVariables(from)
	if in, ok = given.All()[v.Name]; ok {
		return in, true, ds
	}
	values, _, more := inputs.Of(s.task, s.unit.Unit, map[string]*config.Variable{v.Name: v})
	ds = append(ds, more...)
	if in, ok = values[v.Name]; ok || !v.Required() {
		return in, ok, ds
	}
	others, more := workdir.GatherVariables(workdir.VarSources{Flags: s.flags(), Set: s.r.Host.Texts, Read: s.r.Host.Files()})
	in, ok = others.All()[v.Name]
	return in, ok, append(ds, more...)
}

// flags returns what the user gives to variables on the command line, to whichever units.
func (s *Site) flags() []workdir.VarFlag {
	return slices.Concat(s.r.Host.Vars.typed(), s.r.Host.VarsOfCommand.typed())
}

// static evaluates expressions of the module before anything is planned. values are those of
// all variables; nil means that they were not computed: then each is when an expression refers
// to it, so that a reader of the state needs no other input.
func (s *Site) static(ctx context.Context, eng *engine.Engine, values map[string]engine.InputValue) configure.Eval {
	if eng == nil {
		return nil
	}
	return func(x hcl.Expression) (cty.Value, diag.List) {
		if values != nil {
			return eng.Static(ctx, engine.Given(values), x)
		}
		var wrong diag.List
		v, ds := eng.Static(ctx, func(_ context.Context, v *config.Variable) (engine.InputValue, bool) {
			in, ok, ds := s.value(v)
			wrong = append(wrong, ds.Errors()...)
			return in, ok
		}, x)
		if len(wrong) > 0 {
			return cty.DynamicVal, wrong
		}
		return v, ds
	}
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
	return workdir.CollectVariables(s.sources(), declared)
}

// sources are where values come from besides inputs. What the user gives by flags is for the
// units that the command runs on.
func (s *Site) sources() workdir.VarSources {
	all := s.r.Host.Vars
	if s.beside {
		all.Flags = all.Flags[:all.First]
	}
	from := workdir.VarSources{Env: s.Environ(), Flags: all.around(s.extra.Vars), Set: s.r.Host.Texts, Read: s.r.Host.Files()}
	if s.dir.HasValues() {
		from.Dir, from.FS = s.dir.Path, s.dir.Files
	}
	return from
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
func (s *Site) engine(at *workdir.Directory, plugins *workdir.Plugins, encrypted workdir.Encrypted) engine.Options {
	o := s.r.Host.Engine(at, plugins, encrypted)
	o.Set, o.Sources, o.Now = s.dir.Parsed.Set, &s.dir.Parsed.Sources, s.r.Machine.Now
	o.Workspace = s.r.States.Workspace(s.dir.Path, at.Env)
	o.Value = siteUnit{s}.One
	return o
}

// where tells where the state of the unit is; see states.Keeper. root is its module and eng
// has it open, nil where they are not known; values are as for static.
func (s *Site) where(ctx context.Context, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (states.Place, diag.List) {
	p, ds := s.r.States.Where(ctx, s.unit.Name, s.dir, root, s.static(ctx, eng, values), s.Environ())
	p.Config.Renew = s.r.Credentials.Renewing(s.r.Loader, s.unit.Unit, s.extra.Env...)
	return p, ds
}
