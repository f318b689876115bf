package workdir

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/provider/provisioner"
	"github.com/terrace-iac/terrace/internal/state/backend/remotestate"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// An Encrypted returns the encryption settings of a configuration, or nil if it has none.
type Encrypted func(ctx context.Context) (*encryption.Config, diag.List)

// Services returns the services that engines in the directory use: provisioners, and reading of other
// states. If encrypted is nil, terraform_remote_state is not available.
func (f *Directory) Services(encrypted Encrypted) engine.Services {
	out := engine.Services{Provisioners: provisioners{f}}
	if encrypted != nil {
		out.ReadState = f.stateReader(encrypted)
	}
	return out
}

// stateReader returns the function that reads states for terraform_remote_state.
func (f *Directory) stateReader(encrypted Encrypted) engine.ReadState {
	return func(ctx context.Context, req engine.ReadStateRequest) (*state.State, diag.List) {
		r := remotestate.Reader{Backends: f.Backends(), Dir: f.Dir, Env: f.Env}
		if !req.Check {
			enc, ds := encrypted(ctx)
			if ds.HasErrors() {
				return nil, ds
			}
			r.Options.Sealer = enc.RemoteState(ctx, req.Address).States()
		}
		return r.Read(ctx, req.Backend, req.Config, req.Workspace, req.Check)
	}
}

// provisioners contains the provisioners of the embedding program, and the built-in ones.
type provisioners struct{ f *Directory }

// own returns the provisioners of the embedding program if they contain the type, or nil.
func (p provisioners) own(typ string) engine.Provisioners {
	if o := p.f.Provisioners; o != nil && o.Schema(typ) != nil {
		return o
	}
	return nil
}

func (p provisioners) Schema(typ string) *schema.Block {
	if o := p.own(typ); o != nil {
		return o.Schema(typ)
	}
	return provisioner.Schema(typ)
}

func (provisioners) ConnectionSchema() *schema.Block { return provisioner.ConnectionSchema() }

func (p provisioners) Validate(typ string, config, connection cty.Value) diag.List {
	if o := p.own(typ); o != nil {
		return o.Validate(typ, config, connection)
	}
	return provisioner.Validate(typ, config, connection)
}

func (p provisioners) Run(ctx context.Context, typ string, config, connection cty.Value, output func(line string)) diag.List {
	if o := p.own(typ); o != nil {
		return o.Run(ctx, typ, config, connection, output)
	}
	return provisioner.Run(ctx, provisioner.Request{
		Type: typ, Config: config, Connection: connection, Dir: p.f.Dir, Env: p.f.programEnv(ctx), Output: output, Exec: p.f.Run,
	})
}

// programEnv returns the environment of the programs that provisioners start. In a unit it contains
// the unit's inputs.
func (f *Directory) programEnv(ctx context.Context) sys.Env {
	if f.Unit != nil {
		return f.Unit.Environ(ctx)
	}
	return f.Env
}
