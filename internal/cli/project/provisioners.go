package project

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/provisioner"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// programEnv is the environment of the programs that provisioners start: in a unit
// they see its inputs.
func programEnv(c *command.Call) sys.Env {
	if c.Unit != nil {
		return c.Unit.Programs()
	}
	return c.Env
}

// Services are what engines on the folder of a call ask of the program. Without encrypted
// there is no terraform_remote_state.
func Services(c *command.Call, encrypted Encrypted) engine.Services {
	out := engine.Services{Provisioners: Provisioners{c}}
	if encrypted != nil {
		out.ReadState = stateReader(c, encrypted)
	}
	return out
}

// Provisioners gives the engine the built-in provisioners.
type Provisioners struct{ *command.Call }

func (Provisioners) Schema(typ string) *schema.Block { return provisioner.Schema(typ) }

func (Provisioners) ConnectionSchema() *schema.Block { return provisioner.ConnectionSchema() }

func (Provisioners) Validate(typ string, config, connection cty.Value) diag.List {
	return provisioner.Validate(typ, config, connection)
}

func (p Provisioners) Run(ctx context.Context, typ string, config, connection cty.Value, output func(line string)) diag.List {
	return provisioner.Run(ctx, provisioner.Request{
		Type: typ, Config: config, Connection: connection, Dir: p.Dir, Env: programEnv(p.Call), Output: output, Exec: p.Call.Run,
	})
}
