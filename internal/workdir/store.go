package workdir

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// StateFiles contains the flags of commands that override the location of a local state, and the flag
// that ignores the language version of a remote workspace.
type StateFiles struct {
	Path, Out, Backup string // -state, -state-out and -backup; "" means the file of the backend
	IgnoreVersion     bool   // accept a workspace for another version of the language
}

// LocalFile returns the local backend, for states that are named by their files.
func (c *Directory) LocalFile(ctx context.Context, enc *encryption.Config) (*OpenedBackend, diag.List) {
	cfg, ds := c.Backend().Of(kinds.Default, cty.NilVal)
	if ds.HasErrors() {
		return nil, ds
	}
	return OpenBackend(ctx, c, cfg, nil, enc)
}

// StoreOptions returns the options that open states in a backend.
func (c *Directory) StoreOptions(ctx context.Context, b *OpenedBackend, f StateFiles) backend.StoreOptions {
	return backend.StoreOptions{
		StatePath: f.Path, OutPath: f.Out, BackupPath: f.Backup, Waiting: c.host().Waiting,
		Sealer: b.Encryption.State(ctx).States(), IgnoreVersion: f.IgnoreVersion, Locate: b.Locate,
	}
}

// OpenStore opens the store of a workspace's state.
func (c *Directory) OpenStore(ctx context.Context, b *OpenedBackend, workspace string, f StateFiles) (store.Store, diag.List) {
	return OpenStore(b.Opened, workspace, c.StoreOptions(ctx, b, f))
}

// ReadWorkspace reads the state of a workspace without locking or changing it. It returns nil if there
// is none.
func (c *Directory) ReadWorkspace(ctx context.Context, b *OpenedBackend, workspace string, f StateFiles) (*state.State, diag.List) {
	st, ds := c.OpenStore(ctx, b, workspace, f)
	if ds.HasErrors() {
		return nil, ds
	}
	return c.PlaceOf(b, st, workspace).Read(ctx)
}

// PlaceOf returns the StatePlace of a state in a store.
func (c *Directory) PlaceOf(b *OpenedBackend, st store.Store, workspace string) StatePlace {
	return StatePlace{Store: st, Workspace: workspace, Dir: c.KeepDir(), Encryption: b.Encryption, User: c.User, Host: c.host()}
}

// Locked returns the options that take the state of the workspace; see Take. where is the value of
// -journal; "" means the default.
func (p *Loaded) Locked(ctx context.Context, b *OpenedBackend, f StateFiles, where string, l Lock) (statemgr.Options, diag.List) {
	opened, ds := p.c.OpenStore(ctx, b, p.Workspace, f)
	if ds.HasErrors() {
		return statemgr.Options{}, ds
	}
	at := p.c.PlaceOf(b, opened, p.Workspace)
	at.KeepSegments = KeepSegmentsOf(where, p.Plugins.Config.JournalInStore)
	return at.Locked(ctx, l), ds
}
