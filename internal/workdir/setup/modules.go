package setup

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/lang/module/installer"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// initModules installs the modules that the configuration and the test files call.
func (i *initializer) initModules(ctx context.Context) diag.List {
	what := "Initializing"
	if i.o.Upgrade {
		what = "Upgrading"
	}
	i.view.Say(what + " modules...\n")
	return InstallModules(ctx, i.c, i.view, Modules{Vars: i.o.Vars, Upgrade: i.o.Upgrade, Readonly: i.readonly(), Pin: i.o.Pin, Tests: i.tests})
}

// Modules configures InstallModules.
type Modules struct {
	Vars     []workdir.VarFlag
	Upgrade  bool
	Readonly bool // do not change the dependency lock file
	Pin      bool // pin remote modules in the dependency lock file

	Tests []*testfile.File
}

// InstallModules installs the modules that the configuration and the test files call. It updates the
// dependency lock file if that file pins modules. c.Sources must not be nil.
func InstallModules(ctx context.Context, c *workdir.Directory, v View, m Modules) diag.List {
	o, ds := moduleOptions(ctx, c, m)
	if ds.HasErrors() {
		return ds
	}
	o.Tests = testrun.Calls(m.Tests)
	o.Upgrade, o.LockOnly, o.LockModules = m.Upgrade, m.Readonly, m.Pin
	path := c.Path(lock.Name)
	locked, ds := lock.Read(c.Files, path)
	if ds.HasErrors() {
		return ds
	}
	o.Lock = locked
	before, _ := installer.ReadManifest(c.Files, c.DataPath())
	o.Progress = func(e installer.Event) {
		if have, ok := before[e.Key]; e.Kind == installer.Ready && ok && have.Dir == e.Dir && !m.Upgrade {
			return // the module was already installed
		}
		v.Human(e.Text() + "\n")
		if e.Kind == installer.Ready {
			v.Log("installing " + e.Key + " in " + e.Dir)
			return
		}
		v.Log(e.Text())
	}
	t := v.Transfer()
	o.Packages.Progress = t.Module
	res, more := installer.Install(ctx, c.Dir, o)
	t.End()
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if !o.LockOnly && res.Lock != nil && !res.Lock.Equal(locked) {
		if err := lock.Write(path, res.Lock); err != nil {
			return append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write dependency lock file", "The dependency lock file cannot be written: %s.", err)...)
		}
	}
	return ds
}

func moduleOptions(ctx context.Context, c *workdir.Directory, m Modules) (installer.Options, diag.List) {
	cfg, ds := c.Settings()
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	workspace, ds := c.Workspace()
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	given, ds := workdir.GatherVariables(workdir.VarSources{Dir: c.Dir, Env: c.Env, Flags: m.Vars, Set: c.Set, Read: c.Files})
	value := c.ValueOf(given.All())
	reg := c.Registry(cfg)
	return installer.Options{
		DataDir: c.DataDir(),
		Tree: module.Options{
			Config: config.Options{FS: c.OnDisk(), Set: c.Set}, Loads: c.Sources.Loads(), Workspace: workspace,
			Variables: func(v *config.Variable) cty.Value { return staticInput(ctx, v, value) },
			Functions: func() map[string]function.Function {
				return funcs.Table(funcs.Config{BaseDir: c.Dir, Home: c.HomeOrError, Now: c.Now, PureOnly: true, ReadFile: c.Files.Whole})
			},
		},
		Packages: c.Fetcher(cfg), Read: c.Files, Registry: reg,
	}, ds
}

// staticInput returns the value of a variable, converted to its type, for the evaluation of module
// sources. It returns cty.NilVal if there is no value or if the value is invalid.
func staticInput(ctx context.Context, v *config.Variable, value engine.ValueFunc) cty.Value {
	in, ok := value(ctx, v)
	if !ok {
		return cty.NilVal
	}
	got, ds := workdir.ReadVariable(v, in)
	if ds.HasErrors() {
		return cty.NilVal
	}
	if conv, err := convert.Convert(got, v.Type); err == nil {
		return conv
	}
	return cty.NilVal
}
