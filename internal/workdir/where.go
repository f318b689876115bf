package workdir

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// WhereState opens the backend of the directory, for commands that read or list state. They need
// neither modules nor providers. It returns an error if a configuration file cannot be parsed: that
// file may contain the backend block, and the command would read another state.
func (c *Directory) WhereState(ctx context.Context, given []VarFlag) (*OpenedBackend, diag.List) {
	root, bad := c.Root()
	if bad.HasErrors() {
		return nil, bad.Errors()
	}
	if root.Backend == nil && root.Encryption == nil {
		enc, ds := c.EnvironmentEncryption()
		if ds.HasErrors() {
			return nil, ds
		}
		cfg, more := c.Backend().Current(nil, nil)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		b, more := OpenBackend(ctx, c, cfg, nil, enc)
		return b, append(ds, more...)
	}
	p, ds := Load(ctx, c, LoadOptions{Vars: given, Input: false, Partial: true, StateOnly: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	b, more := p.Backend(ctx)
	return b, append(ds, more...)
}

// PendingPlaces returns the backends of a backend change that init has not finished: first the new
// backend, which may already contain some of the states, then the previous one. options are the values
// of -backend-config.
func (c *Directory) PendingPlaces(ctx context.Context, given []VarFlag, options []string) ([]*OpenedBackend, diag.List) {
	root, ds := c.Root()
	if ds.HasErrors() {
		return nil, ds
	}
	p, ds := Load(ctx, c, LoadOptions{Vars: given, Input: false, Partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	enc, ds := p.Encryption(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	out, more := c.Backend().Settle(ctx, selection.Init{
		Block: root.Backend, Options: options, Read: c.BackendFile, Eval: p.Static(ctx), Pending: true,
	})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	to, more := OpenBackend(ctx, c, out.Config, root.Backend, enc)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	places := []*OpenedBackend{to}
	if out.From != nil {
		from, more := OpenBackend(ctx, c, *out.From, nil, enc)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		places = append(places, from)
	}
	return places, ds
}

// CurrentState reads the state of the selected workspace, or the state file path if it is not "". It
// locks and changes nothing.
func (c *Directory) CurrentState(ctx context.Context, given []VarFlag, path string) (*state.State, diag.List) {
	b, ds := c.WhereState(ctx, given)
	if ds.HasErrors() {
		return nil, ds // even if path is set, because the encryption settings are needed
	}
	if path != "" {
		file, ds := c.LocalFile(ctx, b.Encryption)
		if ds.HasErrors() {
			return nil, ds
		}
		return c.ReadWorkspace(ctx, file, store.Default, StateFiles{Path: path})
	}
	name, more := c.Workspace()
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	st, more := c.ReadWorkspace(ctx, b, name, StateFiles{})
	return st, append(ds, more...)
}

// CurrentState reads the state of the workspace without locking it. It returns nil if there is none.
func (p *Loaded) CurrentState(ctx context.Context) (*state.State, diag.List) {
	b, ds := p.Backend(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	st, more := p.c.ReadWorkspace(ctx, b, p.Workspace, StateFiles{})
	return st, append(ds, more...)
}
