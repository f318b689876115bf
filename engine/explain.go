package engine

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// ExplainOptions is the information for Explain that is not in the configuration. The zero
// value is usable.
type ExplainOptions struct {
	Variables map[string]InputValue // missing variables are unknown

	// Lost returns the values of a variable that were overridden by the value in Variables, in
	// order of precedence. nil means that they are not known.
	Lost func(name string) []InputValue

	// State contains values that only providers know. They are shown if the provider's schema
	// is available, because the schema marks sensitive attributes. nil means none.
	State *state.State

	// Unit describes the unit that sets the inputs of the module, with the text of its files.
	// Show returns the displayed name of a file. Both are nil in a directory without units.
	Unit    explanation.InputSource
	UnitSet *source.Set
	Show    func(file string) (name, layer string)

	// Installed is called once, before the first schema is needed, to locate the executables of
	// providers. nil means that they are located already.
	Installed func()
}

// Explain explains the value at ADDRESS[.PATH]. It starts installed providers that are
// involved, because their schemas mark sensitive attributes. For other providers the names of
// arguments decide whether a value is hidden.
func (e *Engine) Explain(ctx context.Context, address string, o ExplainOptions) (*explanation.Explanation, diag.List) {
	x, t, ds := e.explainer(ctx, o)
	if ds.HasErrors() {
		return &explanation.Explanation{Address: address}, ds
	}
	out, more := x.Explain(t, address)
	return out, append(ds, more...)
}

// ModuleInstances returns the addresses of the instances of a called module, in the order of their keys, at most
// limit. calls contains the names of the module calls that lead to the module from the root module. Instances that
// are not known have one address, without a key. The result is nil, and not empty, if a call does not exist, or if
// its module is not installed.
func (e *Engine) ModuleInstances(ctx context.Context, calls []string, o ExplainOptions, limit int) []addr.ModuleInstance {
	x, t, ds := e.explainer(ctx, o)
	if ds.HasErrors() {
		return nil
	}
	all := []*eval.Module{x.Eval.Root}
	for _, name := range calls {
		var next []*eval.Module
		for _, m := range all {
			call := m.Call(name)
			if call == nil || call.Node == nil {
				return nil
			}
			known, ok := call.Children(t)
			if ok && !known.Unknown {
				next = append(next, known.All...)
			}
			if !ok || known.Unknown || known.Placeholder != nil {
				next = append(next, call.AnyChild())
			}
			if len(next) >= limit || ctx.Err() != nil {
				break
			}
		}
		all = next[:min(len(next), limit)]
	}
	out := make([]addr.ModuleInstance, len(all))
	for i, m := range all {
		out[i] = m.Addr
	}
	return out
}

// explainer returns what explains values of the configuration, with the task that evaluates it.
func (e *Engine) explainer(ctx context.Context, o ExplainOptions) (*origin.Explainer, *demand.Task, diag.List) {
	e.ExpectStates(o.State)
	vars, ds := e.inputsOrUnknown(o.Variables)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	graph := &demand.Graph{}
	x := e.explaining(ctx, o, e.schemas(ctx, o.Installed))
	x.Eval = eval.New(graph, eval.Options{
		Tree: e.tree, Phase: origin.Phase{Explainer: x}, Variables: vars, Workspace: e.o.Workspace,
		RootDir: ".", Cwd: e.o.LaunchDir, Functions: e.functions(time.Time{}, true),
	})
	return x, graph.Task(ctx), ds
}

// explaining returns an explainer without an evaluation.
func (e *Engine) explaining(ctx context.Context, o ExplainOptions, schemas func(addr.Provider) *schema.Provider) *origin.Explainer {
	layers := make(map[string]source.Layer, len(o.Variables))
	for name, v := range o.Variables {
		layers[name] = v.From
	}
	x := &origin.Explainer{Set: e.o.Set, Layers: layers, Known: e.known(ctx, o.State, schemas), Schema: schemas, Unit: o.Unit, UnitSet: o.UnitSet, Show: o.Show}
	files := e.files()
	x.File = func(name string) (string, []byte, bool) {
		path := filepath.Clean(name)
		text, err := files.Read(path)
		return path, text, err == nil && !strings.HasPrefix(name, "~") // "~" is the user's home directory
	}
	if o.Lost != nil {
		x.Lost = func(name string) (out []origin.Given) {
			for _, v := range o.Lost(name) {
				out = append(out, origin.Given{At: v.At, Layer: v.From})
			}
			return out
		}
	}
	return x
}

// schemas returns a function that gets the schema of a provider once, or nil on failure.
// Explain runs in one task, so there is no lock.
func (e *Engine) schemas(ctx context.Context, installed func()) func(addr.Provider) *schema.Provider {
	x := resourceclient.New(ctx, resourceclient.Options{Providers: e.pool})
	cache := map[addr.Provider]*schema.Provider{}
	return func(a addr.Provider) *schema.Provider {
		if s, ok := cache[a]; ok {
			return s
		}
		if installed != nil && !a.IsBuiltIn() {
			installed()
			installed = nil
		}
		s, ds := x.Schema(a)
		if ds.HasErrors() {
			s = nil
		}
		cache[a] = s
		return s
	}
}

// known returns a function that reads instances from a state. The result is unknown if the
// instance cannot be decoded or its schema is not available.
func (e *Engine) known(ctx context.Context, s *state.State, schemas func(addr.Provider) *schema.Provider) func(addr.Instance) cty.Value {
	if s == nil {
		return nil
	}
	x := resourceclient.New(ctx, resourceclient.Options{Providers: e.pool})
	cache := map[addr.Instance]cty.Value{}
	return func(a addr.Instance) cty.Value {
		if v, ok := cache[a]; ok {
			return v
		}
		cache[a] = cty.NilVal
		r := s.Resources[a.Abs()]
		if r == nil || r.Instances[a.Key] == nil || r.Instances[a.Key].Current == nil {
			return cty.NilVal
		}
		p := schemas(r.Provider.Provider)
		if p == nil {
			return cty.NilVal
		}
		rs := p.Resource(a.Resource.Mode, a.Resource.Type)
		if rs == nil {
			return cty.NilVal
		}
		o := r.Instances[a.Key].Current
		v, ds := x.Decode(a, o, rs, r.Provider.Provider)
		if ds.HasErrors() || v == cty.NilVal {
			return cty.NilVal
		}
		cache[a] = resourceclient.WithSensitive(v, o.Sensitive, rs)
		return cache[a]
	}
}
