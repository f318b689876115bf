package project

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/backend/configure"
	"github.com/terrace-iac/terrace/internal/backend/kinds"
	"github.com/terrace-iac/terrace/internal/backend/remotestate"
	"github.com/terrace-iac/terrace/internal/backend/workdir"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/registry"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/transfer"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"

	"github.com/hashicorp/hcl/v2"
)

// connections is how many connections to one service states are read over at most.
const connections = 32

// NewBackends makes the backends of a process.
func NewBackends(c *command.Call) *backend.Set {
	ask := sync.OnceValues(func() (*registry.Client, error) {
		cfg, ds := Settings(c)
		if ds.HasErrors() {
			return nil, ds.Err()
		}
		return RegistryClient(c, cfg), nil
	})
	tr := transfer.Transport(c.Env)
	tr.MaxConnsPerHost, tr.MaxIdleConnsPerHost = connections, connections
	var slow sync.Once // one line is enough for many states
	after := min(slowAfter(c), 5*time.Second)
	return backend.NewSet(kinds.All(), kinds.Unknown, backend.Services{
		Env: c.Env, Dir: c.Launch, Home: c.Home(), Who: c.User() + "@" + c.Host(),
		Now: c.Now, Sleep: Pause, Run: c.Run, Transport: tr, Version: statefile.Version,
		SlowAfter: after,
		Slow: func(place string) {
			slow.Do(func() {
				c.Report.Wait(fmt.Sprintf("Still waiting for the store of the state %s, which has not answered for %s. Requests that fail are repeated a few times. To stop, interrupt (Ctrl-C).\n", place, after))
			})
		},
		Token: func(ctx context.Context, host string) (string, error) {
			r, err := ask()
			if err != nil {
				return "", err
			}
			return r.Token(ctx, host)
		},
		Service: func(ctx context.Context, host, service string) (*url.URL, error) {
			r, err := ask()
			if err != nil {
				return nil, err
			}
			return r.Service(ctx, host, service, "the service "+service)
		},
		Shared: new(backend.Shared),
	})
}

// Pause waits, or returns the context's error sooner.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// A Place is where the state of the working folder lives, and how it is encrypted.
type Place struct {
	Config     backend.Config
	Opened     backend.Backend
	Encryption *encryption.Config // nil for none
}

// FolderOf is the working folder with its backend.
func FolderOf(c *command.Call) workdir.Dir {
	return workdir.Dir{
		Backends: c.Backends(), Path: c.Dir, Data: c.DataPath(), Env: c.Env,
		Default: kinds.Default, Program: view.Program, Product: view.Product,
	}
}

// Static evaluates what stands in the backend block.
func (p *Project) Static(ctx context.Context) configure.Eval { return p.staticWith(ctx, p.Vars) }

func (p *Project) staticWith(ctx context.Context, values vars.Values) configure.Eval {
	return func(x hcl.Expression) (cty.Value, diag.List) { return p.Engine.Static(ctx, values, x) }
}

// StaticAsking is Static for a project that was loaded though variables are missing: those
// that an expression needs, through locals too, are asked for when it comes to it.
func (p *Project) StaticAsking(ctx context.Context, input bool) configure.Eval {
	eval := p.Static(ctx)
	return func(x hcl.Expression) (cty.Value, diag.List) {
		root := p.Engine.Root()
		needed := map[string]*config.Variable{}
		variablesOf(root, x, needed, map[string]bool{})
		if _, ds := p.ask(ctx, p.Vars, engine.Missing(p.Vars, needed), input); ds.HasErrors() {
			return cty.DynamicVal, ds
		}
		return eval(x)
	}
}

// variablesOf adds the variables that an expression refers to, directly or through locals.
func variablesOf(root *config.Module, x hcl.Expression, out map[string]*config.Variable, seen map[string]bool) {
	for _, ref := range x.Variables() {
		if len(ref) < 2 {
			continue
		}
		name, _ := ref[1].(hcl.TraverseAttr)
		switch ref.RootName() {
		case "var":
			if v := root.Variables[name.Name]; v != nil {
				out[name.Name] = v
			}
		case "local":
			if l := root.Locals[name.Name]; l != nil && !seen[name.Name] {
				seen[name.Name] = true
				variablesOf(root, l.Value.Expr, out, seen)
			}
		}
	}
}

// Backend opens the place where state lives, and refuses where the folder has to be
// initialized first.
func (p *Project) Backend(ctx context.Context) (*Place, diag.List) {
	root := p.Engine.Root()
	enc, ds := p.Encryption(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	cfg, more := FolderOf(p.Call).Current(root.Backend, p.Static(ctx))
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	b, more := OpenBackend(ctx, p.Call, cfg, root.Backend, enc)
	return b, append(ds, more...)
}

func OpenBackend(ctx context.Context, c *command.Call, cfg backend.Config, block *config.Backend, enc *encryption.Config) (*Place, diag.List) {
	b, ds := FolderOf(c).Open(ctx, cfg, block)
	if ds.HasErrors() {
		return nil, ds
	}
	return &Place{Config: cfg, Opened: b, Encryption: enc}, ds
}

// LocalFile is the place of states that are named by their files.
func LocalFile(ctx context.Context, c *command.Call, enc *encryption.Config) (*Place, diag.List) {
	cfg, ds := FolderOf(c).Of(kinds.Default, cty.NilVal)
	if ds.HasErrors() {
		return nil, ds
	}
	return OpenBackend(ctx, c, cfg, nil, enc)
}

// StoreOptions say how the states of this command are opened.
func StoreOptions(c *command.Call, b *Place, f flags.State) backend.StoreOptions {
	return backend.StoreOptions{
		StatePath: f.Path, OutPath: f.Out, BackupPath: f.Backup, Waiting: func(l *store.LockInfo) { lockedBy(c, l) },
		Sealer: b.Encryption.State(c.Report.Context).Sealer(), IgnoreVersion: f.IgnoreVersion,
	}
}

// OpenStore opens the state of a workspace.
func OpenStore(c *command.Call, b *Place, workspace string, f flags.State) (store.Store, diag.List) {
	return operation.Open(b.Opened, workspace, StoreOptions(c, b, f))
}

// An Encrypted gives the encryption of a configuration, nil for none.
type Encrypted func(ctx context.Context) (*encryption.Config, diag.List)

// stateReader serves terraform_remote_state for a call.
func stateReader(c *command.Call, encrypted Encrypted) engine.ReadState {
	return func(ctx context.Context, req engine.ReadStateRequest) (*state.State, diag.List) {
		r := remotestate.Reader{Backends: c.Backends(), Dir: c.Dir, Env: c.Env}
		if !req.Check {
			enc, ds := encrypted(ctx)
			if ds.HasErrors() {
				return nil, ds
			}
			r.Options.Sealer = enc.RemoteState(ctx, req.Address).Sealer()
		}
		return r.Read(ctx, req.Backend, req.Config, req.Workspace, req.Check)
	}
}

// ReadWorkspace reads the state of a workspace for a command that changes nothing.
func ReadWorkspace(ctx context.Context, c *command.Call, b *Place, workspace string, f flags.State) (*state.State, diag.List) {
	st, ds := OpenStore(c, b, workspace, f)
	if ds.HasErrors() {
		return nil, ds
	}
	return readStore(ctx, c, b, st, workspace)
}
