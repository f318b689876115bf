package cli

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provisioner"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// provisioners gives the engine the built-in provisioners.
type provisioners struct{ *session }

func (provisioners) Schema(typ string) *schema.Block { return provisioner.Schema(typ) }

func (provisioners) ConnectionSchema() *schema.Block { return provisioner.ConnectionSchema() }

func (provisioners) Validate(typ string, config, connection cty.Value) diag.List {
	return provisioner.Validate(typ, config, connection)
}

func (p provisioners) Run(ctx context.Context, typ string, config, connection cty.Value, output func(line string)) diag.List {
	return provisioner.Run(ctx, provisioner.Request{
		Type: typ, Config: config, Connection: connection, Dir: p.Dir, Env: p.Env, Output: output, Exec: p.System.Run,
	})
}
