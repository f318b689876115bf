package project

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// OpenBackend opens a place by its configuration. block is where that stands, nil for
// nowhere.
func OpenBackend(ctx context.Context, c *command.Call, cfg backend.Config, block *config.Backend, enc *encryption.Config) (*Place, diag.List) {
	return workdir.OpenBackend(ctx, c.Directory, cfg, block, enc)
}

// LocalFile is the place of states that are named by their files.
func LocalFile(ctx context.Context, c *command.Call, enc *encryption.Config) (*Place, diag.List) {
	cfg, ds := c.Directory.Backend().Of(kinds.Default, cty.NilVal)
	if ds.HasErrors() {
		return nil, ds
	}
	return OpenBackend(ctx, c, cfg, nil, enc)
}

// StoreOptions say how the states of this command are opened.
func StoreOptions(c *command.Call, b *Place, f flags.State) backend.StoreOptions {
	return backend.StoreOptions{
		StatePath: f.Path, OutPath: f.Out, BackupPath: f.Backup, Waiting: c.Host.Waiting,
		Sealer: b.Encryption.State(c.Report.Context).States(), IgnoreVersion: f.IgnoreVersion, Locate: b.Locate,
	}
}

// OpenStore opens the state of a workspace.
func OpenStore(c *command.Call, b *Place, workspace string, f flags.State) (store.Store, diag.List) {
	return workdir.OpenStore(b.Opened, workspace, StoreOptions(c, b, f))
}

// ReadWorkspace reads the state of a workspace for a command that changes nothing.
func ReadWorkspace(ctx context.Context, c *command.Call, b *Place, workspace string, f flags.State) (*state.State, diag.List) {
	st, ds := OpenStore(c, b, workspace, f)
	if ds.HasErrors() {
		return nil, ds
	}
	return readStore(ctx, c, b, st, workspace)
}
