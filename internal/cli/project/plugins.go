package project

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/tracelog"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/lock"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/provider"
)

// Plugins starts providers from their packages, or connects to those that run
// on their own.
type Plugins struct {
	Call     *command.Call
	Config   *cliconfig.Config
	packages map[addr.Provider]install.Package
	Attached map[addr.Provider]rpc.Reattach
	Schemas  *rpc.SchemaCache // never nil
}

// plug reads what the environment and the user's settings say of providers.
func (p *Project) plug() diag.List {
	cfg, ds := Settings(p.Call)
	if ds.HasErrors() {
		return ds
	}
	attached, err := rpc.ParseReattach(p.Env.Get("TF_REATTACH_PROVIDERS"))
	if err != nil {
		return append(ds, diag.Errorf(nil, "Invalid TF_REATTACH_PROVIDERS", "The environment variable TF_REATTACH_PROVIDERS cannot be read: %s.", err)...)
	}
	p.Plugins = &Plugins{Call: p.Call, Config: cfg, Attached: attached, Schemas: &rpc.SchemaCache{}}
	return ds
}

func (pl *Plugins) InstallOptions() install.Options {
	c := pl.Call
	return install.Options{Config: pl.Config, WorkDir: c.Dir, DataDir: c.DataDir(), Home: c.Home(), Env: c.Env, Now: c.Now, Run: c.Run, Hashes: c.Hashes}
}

func (pl *Plugins) LockPath() string { return filepath.Join(pl.Call.Dir, lock.Name) }

// Choose finds the packages that are started later.
func (pl *Plugins) Choose(ctx context.Context, req install.Requirements) diag.List {
	req = pl.Packaged(req)
	if len(req) == 0 {
		return nil
	}
	locked, ds := lock.Read(pl.LockPath())
	if ds.HasErrors() {
		return ds
	}
	var more diag.List
	pl.packages, more = install.Select(ctx, req, locked, pl.InstallOptions())
	return append(append(ds, install.OverrideWarning(pl.InstallOptions(), false)...), more...)
}

// Factory implements engine.ProviderSource.
func (pl *Plugins) Factory(a addr.Provider) (provider.Factory, diag.List) {
	if _, ok := pl.Attached[a]; !ok {
		if _, ds := pl.pkg(a); ds.HasErrors() {
			return nil, ds
		}
	}
	return func(ctx context.Context) (provider.Provider, diag.List) {
		prog, ds := pl.Program(ctx, a)
		if ds.HasErrors() {
			return nil, ds
		}
		p, more := prog.Start(ctx, prog.Dir)
		return p, append(ds, more...)
	}, nil
}

func (pl *Plugins) pkg(a addr.Provider) (install.Package, diag.List) {
	pkg, ok := pl.packages[a]
	if !ok {
		return pkg, diag.Errorf(nil, "Required plugins are not installed", "The provider %s is needed, but there is no package of it. Run \"%s init\" to install all providers that configuration and state require.", a.Display(), view.Program)
	}
	return pkg, nil
}

// slowAfter is how long a provider may take to answer before the user hears what is waited
// for: TERRACE_SLOW_CALL, or 30 seconds.
func slowAfter(c *command.Call) time.Duration {
	if d, err := time.ParseDuration(c.Env.Get("TERRACE_SLOW_CALL")); err == nil && d > 0 {
		return d
	}
	return 30 * time.Second
}

// Program implements engine.ProgramSource.
func (pl *Plugins) Program(ctx context.Context, a addr.Provider) (engine.Program, diag.List) {
	c := pl.Call
	o := rpc.Options{Addr: a, Env: c.Env, Stderr: c.Log.Provider(a.Type), Cache: pl.Schemas, DisableTLS: c.Env.Get("TF_DISABLE_PLUGIN_TLS") != ""}
	o.SlowAfter = slowAfter(c)
	o.Slow = func(call string) {
		text := fmt.Sprintf("Still waiting for the provider %s, which has not answered %s for %s. To stop, interrupt (Ctrl-C): the provider is asked to stop, and a second interrupt ends it.\n", a.Display(), call, o.SlowAfter)
		c.Report.Wait(text)
	}
	if r, ok := pl.Attached[a]; ok {
		return engine.Program{
			Path: "attached " + r.Network + " " + r.Address, Outside: true,
			Start: func(ctx context.Context, _ string) (provider.Provider, diag.List) { return rpc.Attach(ctx, r, o) },
		}, nil
	}
	pkg, ds := pl.pkg(a)
	if ds.HasErrors() {
		return engine.Program{}, ds
	}
	if c.NoPrograms {
		return engine.Program{}, diag.Errorf(nil, "Provider not started", "The provider %s is needed, and is not started because of --no-exec.", a.Display())
	}
	prog, ds := pkg.Program(ctx)
	o.Path, o.Name = prog.Path, prog.Name
	c.Log.Printf(tracelog.Info, "provider %s: the program is %s", a, prog.Name)
	return engine.Program{
		Path: prog.Name, Env: c.Env, Dir: c.Dir,
		Start: func(ctx context.Context, dir string) (provider.Provider, diag.List) {
			o := o
			o.Dir = dir
			return rpc.Launch(ctx, o)
		},
	}, ds
}

func SortedProviders(req install.Requirements) []addr.Provider {
	out := make([]addr.Provider, 0, len(req))
	for a := range req {
		out = append(out, a)
	}
	slices.SortFunc(out, lock.CompareProviders)
	return out
}
