package cli

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/archive"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/fetch"
	"github.com/terrace-iac/terrace/internal/lock"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/module/installer"
	"github.com/terrace-iac/terrace/internal/oci"
	"github.com/terrace-iac/terrace/internal/registry"
	"github.com/terrace-iac/terrace/internal/transfer"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// initModules installs what the configuration calls.
func (i *initializer) initModules(ctx context.Context) diag.List {
	what := "Initializing"
	if i.o.upgrade {
		what = "Upgrading"
	}
	i.say(what + " modules...\n")
	return i.installModules(ctx, moduleInstall{vars: i.o.vars, upgrade: i.o.upgrade, readonly: i.o.lockfile == "readonly", pin: i.o.lockModules, files: i.sources})
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
func (s *session) installModules(ctx context.Context, m moduleInstall) diag.List {
	o, ds := s.moduleOptions(m)
	if ds.HasErrors() {
		return ds
	}
	o.Upgrade, o.LockOnly, o.LockModules = m.upgrade, m.readonly, m.pin
	path := s.Path(lock.Name)
	locked, ds := lock.Read(path)
	if ds.HasErrors() {
		return ds
	}
	o.Lock = locked
	before, _ := installer.ReadManifest(s.dataPath())
	o.Progress = func(e installer.Event) {
		if have, ok := before[e.Key]; e.Kind == installer.Ready && ok && have.Dir == e.Dir && !m.upgrade {
			return // as it was
		}
		s.moduleEvent(e)
	}
	t := s.newTransfers()
	if t != nil {
		o.Packages.Progress = t.module
	}
	res, more := installer.Install(ctx, s.Dir, o)
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

func (s *session) moduleEvent(e installer.Event) {
	s.human.Say(e.Text() + "\n")
	if e.Kind == installer.Ready {
		s.stream.Log("installing " + e.Key + " in " + e.Dir)
		return
	}
	s.stream.Log(e.Text())
}

// files are the configuration files of the working folder as they are now, for
// steps that share what is loaded from them.
func (s *session) files() *engine.Sources { return &engine.Sources{FS: folder{s}} }

func (s *session) moduleOptions(m moduleInstall) (installer.Options, diag.List) {
	cfg, ds := s.settings()
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	workspace, ds := s.workspaceName()
	if ds.HasErrors() {
		return installer.Options{}, ds
	}
	given, ds := vars.Gather(vars.Sources{Dir: s.Dir, Env: s.Env, Flags: m.vars, Set: s.set})
	values := given.All()
	reg := s.registry(cfg)
	return installer.Options{
		DataDir: s.dataDir(),
		Tree: module.Options{
			Config: config.Options{FS: folder{s}, Set: s.set}, Loads: m.files.Loads(), Workspace: workspace,
			Variables: func(v *config.Variable) cty.Value { return staticInput(v, values) },
		},
		Packages: s.fetcher(cfg), Registry: reg,
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
func (s *session) fetcher(cfg *cliconfig.Config) *fetch.Fetcher {
	cache := s.dataPath("cache")
	if base := s.Env.Get("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		cache = filepath.Join(base, "terrace", "modules")
	} else if home := s.Home(); home != "" {
		cache = filepath.Join(home, ".cache", "terrace", "modules")
	}
	cache = cmp.Or(s.Env.Get("TERRACE_MODULE_CACHE_DIR"), cache)
	tokens := &oci.Store{Config: cfg, Env: s.Env, Home: s.Home(), WorkDir: s.Dir, Run: s.Run}
	return &fetch.Fetcher{
		Dir: s.Path(cache), WorkDir: s.Dir, Home: s.Home(), Env: s.Env, Run: s.Run,
		Client: transfer.New(s.Env), Now: s.Now, Limits: archive.Limits{}, OCI: tokens.Find,
	}
}

// registry asks registries, with the user's credentials.
func (s *session) registry(cfg *cliconfig.Config) *registry.Client {
	program := ""
	if exe, err := s.Executable(); err == nil {
		program = filepath.Dir(exe)
	}
	return &registry.Client{
		HTTP: transfer.New(s.Env), Config: cfg, Run: s.Run, Env: s.Env, WorkDir: s.Dir,
		HelperDirs: registry.HelperDirs(cfg.Dir, program),
	}
}
