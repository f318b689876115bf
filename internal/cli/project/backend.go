package project

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/backend/configure"
	"github.com/terrace-iac/terrace/internal/backend/kinds"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/vars"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"

	"github.com/hashicorp/hcl/v2"
)

// A Place is where the state of the working folder lives, and how it is encrypted.
type Place struct {
	Config     backend.Config
	Opened     backend.Backend
	Encryption *encryption.Config // nil for none
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
	cfg, more := p.Folder().Backend().Current(root.Backend, p.Static(ctx))
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	b, more := OpenBackend(ctx, p.Call, cfg, root.Backend, enc)
	return b, append(ds, more...)
}

func OpenBackend(ctx context.Context, c *command.Call, cfg backend.Config, block *config.Backend, enc *encryption.Config) (*Place, diag.List) {
	b, ds := c.Folder().Backend().Open(ctx, cfg, block)
	if ds.HasErrors() {
		return nil, ds
	}
	return &Place{Config: cfg, Opened: b, Encryption: enc}, ds
}

// LocalFile is the place of states that are named by their files.
func LocalFile(ctx context.Context, c *command.Call, enc *encryption.Config) (*Place, diag.List) {
	cfg, ds := c.Folder().Backend().Of(kinds.Default, cty.NilVal)
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

// ReadWorkspace reads the state of a workspace for a command that changes nothing.
func ReadWorkspace(ctx context.Context, c *command.Call, b *Place, workspace string, f flags.State) (*state.State, diag.List) {
	st, ds := OpenStore(c, b, workspace, f)
	if ds.HasErrors() {
		return nil, ds
	}
	return readStore(ctx, c, b, st, workspace)
}
