package workdir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/internal/settings/tracelog"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
)

// Plugins starts the providers of a directory from their packages, or connects to provider
// processes that are already running (see Reattached).
type Plugins struct {
	Directory  *Directory
	Config     *cliconfig.Config
	Reattached Reattached
	Schemas    *rpc.SchemaCache // may be shared with other directories

	packages map[addr.Provider]install.Package
	releases map[addr.Provider]string // versions whose kept schemas stand for providers that are not installed

	reported sync.Map // time.Time of the last message about a slow call, by its text
}

// Reattached contains the connections to provider processes that were started by another program,
// such as a debugger.
type Reattached map[addr.Provider]rpc.Reattach

// ReattachedIn returns the provider processes that TF_REATTACH_PROVIDERS lists.
func ReattachedIn(env sys.Env) (Reattached, diag.List) {
	out, err := rpc.ParseReattach(env.Get("TF_REATTACH_PROVIDERS"))
	if err != nil {
		return nil, diag.Errorf(diag.CodeProviderReattach, nil, "Invalid TF_REATTACH_PROVIDERS", "The environment variable TF_REATTACH_PROVIDERS cannot be read: %s.", err)
	}
	return out, nil
}

// Plugins returns the providers of the directory, as configured by the environment and the CLI
// configuration.
func (f *Directory) Plugins() (*Plugins, diag.List) {
	cfg, ds := f.Settings()
	if ds.HasErrors() {
		return nil, ds
	}
	attached, more := ReattachedIn(f.Env)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	return &Plugins{Directory: f, Config: cfg, Reattached: attached, Schemas: &rpc.SchemaCache{Files: f.Schemas}}, ds
}

// In returns the providers of another directory, with the same settings and schema cache.
func (pl *Plugins) In(f *Directory) *Plugins {
	return &Plugins{Directory: f, Config: pl.Config, Reattached: pl.Reattached, Schemas: pl.Schemas}
}

// InstallOptions returns the sources from which packages are installed and the directories that
// receive them.
func (pl *Plugins) InstallOptions() install.Options {
	f := pl.Directory
	return install.Options{Config: pl.Config, WorkDir: f.Dir, DataDir: f.DataDir(), Home: f.Home(), Env: f.Env, Now: f.Now, Run: f.Run, Hashes: f.Hashes}
}

// LockPath returns the path of the dependency lock file.
func (pl *Plugins) LockPath() string { return filepath.Join(pl.Directory.Dir, lock.Name) }

// Choose selects an installed package for each required provider. Factory and Program start these
// packages later.
func (pl *Plugins) Choose(ctx context.Context, req install.Requirements) diag.List {
	req = pl.Packaged(req)
	if len(req) == 0 {
		return nil
	}
	locked, ds := lock.Read(pl.Directory.Files, pl.LockPath())
	if ds.HasErrors() {
		return ds
	}
	var more diag.List
	pl.packages, more = install.Select(ctx, req, locked, pl.InstallOptions())
	if pl.Directory.KeptSchemas {
		pl.releases = map[addr.Provider]string{}
		for a := range req {
			if _, ok := pl.packages[a]; !ok {
				pl.releases[a] = install.Newest(a, req, locked, pl.Schemas.Releases(a, pl.Directory.Env))
			}
		}
	}
	return append(append(ds, install.OverrideWarning(pl.InstallOptions(), false)...), more...)
}

// CheckPlanned returns an error if the dependency lock file selects another version of a
// required provider than the lock file that a plan was made with. planned is the text of that
// file; nil checks nothing.
func (pl *Plugins) CheckPlanned(planned []byte, req install.Requirements) diag.List {
	was, ds := lock.Parse(planned, lock.Name)
	if ds.HasErrors() {
		return ds
	}
	is, ds := lock.Read(pl.Directory.Files, pl.LockPath())
	if ds.HasErrors() {
		return ds
	}
	var overridden map[addr.Provider]string
	if in := pl.Config.Installation; in != nil {
		overridden = in.DevOverrides
	}
	var lines []string
	for _, a := range SortedProviders(pl.Packaged(req)) {
		before, now := was.Provider(a), is.Provider(a)
		if before == nil || now == nil || overridden[a] != "" || before.Version.Same(now.Version) {
			continue // an entry that is missing is reported when the provider is chosen
		}
		lines = append(lines, fmt.Sprintf("  - provider %s: the plan was made with %s, and %s is selected", a, before.Version, now.Version))
	}
	if len(lines) == 0 {
		return nil
	}
	return diag.Errorf(diag.CodeLockMismatch, nil, "Inconsistent dependency lock file", "The given plan file was created with other versions of providers than those that %s selects:\n%s\n\nA saved plan can be applied only with the providers that it was created with. Plan again.", lock.Name, strings.Join(lines, "\n"))
}

// Factory implements engine.ProviderSource.
func (pl *Plugins) Factory(a addr.Provider) (provider.Factory, diag.List) {
	if own := pl.Directory.Providers[a]; own != nil {
		return recovering(a, own), nil
	}
	if _, ok := pl.Reattached[a]; !ok && pl.releases[a] == "" {
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
		return pkg, diag.Errorf(diag.CodeProviderNotInstalled, nil, "Required plugins are not installed", "The provider %s is needed, but there is no package of it. Run \"terrace init\" to install all providers that configuration and state require.", a.Display())
	}
	return pkg, nil
}

