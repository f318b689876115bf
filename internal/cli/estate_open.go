package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/unit"
)

// below is a session in another folder that says nothing.
func (s *session) below(dir string) *session {
	n := newSession(s.System.In(dir))
	n.launch, n.command, n.views = dir, s.command, s.views
	n.ctx, n.reach.cancel, n.reach.trees, n.hashes = s.ctx, s.reach.cancel, s.reach.trees, s.hashes
	n.backends = s.backends
	return n
}

// within is a session in the folder of a unit, with its environment.
func (s *session) within(f estate.Folder) *session {
	n := s.below(f.Dir)
	n.Env, n.programs = f.Env, f.Programs
	return n
}

// unitPlugins are the providers of one unit.
type unitPlugins struct{ *plugins }

// Choose implements estate.Providers.
func (p unitPlugins) Choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List {
	return p.choose(ctx, install.Requirements(maps.Clone(needed)))
}

// installing are the commands that may install providers.
var installing = []string{"init", "plan", "apply", "destroy", "refresh", "validate", "import", "test", "console", "show", "graph", "providers"}

// estateOptions are the options of units for a command.
func (s *session) estateOptions(f *unitFlags, command string, args []string, flags []vars.Flag) (estate.Options, diag.List) {
	features, err := f.featureMap()
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Failed to parse command-line flags", "%s", err)
	}
	if slices.Contains(installing, command) {
		if ds := s.usePluginCache(&f.sourcing); ds.HasErrors() {
			return estate.Options{}, ds
		}
	}
	cfg, ds := s.settings()
	if ds.HasErrors() {
		return estate.Options{}, ds
	}
	ds = append(ds, f.withoutEffect()...)
	attached, err := rpc.ParseReattach(s.Env.Get("TF_REATTACH_PROVIDERS"))
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Invalid TF_REATTACH_PROVIDERS", "The environment variable TF_REATTACH_PROVIDERS cannot be read: %s.", err)
	}
	told, err := newUnitLog(f, "", s.Now)
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Failed to parse command-line flags", "%s", err)
	}
	s.views.errorsAlone = !told.shows("warn")
	sources, err := pairs("source-map", f.sourceMap)
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Failed to parse command-line flags", "%s", err)
	}
	o := estate.Options{
		Root: s.Dir, Sources: estate.Sources{Map: sources, Base: f.many()}, Who: s.User() + "@" + s.Host(),
		Request: unit.Request{Command: command, Args: append([]string{command}, args...), Source: f.source, Features: features, DownloadDir: f.downloadDir},
		Machine: unit.Machine{Environ: s.Env, Run: s.Run, Now: s.Now, Home: s.homeOrError},
		Inputs:  estate.Inputs{Strict: f.strict, Debug: f.inputsDebug, Elsewhere: len(flags) > 0, Mocks: f.useMocks},
	}
	if dir := o.Request.DownloadDir; dir != "" {
		o.Request.DownloadDir = s.Path(dir)
	}
	o.Without = estate.Without{Hooks: f.noHooks, Retries: f.noRetry, Outputs: f.noOutputs, Removals: command == "apply" && !f.allowDestroy}
	if more := s.signIn(&f.signingIn, &o); more.HasErrors() {
		return o, more
	}
	if f.graphRoot != "" {
		o.Look.DependentsIn = s.Path(f.graphRoot)
	}
	if f.boundary != "" {
		o.Look.Boundary = s.Path(f.boundary)
	}
	if name := f.config; name != "" && filepath.Base(name) == name {
		o.Look.ConfigName = name
	}
	if more := s.filterBy(s.ctx, &f.selection, &o); more.HasErrors() {
		return o, more
	}
	o.Worktrees = s.reach.trees
	ds = append(ds, f.shareProviders(&o)...)
	o.Host = s.estateHost(cfg, attached, flags)
	o.Host.Fetch = s.unitFetch(cfg, f.sourceUpdate)
	if f.noAutoInit && command != "init" {
		o.Host.Init = nil
	}
	return o, ds
}

// estateHost is what the session does for an estate, but for fetching modules.
func (s *session) estateHost(cfg *cliconfig.Config, attached map[addr.Provider]rpc.Reattach, flags []vars.Flag) estate.Host {
	out := estate.Host{
		Values: func(f estate.Folder, more []estate.VarFlag, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
			return s.otherValues(f, more, flags, declared)
		},
		Providers:    s.unitProviders(cfg, attached),
		Init:         s.initUnit,
		AssumeRole:   s.assumeRole(cfg),
		Provisioners: func(f estate.Folder) engine.Provisioners { return provisioners{s.within(f)} },
		ReadState: func(dir string) engine.ReadState {
			return s.below(dir).readState
		},
	}
	if path, err := s.Executable(); err == nil {
		out.Program = path
	}
	return out
}

func (s *session) homeOrError() (string, error) {
	if h := s.Home(); h != "" {
		return h, nil
	}
	return "", errors.New("the environment names no home folder")
}

func (s *session) unitProviders(cfg *cliconfig.Config, attached map[addr.Provider]rpc.Reattach) func(estate.Folder) estate.Providers {
	cache := &rpc.SchemaCache{}
	return func(f estate.Folder) estate.Providers {
		return unitPlugins{&plugins{session: s.within(f), config: cfg, attached: attached, schemas: cache}}
	}
}

// otherValues are the values of variables that come by other ways than inputs.
func (s *session) otherValues(at estate.Folder, more []estate.VarFlag, flags []vars.Flag, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	var all []vars.Flag
	for _, f := range more {
		all = append(all, vars.Flag{File: f.File, Value: f.Value})
	}
	for _, f := range flags {
		if f.File {
			f.Value = s.Path(f.Value)
		}
		all = append(all, f)
	}
	from := vars.Sources{Dir: at.Dir, Env: at.Env, Flags: all, Set: s.set}
	if at.Dir == "" {
		from.Dir = filepath.Join(s.Dir, ".terragrunt-cache", "none") // nothing lies there
	}
	values, ds := vars.Collect(from, declared)
	return values, ds
}

// initUnit runs init in the working folder of a unit, and says nothing.
func (s *session) initUnit(ctx context.Context, e *estate.Estate, u *estate.Unit, dir string) diag.List {
	us := &unitSession{estate: e, unit: u, dir: dir}
	o := &initOptions{get: true, backendOn: true, lock: lockFlags{on: true}, backendConfig: us.backendConfig()}
	i := &initializer{session: s.below(dir), o: o}
	i.unit = us
	ds := i.run(ctx)
	if i.project != nil {
		i.project.close()
	}
	return ds
}

// isUnit reports whether a folder holds a unit file, or an environment file.
func (s *session) isUnit(f *selection) bool {
	for _, name := range []string{f.config, unit.DefaultName, unit.DefaultJSONName} {
		if name == "" {
			continue
		}
		if info, err := os.Stat(s.Path(name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return f.module != "" || s.holdsEnvironment()
}
