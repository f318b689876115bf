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

// An Explanation is the way from a value to the text that set it. What it is made of, and
// what gives a module its inputs, package explanation names.
type Explanation = explanation.Explanation

// ExplainOptions are what configuration alone does not know. The zero value is
// enough for an answer.
type ExplainOptions struct {
	Variables map[string]InputValue // those that are missing are unknown

	// Lost lists values of a variable that those in Variables won over, the next
	// best first. Nil if nobody collected them.
	Lost func(name string) []InputValue

	// State has values that only providers know. They are shown where the
	// provider's schema can be had, since it says what is sensitive. Nil for none.
	State *state.State

	// Unit is what gives the module its inputs, with the text of its files, and Show
	// the names of files for readers. Nil in a plain folder.
	Unit    explanation.Unit
	UnitSet *source.Set
	Show    func(file string) (name, layer string)

	// Installed is called once, before the first schema is asked for, to find the
	// programs of providers. Nil if they are found already.
	Installed func()
}

// Explain tells where the value at ADDRESS[.PATH] comes from. Of the providers on
// the way there, those that are installed are started, to learn from their schemas
// what must not be shown; without them the names of arguments decide.
func (e *Engine) Explain(ctx context.Context, address string, o ExplainOptions) (*Explanation, diag.List) {
	vars, ds := e.inputsOrUnknown(o.Variables)
	if ds.HasErrors() {
		return &Explanation{Address: address}, ds
	}
	layers := make(map[string]source.Layer, len(o.Variables))
	for name, v := range o.Variables {
		layers[name] = v.From
	}
	graph := &demand.Graph{}
	t := graph.Task(ctx)
	schemas := e.schemas(ctx, o.Installed)
	x := &origin.Explainer{Set: e.o.Set, Layers: layers, Known: e.known(ctx, o.State, schemas), Schema: schemas, Unit: o.Unit, UnitSet: o.UnitSet, Show: o.Show}
	files := e.files()
	x.File = func(name string) (string, []byte, bool) {
		path := filepath.Clean(name)
		text, err := files.Read(path)
		return path, text, err == nil && !strings.HasPrefix(name, "~") // which is the user's home
	}
	if o.Lost != nil {
		x.Lost = func(name string) (out []origin.Given) {
			for _, v := range o.Lost(name) {
				out = append(out, origin.Given{At: v.At, Layer: v.From})
			}
			return out
		}
	}
	x.Eval = eval.New(graph, eval.Options{
		Tree: e.tree, Phase: origin.Phase{Explainer: x}, Variables: vars, Workspace: e.o.Workspace,
		RootDir: ".", Cwd: e.o.LaunchDir, Functions: e.functions(time.Time{}, true),
	})
	out, more := x.Explain(t, address)
	return out, append(ds, more...)
}

// schemas asks providers for their schemas, each once; nil where that fails.
// Explaining is one task, and so nothing is locked.
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

// known reads instances in a state. What cannot be read, or whose schema cannot
// be had, is not known.
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