// slowAfter returns the time after which the user gets a message about a provider that has not
// responded: TERRACE_SLOW_CALL, or 30 seconds.
func (f *Directory) slowAfter() time.Duration {
	if d, err := time.ParseDuration(f.Env.Get("TERRACE_SLOW_CALL")); err == nil && d > 0 {
		return d
	}
	return 30 * time.Second
}

// Program implements provider.ProgramSource.
func (pl *Plugins) Program(ctx context.Context, a addr.Provider) (provider.Program, diag.List) {
	f := pl.Directory
	if f.Providers[a] != nil {
		return provider.Program{}, nil // the provider runs in this process, so that there is no program to share
	}
	o := rpc.Options{Addr: a, Env: f.Env, Stderr: f.Log.Provider(a.Type), Cache: pl.Schemas, DisableTLS: f.Env.Get("TF_DISABLE_PLUGIN_TLS") != ""}
	o.SlowAfter = f.slowAfter()
	o.Slow = func(call string) {
		text := fmt.Sprintf("Still waiting for the provider %s, which has not answered %s for %s. To stop, interrupt (Ctrl-C): the provider is asked to stop, and a second interrupt ends it.\n", a.Display(), call, o.SlowAfter)
		// Concurrent calls, such as those of many instances, become slow at the same time. One
		// message is enough.
		now := f.Now()
		last, said := pl.reported.Swap(text, now)
		if !said || now.Sub(last.(time.Time)) >= o.SlowAfter {
			f.host().Slow(text)
		}
	}
	if r, ok := pl.Reattached[a]; ok {
		return provider.Program{
			Path: "attached " + r.Network + " " + r.Address, Outside: true,
			Start: func(ctx context.Context, _ string) (provider.Provider, diag.List) { return rpc.Attach(ctx, r, o) },
		}, nil
	}
	if version := pl.releases[a]; version != "" {
		return provider.Program{
			Path: "schemas of " + a.String() + " " + version, Env: f.Env, Dir: f.Dir,
			Schema: func() *schema.Provider { return pl.Schemas.Release(a, f.Env, version) },
			Start:  func(context.Context, string) (provider.Provider, diag.List) { return nil, notStarted(a) },
		}, nil
	}
	pkg, ds := pl.pkg(a)
	if ds.HasErrors() {
		return provider.Program{}, ds
	}
	if f.NoPrograms && !f.KeptSchemas {
		return provider.Program{}, notStarted(a)
	}
	prog, ds := pkg.Program(ctx)
	o.Path, o.Name = prog.Path, prog.Name
	if prog.Hash != "" {
		o.Package, o.Release = prog.Name, pkg.Version.String()
	}
	f.Log.Printf(tracelog.Info, "provider %s: the program is %s", a, prog.Name)
	return provider.Program{
		Path: prog.Name, Env: f.Env, Dir: f.Dir,
		Schema: func() *schema.Provider {
			s := pl.Schemas.Kept(o)
			if s != nil {
				f.Log.Printf(tracelog.Debug, "provider %s: an earlier command has kept its schema", a)
			}
			return s
		},
		Start: func(ctx context.Context, dir string) (provider.Provider, diag.List) {
			if f.NoPrograms {
				return nil, notStarted(a)
			}
			f.Log.Printf(tracelog.Debug, "provider %s: starting a process", a)
			o := o
			o.Dir = dir
			return rpc.Launch(ctx, o)
		},
	}, ds
}

// KeptSchemas returns a function that returns the schemas of those required providers which are
// installed in the directory, and whose schemas an earlier command has kept. It starts no process.
// The function returns nil for other providers.
func (pl *Plugins) KeptSchemas(ctx context.Context, req install.Requirements) func(addr.Provider) *schema.Provider {
	dir := pl.InstallOptions().WorkDir
	if _, err := os.Stat(sys.Join(dir, filepath.Join(pl.Directory.DataDir(), "providers"))); err != nil || !pl.Directory.Schemas.Enabled() {
		return func(addr.Provider) *schema.Provider { return nil }
	}
	_ = pl.Choose(ctx, req) // a provider that is not installed has no schema
	return func(a addr.Provider) *schema.Provider {
		p, ds := pl.Program(ctx, a)
		if ds.HasErrors() || p.Schema == nil {
			return nil
		}
		return p.Schema()
	}
}

func notStarted(a addr.Provider) diag.List {
	return diag.Errorf(diag.CodeProviderNotStarted, nil, "Provider not started", "The provider %s is needed, and is not started because of --no-exec.", a.Display())
}

// SortedProviders returns the required providers in the order of the lock file.
func SortedProviders(req install.Requirements) []addr.Provider {
	out := make([]addr.Provider, 0, len(req))
	for a := range req {
		out = append(out, a)
	}
	slices.SortFunc(out, lock.CompareProviders)
	return out
}

// Packaged returns the requirements of the providers that need a package: not those that are
// built in, attached or implemented by the embedding program.
func (pl *Plugins) Packaged(req install.Requirements) install.Requirements {
	out := install.Requirements{}
	for a, constraints := range req {
		if _, attached := pl.Reattached[a]; !a.IsBuiltIn() && !attached && pl.Directory.Providers[a] == nil {
			out[a] = constraints
		}
	}
	return out
}
