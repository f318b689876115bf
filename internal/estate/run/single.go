package run

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
	"github.com/terrace-iac/terrace/internal/sys"
)

// A Single is a unit that a command works on by itself, in its working folder as in any
// folder.
type Single struct {
	t     *Turn
	looks bool // the folder was not made
}

// Single makes the working folder of a unit.
func (r *Runner) Single(ctx context.Context, u *discovery.Unit, o Observer) (*Single, diag.List) {
	t, ds := r.locate(ctx, u, o)
	if t == nil {
		return nil, ds
	}
	return &Single{t: t}, append(ds, t.dir.Make()...)
}

// Look is Single for a command that only looks: nothing is written, and Files is the
// working folder as it would be.
func (r *Runner) Look(ctx context.Context, u *discovery.Unit) (*Single, diag.List) {
	t, ds := r.locate(ctx, u, Observer{})
	if t == nil {
		return nil, ds
	}
	return &Single{t: t, looks: true}, ds
}

// locate finds out where the module of a unit is and what its working folder holds.
func (r *Runner) locate(ctx context.Context, u *discovery.Unit, o Observer) (*Turn, diag.List) {
	t := &Turn{execution: &execution{Runner: r, o: Options{Observe: o}}, Unit: u, res: &report.Result{Unit: u}, task: r.Loader.Task(ctx)}
	ds := r.First.Of(append(u.CheckRunner(t.task), u.Warnings(t.task)...))
	if ds.HasErrors() {
		return nil, ds
	}
	var more diag.List
	t.dir, more = r.Dirs.Dir(t.task, u.Unit, true)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	taken := func(name string) bool {
		root := t.dir.Root()
		return root == nil || root.Variables[name] != nil
	}
	if more = u.Using(taken).CheckSelf(t.task); more.HasErrors() {
		return nil, append(ds, more...)
	}
	if t.dir.Waits != "" {
		return nil, append(ds, diag.Errorf(nil, "Outputs are not known", "The unit's %s depends on outputs that are not known yet. Apply the units that it depends on first.", t.dir.Waits)...)
	}
	if t.dir.Terraform != nil {
		t.extra = arguments.Read(t.dir.Terraform.ExtraArguments, r.Command, t.dir.Locate)
	}
	t.credentials, more = r.Credentials.For(t.task, u.Unit)
	return t, append(ds, more...)
}

// Files is the working folder as it would be, read from where things lie; nil if it was
// made.
func (s *Single) Files() config.FS {
	if !s.looks {
		return nil
	}
	return s.t.dir.Files
}

// Dir is the working folder.
func (s *Single) Dir() string { return s.t.dir.Path }

// Home is the folder for what must outlive the working folder, which may be a cache.
func (s *Single) Home() string { return s.t.States.Home(s.t.dir.Unit) }

// Locate is where a file of the working folder comes from, as workdir.Dir.Origin tells it.
// s may be nil.
func (s *Single) Locate(name string) (path, layer string) {
	if s == nil {
		return name, ""
	}
	return s.t.dir.Origin(name)
}

// Secret are the generated files in the working folder whose text must not be shown.
func (s *Single) Secret() []string { return s.t.dir.Files.Secret }

// Values are the values of the variables that the module declares.
func (s *Single) Values(root *config.Module) (map[string]engine.InputValue, diag.List) {
	t := s.t
	values, waits, ds := inputs.Of(t.task, t.Unit.Unit, root.Variables)
	given, more := t.given(root.Variables)
	ds = append(ds, more...)
	inputs.Override(values, waits, given)
	if t.Inputs.Debug {
		ds = append(ds, inputs.WriteDebug(t.task, t.Unit.Unit, t.Unit.Name, root.Variables)...)
	}
	return values, append(ds, t.Unit.CheckInputs(t.task, inputs.Optional(root.Variables), t.Inputs.Strict)...)
}

// KeepLock copies the dependency lock file of the working folder to the unit's.
func (s *Single) KeepLock() diag.List { return s.t.dir.KeepLock() }

// Install runs init in the working folder, and keeps the lock file.
func (s *Single) Install(ctx context.Context) diag.List { return s.t.install(ctx) }

// CheckBackend says whether the module has the backend block that remote_state sets.
func (s *Single) CheckBackend() diag.List {
	return workdir.NoBackendBlock(s.t.Unit.Name, s.t.dir.Remote, s.t.dir.Root())
}

// BackendConfig are the arguments of init that a remote_state without generate
// stands for, as -backend-config has them.
func (s *Single) BackendConfig() []string { return backendArguments(s.t.dir) }

// Extra are the words and the environment that extra_arguments add to the command.
func (s *Single) Extra() (args, env []string) { return s.t.extra.Words, s.t.extra.Env }

// Programs is the environment of programs that run for the unit.
func (s *Single) Programs(ctx context.Context) sys.Env { return s.t.programs(ctx) }

// PreHooks runs the hooks that come before what the command needs is looked at.
func (s *Single) PreHooks(ctx context.Context) (code int, ds diag.List) {
	ds = s.t.preHooks(ctx)
	return s.t.res.Code, ds
}

// Hooks runs the hooks before or after the command. failed are the messages of the
// command, for hooks that run after it.
func (s *Single) Hooks(ctx context.Context, after bool, failed diag.List) (code int, ds diag.List) {
	s.t.res.Code = 0
	if after {
		ds = s.t.afterHooks(ctx, failed)
	} else {
		ds = s.t.beforeHooks(ctx)
	}
	return s.t.res.Code, ds
}

// Decide asks the unit's errors block about a failure.
func (s *Single) Decide(ctx context.Context, failed diag.List, try int) (retry.Decision, diag.List) {
	return s.t.decide(ctx, failed, try)
}

// Given are the values of variables that come by other ways than a unit's inputs.
func (r *Runner) Given(task *demand.Task, u *discovery.Unit, d *workdir.Dir, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	t := &Turn{execution: &execution{Runner: r}, Unit: u, task: task, dir: d}
	if d.Terraform != nil {
		t.extra = arguments.Read(d.Terraform.ExtraArguments, r.Command, d.Locate)
	}
	return t.given(declared)
}

// Engine opens an engine in a unit's directory, for what only evaluates its module.
func (r *Runner) Engine(ctx context.Context, task *demand.Task, d *workdir.Dir) (*engine.Engine, diag.List) {
	t := &Turn{execution: &execution{Runner: r}, Unit: &discovery.Unit{Unit: d.Unit}, task: task, dir: d}
	if d.Terraform != nil {
		t.extra = arguments.Read(d.Terraform.ExtraArguments, r.Command, d.Locate)
	}
	o := r.Host.engineOptions(t.folder(), d.Parsed, r.Machine.Now)
	o.Workspace = r.States.Workspace(d.Path)
	return engine.Open(ctx, o)
}
