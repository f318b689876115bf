package initialize

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/project"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/funcs"
	"github.com/terrace-iac/terrace/internal/lock"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/module/installer"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/vars"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// initModules installs what the configuration calls.
func (i *initializer) initModules(ctx context.Context) diag.List {
	what := "Initializing"
	if i.o.upgrade {
		what = "Upgrading"
	}
	i.Report.Say(what + " modules...\n")
	return installModules(ctx, i.Call, moduleInstall{vars: i.o.vars, upgrade: i.o.upgrade, readonly: i.o.lockfile == "readonly", pin: i.o.lockModules, files: i.sources, tests: i.tests})
}

// A moduleInstall says how modules are installed.
type moduleInstall struct {
	vars     []vars.Flag
	upgrade  bool
	readonly bool // the lock file may not change
	pin      bool // pin remote modules in the lock file

	files *engine.Sources // of the working folder
	tests []*testfile.File
}

// installModules installs what the configuration calls and keeps the lock file
// up where it pins modules.
func installModules(ctx context.Context, c *command.Call, m moduleInstall) diag.List {
	o, ds := moduleOptions(c, m)
	if ds.HasErrors() {
		return ds
	}
	o.Tests = testrun.Calls(m.tests)
	o.Upgrade, o.LockOnly, o.LockModules = m.upgrade, m.readonly, m.pin
	path := c.Path(lock.Name)
	locked, ds := lock.Read(path)
	if ds.HasErrors() {
		return ds
	}
	o.Lock = locked
	before, _ := installer.ReadManifest(c.DataPath())
	o.Progress = func(e installer.Event) {
		if have, ok := before[e.Key]; e.Kind == installer.Ready && ok && have.Dir == e.Dir && !m.upgrade {
			return // as it was
		}
		moduleEvent(c, e)
	}
	t := project.NewTransfers(c)
	if t != nil {
		o.Packages.Progress = t.Module
	}
	res, more := installer.Install(ctx, c.Dir, o)
	t.End()
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if !o.LockOnly && res.Lock != nil && !res.Lock.Equal(locked) {
		if err := lock.Write(path, res.Lock); err != nil {
			return append(ds, diag.Errorf(nil, "Failed to write dependency lock file", "The dependency lock file cannot be written: %s.", err)...)
		}
	}
	return ds
}

func moduleEvent(c *command.Call, e installer.Event) {
	c.Report.Human.Say(e.Text() + "\n")
	if e.Kind == installer.Ready {
		c.Report.Stream.Log("installing " + e.Key + " in " + e.Dir)
		return
	}
	c.Report.Stream.Log(e.Text())
}

func moduleOptions(c *command.Call, m moduleInstall) (installer.Options, diag.List) {
	cfg, ds := c.Folder().Settings()
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	workspace, ds := c.Folder().Workspace()
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	given, ds := vars.Gather(vars.Sources{Dir: c.Dir, Env: c.Env, Flags: m.vars, Set: c.Report.Set})
	value := c.ValueOf(given.All())
	reg := c.Folder().Registry(cfg)
	return installer.Options{
		DataDir: c.DataDir(),
		Tree: module.Options{
			Config: config.Options{FS: project.Folder{Call: c}, Set: c.Report.Set}, Loads: m.files.Loads(), Workspace: workspace,
			Variables: func(v *config.Variable) cty.Value { return staticInput(v, value) },
			Functions: func() map[string]function.Function {
				return funcs.Table(funcs.Config{BaseDir: c.Dir, Home: c.Folder().HomeOrError, Now: c.Now, PureOnly: true})
			},
		},
		Packages: c.Folder().Fetcher(cfg), Registry: reg,
	}, ds
}

// staticInput is a given value of a variable for early evaluation.
func staticInput(v *config.Variable, value func(*config.Variable) (engine.InputValue, bool)) cty.Value {
	in, ok := value(v)
	if !ok {
		return cty.NilVal
	}
	got, ds := vars.Read(v, in)
	if ds.HasErrors() {
		return cty.NilVal
	}
	if conv, err := convert.Convert(got, v.Type); err == nil {
		return conv
	}
	return cty.NilVal
}
