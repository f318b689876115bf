package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/backend/configure"
	"github.com/terrace-iac/terrace/internal/backend/kinds"
	"github.com/terrace-iac/terrace/internal/backend/remotestate"
	"github.com/terrace-iac/terrace/internal/backend/workdir"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/internal/transfer"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"

	"github.com/hashicorp/hcl/v2"
)

// connections is how many connections to one service states are read over at most.
const connections = 32

// newBackends makes the backends of a process.
func newBackends(system *sys.System) *backend.Set {
	tr := transfer.Transport(system.Env)
	tr.MaxConnsPerHost, tr.MaxIdleConnsPerHost = connections, connections
	return backend.NewSet(kinds.All(), kinds.Unknown, backend.Services{
		Env: system.Env, Dir: system.Dir, Home: system.Home(), Who: system.User() + "@" + system.Host(),
		Now: system.Now, Sleep: pause, Run: system.Run, Transport: tr, Version: statefile.Version,
		Token: func(_ context.Context, host string) (string, error) {
			c, ds := cliconfig.Load(system.Env, system.Home(), system.Dir)
			if ds.HasErrors() {
				return "", ds.Err()
			}
			token, _ := c.Token(host)
			return token, nil
		},
		Shared: new(backend.Shared),
	})
}

// pause waits, or returns the context's error sooner.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// A place is where the state of the working folder lives.
type place struct {
	config backend.Config
	opened backend.Backend
}

// workdir is the working folder with its backend.
func (s *session) workdir() workdir.Dir {
	return workdir.Dir{
		Backends: s.backends(), Path: s.Dir, Data: s.dataPath(), Env: s.Env,
		Default: kinds.Default, Program: view.Program, Product: view.Product,
	}
}

// refuse says no to encryption, which this version does not have.
func (s *session) refuse(root *config.Module) diag.List {
	var ds diag.List
	if e := root.Encryption; e != nil {
		ds = append(ds, &diag.Message{
			Code: "backend/encryption", Summary: "State encryption not available", At: &e.At,
			Detail: fmt.Sprintf("This configuration wants state and plans encrypted, which this version of %s cannot do yet. Nothing was read, and nothing is written without encryption in its place.", view.Product),
		})
	}
	if s.Env.Get("TF_ENCRYPTION") != "" {
		ds = append(ds, &diag.Message{
			Code: "backend/encryption", Summary: "State encryption not available",
			Detail: fmt.Sprintf("The environment variable TF_ENCRYPTION asks for encryption of state and plans, which this version of %s cannot do yet. Nothing was read, and nothing is written without encryption in its place.", view.Product),
		})
	}
	return ds
}

// static evaluates what stands in the backend block.
func (p *project) static(ctx context.Context) configure.Eval {
	return func(x hcl.Expression) (cty.Value, diag.List) { return p.engine.Static(ctx, p.vars, x) }
}

// backend opens the place where state lives, and refuses where the folder has to be
// initialized first.
func (p *project) backend(ctx context.Context) (*place, diag.List) {
	root := p.engine.Root()
	if ds := p.refuse(root); len(ds) > 0 {
		return nil, ds
	}
	c, ds := p.workdir().Current(root.Backend, p.static(ctx))
	if ds.HasErrors() {
		return nil, ds
	}
	b, more := p.openBackend(ctx, c, root.Backend)
	return b, append(ds, more...)
}

func (s *session) openBackend(ctx context.Context, c backend.Config, block *config.Backend) (*place, diag.List) {
	b, ds := s.workdir().Open(ctx, c, block)
	if ds.HasErrors() {
		return nil, ds
	}
	return &place{config: c, opened: b}, ds
}

// localFile is the place of states that are named by their files.
func (s *session) localFile(ctx context.Context) (*place, diag.List) {
	c, ds := s.workdir().Of(kinds.Default, cty.NilVal)
	if ds.HasErrors() {
		return nil, ds
	}
	return s.openBackend(ctx, c, nil)
}

// storeOptions say how the states of this command are opened.
func (s *session) storeOptions(f stateFlags) backend.StoreOptions {
	return backend.StoreOptions{StatePath: f.path, OutPath: f.out, BackupPath: f.backup, Waiting: s.lockedBy}
}

// openStore opens the state of a workspace.
func (s *session) openStore(b *place, workspace string, f stateFlags) (store.Store, diag.List) {
	st, err := b.opened.Store(workspace, s.storeOptions(f))
	if err != nil {
		return nil, backend.Message("Failed to open the state", "", err)
	}
	return st, nil
}

// shownIn reads the state of a workspace for a command that changes nothing.
func (s *session) shownIn(ctx context.Context, b *place, workspace string, f stateFlags) (*state.State, diag.List) {
	st, ds := s.openStore(b, workspace, f)
	if ds.HasErrors() {
		return nil, ds
	}
	return s.shown(ctx, st, workspace)
}

// readState serves terraform_remote_state.
func (s *session) readState(ctx context.Context, req engine.ReadStateRequest) (*state.State, diag.List) {
	r := remotestate.Reader{Backends: s.backends(), Dir: s.Dir, Env: s.Env}
	return r.Read(ctx, req.Backend, req.Config, req.Workspace, req.Check)
}
