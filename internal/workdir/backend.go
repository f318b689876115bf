package workdir

import (
	"context"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/zclconf/go-cty/cty"

	"github.com/hashicorp/hcl/v2"
)

// An OpenedBackend is an opened backend with its configuration and the encryption of its states.
type OpenedBackend struct {
	Config     backend.Config
	Opened     backend.Backend
	Encryption *encryption.Config // nil means none
	// Locate adds the source ranges of arguments in the backend block to messages about the
	// backend. nil means that the backend has no block.
	Locate func(diag.List) diag.List
}

// Located returns messages about the backend with source ranges in the backend block.
func (p *OpenedBackend) Located(ds diag.List) diag.List {
	return backend.StoreOptions{Locate: p.Locate}.Located(ds)
}

// Static returns the function that evaluates expressions of the backend and encryption blocks. They
// may refer to variables and locals, not to objects.
func (p *Loaded) Static(ctx context.Context) configure.Eval { return p.staticWith(ctx, p.Vars) }

func (p *Loaded) staticWith(ctx context.Context, values Variables) configure.Eval {
	return func(x hcl.Expression) (cty.Value, diag.List) { return p.Engine.Static(ctx, engine.Given(values), x) }
}

// StaticAsking is like Static, for a configuration that was loaded although variables have no value.
// It asks the user for the variables that an expression needs, directly or through locals, if input
// is true and the Host can ask. Otherwise it returns an error for each of them. block is the address
// of the block that contains the expressions, for the errors; "" omits it.
func (p *Loaded) StaticAsking(ctx context.Context, input bool, block string) configure.Eval {
	eval := p.Static(ctx)
	return func(x hcl.Expression) (cty.Value, diag.List) {
		root := p.Engine.Root()
		needed := map[string]*config.Variable{}
		variablesOf(root, x, needed, map[string]bool{})
		_, ds := p.ask(ctx, p.Vars, engine.Missing(p.Vars, needed), input)
		if !ds.HasErrors() {
			return eval(x)
		}
		if block != "" {
			var names []string
			for _, v := range engine.Missing(p.Vars, needed) {
				names = append(names, "var."+v.Name)
			}
			at := x.Range()
			ds = ds.Note(&at, "%s depends on %s which is not available", block, strings.Join(names, ", "))
		}
		return cty.DynamicVal, ds
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

// Backend opens the backend of the directory. It returns an error if the directory must be
// initialized first.
func (p *Loaded) Backend(ctx context.Context) (*OpenedBackend, diag.List) {
	root := p.Engine.Root()
	enc, ds := p.Encryption(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	cfg, more := p.c.Backend().Current(root.Backend, p.Static(ctx))
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	b, more := OpenBackend(ctx, p.c, cfg, root.Backend, enc)
	return b, append(ds, more...)
}

// OpenBackend opens a backend with the given configuration. block is the block that contains the
// configuration, or nil.
func OpenBackend(ctx context.Context, f *Directory, cfg backend.Config, block *config.Backend, enc *encryption.Config) (*OpenedBackend, diag.List) {
	b, ds := f.Backend().Open(ctx, cfg, block)
	if ds.HasErrors() {
		return nil, ds
	}
	p := &OpenedBackend{Config: cfg, Opened: b, Encryption: enc}
	if block != nil {
		p.Locate = func(ds diag.List) diag.List { return f.Backend().Locate(ds, cfg, block) }
	}
	return p, ds
}

// Rescue prints a state that could not be written to its store or to a file. It always returns an
// error: that the state was printed, or that printing failed too.
func Rescue(w io.Writer, text []byte) diag.List {
	if _, err := w.Write(text); err != nil {
		return diag.Errorf(diag.CodeStateFile, nil, "Failed to print the state", "The state could not be printed either: %s. The journal holds what is not in the state: leave it where it is.", err)
	}
	return diag.Errorf(diag.CodeStatePrinted, nil, "State printed", "As a last resort the state was printed to standard output. Save it as a file and bring it back with \"terrace state push FILE\", or with a tool that can.")
}
