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
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/unit"
)

// within is a session in the folder of a unit, with its environment.
func within(c *command.Call, f estate.Folder) *command.Call {
	n := c.Below(f.Dir)
	n.Env = f.Env
	n.Unit = &command.Surroundings{Programs: f.Programs}
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
func estateOptions(c *command.Call, f *unitFlags, command string, args []string, flags []vars.Flag) (estate.Options, diag.List) {
	features, err := f.featureMap()
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Failed to parse command-line flags", "%s", err)
	}
	if slices.Contains(installing, command) {
		if ds := usePluginCache(c, &f.sourcing); ds.HasErrors() {
			return estate.Options{}, ds
		}
	}
	cfg, ds := settings(c)
	if ds.HasErrors() {
		return estate.Options{}, ds
	}
	ds = append(ds, f.withoutEffect()...)
	attached, err := rpc.ParseReattach(c.Env.Get("TF_REATTACH_PROVIDERS"))
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Invalid TF_REATTACH_PROVIDERS", "The environment variable TF_REATTACH_PROVIDERS cannot be read: %s.", err)
	}
	told, err := newUnitLog(f, "", c.Now)
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Failed to parse command-line flags", "%s", err)
	}
	c.Report.Options.ErrorsAlone = !told.shows("warn")
	sources, err := pairs("source-map", f.sourceMap)
	if err != nil {
		return estate.Options{}, diag.Errorf(nil, "Failed to parse command-line flags", "%s", err)
	}
	o := estate.Options{
		Discovery: discovery.Settings{Root: c.Dir, Removals: command != "apply" || f.allowDestroy},
		Sources:   workdir.Sources{Override: f.source, Base: f.many(), Map: sources, Fetch: unitFetch(c, cfg, f.sourceUpdate)}, Who: c.User() + "@" + c.Host(),
		Request: unit.Request{Command: command, Args: append([]string{command}, args...), Source: f.source, Features: features, DownloadDir: f.downloadDir},
		Machine: unit.Machine{Environ: c.Env, Run: c.Run, Now: c.Now, Home: func() (string, error) { return homeOrError(c) }},
		Inputs:  estate.Inputs{Strict: f.strict, Debug: f.inputsDebug, Mocks: f.useMocks},
		Skip:    estate.Skip{Hooks: f.noHooks, Retries: f.noRetry, Outputs: f.noOutputs}, ValuesElsewhere: len(flags) > 0,
	}
	if dir := o.Request.DownloadDir; dir != "" {
		o.Request.DownloadDir = c.Path(dir)
	}
	if more := signIn(c, &f.signingIn, &o); more.HasErrors() {
		return o, more
	}
	if f.graphRoot != "" {
		o.Discovery.DependentsIn = c.Path(f.graphRoot)
	}
	if f.boundary != "" {
		o.Discovery.Boundary = c.Path(f.boundary)
	}
	if name := f.config; name != "" && filepath.Base(name) == name {
		o.Discovery.ConfigName = name
	}
	if more := filterBy(c.Report.Context, c, &f.selection, &o); more.HasErrors() {
		return o, more
	}
	o.Worktrees = &estate.Worktrees{}
	c.Interrupts.Removes(o.Worktrees.Remove)
	ds = append(ds, f.shareProviders(&o)...)
	o.Host = estateHost(c, cfg, attached, flags)
	o.Credentials.AssumeRole = assumeRole(c, cfg)
	if f.noAutoInit && command != "init" {
		o.Host.Init = nil
	}
	return o, ds
}

// estateHost is what the session does for an estate, but for fetching modules.
func estateHost(c *command.Call, cfg *cliconfig.Config, attached map[addr.Provider]rpc.Reattach, flags []vars.Flag) estate.Host {
	out := estate.Host{
		Values: func(f estate.Folder, more []estate.VarFlag, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
			return otherValues(c, f, more, flags, declared)
		},
		Providers:    unitProviders(c, cfg, attached),
		Init:         func(ctx context.Context, in estate.Installing) diag.List { return initUnit(ctx, c, in) },
		Provisioners: func(f estate.Folder) engine.Provisioners { return provisioners{within(c, f)} },
		ReadState: func(dir string) engine.ReadState {
			return stateReader(c.Below(dir))
		},
		Backends: c.Backends(), KeepSegments: c.Env.Get("TERRACE_JOURNAL") == "store",
		Waiting: func(unit string, holder *store.LockInfo) {
			text := "The state of " + unit + " is locked by " + backend.Describe(holder) + ". Waiting for the lock..."
			c.Report.Human.Say(text + "\n")
			c.Report.Stream.Log(text)
		},
	}
	if path, err := c.Executable(); err == nil {
		out.Program = path
	}
	return out
}

func homeOrError(c *command.Call) (string, error) {
	if h := c.Home(); h != "" {
		return h, nil
	}
	return "", errors.New("the environment names no home folder")
}

func unitProviders(c *command.Call, cfg *cliconfig.Config, attached map[addr.Provider]rpc.Reattach) func(estate.Folder) estate.Providers {
	cache := &rpc.SchemaCache{}
	return func(f estate.Folder) estate.Providers {
		return unitPlugins{&plugins{Call: within(c, f), config: cfg, attached: attached, schemas: cache}}
	}
}

// otherValues are the values of variables that come by other ways than inputs.
func otherValues(c *command.Call, at estate.Folder, more []estate.VarFlag, flags []vars.Flag, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	var all []vars.Flag
	for _, f := range more {
		all = append(all, vars.Flag{File: f.File, Value: f.Value})
	}
	for _, f := range flags {
		if f.File {
			f.Value = c.Path(f.Value)
		}
		all = append(all, f)
	}
	from := vars.Sources{Dir: at.Dir, FS: at.Files, Env: at.Env, Flags: all, Set: c.Report.Set}
	if at.Dir == "" {
		from.Dir = filepath.Join(c.Dir, ".terragrunt-cache", "none") // nothing lies there
	}
	values, ds := vars.Collect(from, declared)
	return values, ds
}

// initUnit runs init in the working folder of a unit, and says nothing.
func initUnit(ctx context.Context, c *command.Call, in estate.Installing) diag.List {
	o := &initOptions{get: true, backendOn: true, lock: flags.Lock{On: true}, backendConfig: in.Backend}
	i := &initializer{Call: within(c, in.Folder), o: o}
	i.Unit = surroundings(i.Call, in.Values, in.Sources, in.Programs)
	ds := i.run(ctx)
	if i.project != nil {
		i.project.close()
	}
	return ds
}

// isUnit reports whether a folder holds a unit file, or an environment file.
func isUnit(c *command.Call, f *selection) bool {
	for _, name := range []string{f.config, unit.DefaultName, unit.DefaultJSONName} {
		if name == "" {
			continue
		}
		if info, err := os.Stat(c.Path(name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return f.module != "" || holdsEnvironment(c)
}
