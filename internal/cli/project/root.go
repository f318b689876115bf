package project

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/state"
)

// Root loads the root module alone.
func Root(c *command.Call) (*config.Module, diag.List) { return c.Directory.Root() }

// OnDisk are the files of the folder that is worked in, as they lie on disk.
func OnDisk(c *command.Call) config.FS { return c.Directory.OnDisk() }

// FilesOf are the files of the folder that is worked in.
func FilesOf(c *command.Call) config.FS { return c.Directory.FilesOf() }

// WhereState tells where state lives, for commands that read or list state:
// they need neither modules nor providers. A folder whose files cannot be read as
// configuration is refused: the backend block may stand in what was not understood, and
// the state would be taken from another place.
func WhereState(ctx context.Context, c *command.Call, given []workdir.VarFlag) (*Place, diag.List) {
	root, bad := Root(c)
	if bad.HasErrors() {
		return nil, bad.Errors()
	}
	if root.Backend == nil && root.Encryption == nil {
		enc, ds := c.Directory.EnvironmentEncryption()
		if ds.HasErrors() {
			return nil, ds
		}
		cfg, more := c.Directory.Backend().Current(nil, nil)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		b, more := OpenBackend(ctx, c, cfg, nil, enc)
		return b, append(ds, more...)
	}
	p, ds := Load(ctx, c, Options{Vars: given, Input: false, Partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	b, more := p.Backend(ctx)
	return b, append(ds, more...)
}

// PendingPlaces are the two places of a change of the backend that init has to carry out:
// first the new one, which may hold a part of the states, then the one that was in use.
func PendingPlaces(ctx context.Context, c *command.Call, given []workdir.VarFlag, options []string) ([]*Place, diag.List) {
	root, ds := Root(c)
	if ds.HasErrors() {
		return nil, ds
	}
	p, ds := Load(ctx, c, Options{Vars: given, Input: false, Partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	enc, ds := p.Encryption(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	out, more := c.Directory.Backend().Settle(ctx, selection.Init{
		Block: root.Backend, Options: options, Read: c.Directory.BackendFile, Eval: p.Static(ctx), Pending: true,
	})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	to, more := OpenBackend(ctx, c, out.Config, root.Backend, enc)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	places := []*Place{to}
	if out.From != nil {
		from, more := OpenBackend(ctx, c, *out.From, nil, enc)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		places = append(places, from)
	}
	return places, ds
}

// CurrentState reads the state of the selected workspace, or that of a file,
// without changing anything.
func CurrentState(ctx context.Context, c *command.Call, given []workdir.VarFlag, path string) (*state.State, diag.List) {
	b, ds := WhereState(ctx, c, given)
	if ds.HasErrors() {
		return nil, ds // also where a file is named: another backend has the last word
	}
	if path != "" {
		file, ds := LocalFile(ctx, c, b.Encryption)
		if ds.HasErrors() {
			return nil, ds
		}
		return ReadWorkspace(ctx, c, file, store.Default, flags.State{Path: path})
	}
	name, more := c.Directory.Workspace()
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	st, more := ReadWorkspace(ctx, c, b, name, flags.State{})
	return st, append(ds, more...)
}

// CurrentState reads the state of the selected workspace; nil if there is none.
func (p *Project) CurrentState(ctx context.Context) (*state.State, diag.List) {
	b, ds := p.Backend(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	st, more := ReadWorkspace(ctx, p.Call, b, p.Workspace, flags.State{})
	return st, append(ds, more...)
}
