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

// A Site is the environment in which a unit runs: its working directory, environment variables,
// and the flags and values of variables that the unit's file adds. A Site runs nothing itself.
type Site struct {
	r      *Runner
	unit   *discovery.Unit
	task   *demand.Task
	asking *sync.Mutex // held while value uses task

	dir         *workcopy.UnitDirectory
	credentials []string // environment variables in the form NAME=VALUE
	extra       arguments.Extra
	unchecked   bool // the inputs are not checked
	beside      bool // the command runs on other units, which depend on this one
}

// site returns the Site of a unit, without its working directory.
func (r *Runner) site(task *demand.Task, u *discovery.Unit) *Site {
	return &Site{r: r, unit: u, task: task, asking: &sync.Mutex{}}
}

// found sets the working directory, and reads the extra_arguments of the unit's file for the
// given commands.
func (s *Site) found(d *workcopy.UnitDirectory, commands ...string) {
	s.dir = d
	if d.Terraform != nil {
		s.extra = arguments.Read(d.Terraform.ExtraArguments, d.Locate, commands...)
	}
}

// UnitDir returns the directory of the unit's file.
func (s *Site) UnitDir() string { return s.unit.Dir }

// prepare sets the working directory and everything that the state of the unit is opened with:
// the unit's environment, its credentials and its extra_arguments. The workspace and the values
// of variables depend on these. The unit's own turn calls prepare with its command; every reader
// of the state does the same, see Runner.Site.
func (s *Site) prepare(d *workcopy.UnitDirectory, commands ...string) (ds diag.List) {
	s.found(d, commands...)
	s.credentials, ds = s.r.Credentials.For(s.task, s.unit.Unit)
	return ds
}

// forInit returns a copy of the site with the arguments that the environment and the unit's file
// add to init. init also runs automatically before other commands.
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

// Dir returns the path of the working directory.
func (s *Site) Dir() string { return s.dir.Path }

// Home returns the directory for data that must outlive the working directory, which may be in a
// cache.
func (s *Site) Home() string { return s.r.States.Home(s.dir.Unit) }

// Files returns the files of the working directory, read from their sources. Each configuration
// file is opened once.
func (s *Site) Files() config.FS { return s.dir.Files }

// Sources returns the configuration in the working directory.
func (s *Site) Sources() *engine.Sources { return &s.dir.Parsed.Sources }

// Secret returns the generated files in the working directory whose text must not be shown.
func (s *Site) Secret() []string { return s.dir.Files.Secret }

// Source returns the origin of a file of the working directory; see workcopy.UnitDirectory.Origin.
func (s *Site) Source(name string) (path, layer string) { return s.dir.Origin(name) }

// Words returns the command-line arguments that extra_arguments add to the command.
func (s *Site) Words() []string { return s.extra.Words }

// Backend returns the -backend-config arguments of init that correspond to a remote_state block
// without generate.
func (s *Site) Backend() []string { return s.r.States.Arguments(s.dir.Remote) }

// Environ returns the environment of the unit.
func (s *Site) Environ() sys.Env {
	if len(s.credentials)+len(s.extra.Env) == 0 {
		return s.r.Machine.Environ
	}
	return s.r.Machine.Environ.With(append(s.credentials[:len(s.credentials):len(s.credentials)], s.extra.Env...)...)
}

// ofPrograms returns the environment of the programs that run for the unit: hooks, and programs
// started by provisioners. It contains the unit's inputs.
func (s *Site) ofPrograms(ctx context.Context) sys.Env {
	return s.Environ().With(inputs.Environ(s.r.Loader.Task(ctx), s.unit.Unit, s.r.Machine.Environ)...)
}

// Directory returns the working directory in the form that commands use.
func (s *Site) Directory() *workdir.Directory {
	d := s.directory(siteUnit{s})
	d.Sources, d.Keep = s.Sources(), s.Home()
	return d
}

func (s *Site) directory(u workdir.UnitSettings) *workdir.Directory {
	return s.r.Host.In(s.dir.Path, s.Environ(), u)
}

// value returns the value of the variable v and computes no other input. Flags that the user
// gives to other units are used only if v is required and nothing else sets it. value evaluates
// with the task of the site, so that a cycle through another unit is detected and an interrupt
// ends the evaluation.
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

// flags returns the values that the user gives to variables on the command line, for any units.
func (s *Site) flags() []workdir.VarFlag {
	return slices.Concat(s.r.Host.Vars.typed(), s.r.Host.VarsOfCommand.typed())
}

// static returns a function that evaluates expressions of the module before planning. values
// contains the values of all variables. nil means that they were not computed. Each variable is
// then computed when an expression refers to it, so that a reader of the state needs no other
// input.
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

// variables returns the values of the variables that a module declares. Values from other sources
// override the inputs. waits contains the inputs whose values contain an unknown.
func (s *Site) variables(declared map[string]*config.Variable) (values map[string]engine.InputValue, waits []*unit.Setting, ds diag.List) {
	values, waits, ds = inputs.Of(s.task, s.unit.Unit, declared)
	if s.unchecked { // the command works without the inputs, unless the backend uses one
		ds = ds.Warnings()
	}
	given, more := s.given(declared)
	return values, inputs.Override(values, waits, given), append(ds, more...)
}

// given returns the values of variables that do not come from inputs.
func (s *Site) given(declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	return workdir.CollectVariables(s.sources(), declared)
}

// sources returns the sources of values other than inputs. The user's flags apply only to units
// that the command runs on.
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

// checkInputs checks the inputs against the variables that the module declares.
func (s *Site) checkInputs(declared map[string]*config.Variable) diag.List {
	var ds diag.List
	if s.r.Inputs.Debug {
		ds = inputs.WriteDebug(s.task, s.unit.Unit, s.unit.Called(), declared)
	}
	return append(ds, s.unit.CheckInputs(s.task, inputs.Optional(declared), s.r.Inputs.Strict)...)
}

// engine returns the options of an engine in the working directory.
func (s *Site) engine(at *workdir.Directory, plugins *workdir.Plugins, encrypted workdir.Encrypted) engine.Options {
	o := s.r.Host.Engine(at, plugins, encrypted)
	o.Set, o.Sources, o.Files, o.Now = s.dir.Parsed.Set, &s.dir.Parsed.Sources, s.dir.Files, s.r.Machine.Now
	o.Workspace = s.r.States.Workspace(s.dir.Path, at.Env)
	o.Value = siteUnit{s}.One
	return o
}

// where returns the location of the unit's state; see states.Keeper. root is the unit's module,
// and eng an engine that has it open; either may be nil. values are as for static.
func (s *Site) where(ctx context.Context, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (states.Location, diag.List) {
	p, ds := s.r.States.Where(ctx, s.unit.Name, s.dir, root, s.static(ctx, eng, values), s.Environ())
	p.Config.Renew = s.r.Credentials.Renewing(s.r.Loader, s.unit.Unit, s.extra.Env...)
	return p, ds
}
