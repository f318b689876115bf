package cli

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/archive"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/fetch"
	"github.com/terrace-iac/terrace/internal/funcs"
	"github.com/terrace-iac/terrace/internal/lock"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/module/installer"
	"github.com/terrace-iac/terrace/internal/oci"
	"github.com/terrace-iac/terrace/internal/registry"
	"github.com/terrace-iac/terrace/internal/transfer"
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
	return installModules(ctx, i.Call, moduleInstall{vars: i.o.vars, upgrade: i.o.upgrade, readonly: i.o.lockfile == "readonly", pin: i.o.lockModules, files: i.sources})
}

// A moduleInstall says how modules are installed.
type moduleInstall struct {
	vars     []vars.Flag
	upgrade  bool
	readonly bool // the lock file may not change
	pin      bool // pin remote modules in the lock file

	files *engine.Sources // of the working folder
}

// installModules installs what the configuration calls and keeps the lock file
// up where it pins modules.
func installModules(ctx context.Context, c *command.Call, m moduleInstall) diag.List {
	o, ds := moduleOptions(c, m)
	if ds.HasErrors() {
		return ds
	}
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
	t := newTransfers(c)
	if t != nil {
		o.Packages.Progress = t.module
	}
	res, more := installer.Install(ctx, c.Dir, o)
	t.end()
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

// files are the configuration files of the working folder as they are now, for
// steps that share what is loaded from them.
func files(c *command.Call) *engine.Sources { return &engine.Sources{FS: folder{c}} }

func moduleOptions(c *command.Call, m moduleInstall) (installer.Options, diag.List) {
	cfg, ds := settings(c)
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	workspace, ds := workspaceName(c)
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	given, ds := vars.Gather(vars.Sources{Dir: c.Dir, Env: c.Env, Flags: m.vars, Set: c.Report.Set})
	values := given.All()
	reg := registryClient(c, cfg)
	return installer.Options{
		DataDir: c.DataDir(),
		Tree: module.Options{
			Config: config.Options{FS: folder{c}, Set: c.Report.Set}, Loads: m.files.Loads(), Workspace: workspace,
			Variables: func(v *config.Variable) cty.Value { return staticInput(v, values) },
			Functions: func() map[string]function.Function {
				return funcs.Table(funcs.Config{BaseDir: c.Dir, Home: func() (string, error) { return homeOrError(c) }, Now: c.Now, PureOnly: true})
			},
		},
		Packages: fetcher(c, cfg), Registry: reg,
	}, ds
}

// staticInput is a given value of a variable for early evaluation.
func staticInput(v *config.Variable, values vars.Values) cty.Value {
	in, ok := values[v.Name]
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

// fetcher brings packages of modules here, through a cache for all folders.
func fetcher(c *command.Call, cfg *cliconfig.Config) *fetch.Fetcher {
	cache := c.DataPath("cache")
	if base := c.Env.Get("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		cache = filepath.Join(base, "terrace", "modules")
	} else if home := c.Home(); home != "" {
		cache = filepath.Join(home, ".cache", "terrace", "modules")
	}
	cache = cmp.Or(c.Env.Get("TERRACE_MODULE_CACHE_DIR"), cache)
	tokens := &oci.Store{Config: cfg, Env: c.Env, Home: c.Home(), WorkDir: c.Dir, Run: c.Run}
	return &fetch.Fetcher{
		Dir: c.Path(cache), WorkDir: c.Dir, Home: c.Home(), Env: c.Env, Run: c.Run,
		Client: transfer.New(c.Env), Now: c.Now, Limits: archive.Limits{}, OCI: tokens.Find,
	}
}

// registry asks registries, with the user's credentials.
func registryClient(c *command.Call, cfg *cliconfig.Config) *registry.Client {
	program := ""
	if exe, err := c.Executable(); err == nil {
		program = filepath.Dir(exe)
	}
	return &registry.Client{
		HTTP: transfer.New(c.Env), Config: cfg, Run: c.Run, Env: c.Env, WorkDir: c.Dir,
		HelperDirs: registry.HelperDirs(cfg.Dir, program),
	}
}
