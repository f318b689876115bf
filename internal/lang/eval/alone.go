package eval

import (
	"context"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// # Without schemas
//
// If the schema of a resource or provider is not available, the expressions in its block are
// evaluated separately.

// Expressions evaluates every expression of the instance's block separately, except those in
// dynamic blocks.
func (d *Desired) Expressions(t *demand.Task) diag.List {
	return within(t, d.Scope(cty.NilVal), d.Resource.code.cfg.Body)
}

// Expressions evaluates every expression of the block separately.
func (p *ProviderConfig) Expressions(t *demand.Task) diag.List {
	if p.cfg == nil {
		return nil
	}
	return within(t, p.Scope(), p.cfg.Body)
}

func within(t *demand.Task, s lang.Scope, body hcl.Body) diag.List {
	var ds diag.List
	config.Expressions(body, func(x hcl.Expression) {
		_, more := lang.Eval(t, s, x, cty.DynamicPseudoType)
		ds = append(ds, more...)
	})
	return ds
}

// CheckInputs checks given values of a root module's variables with their validation rules.
// Variables without a value, resources and outputs of modules are unknown.
func CheckInputs(ctx context.Context, root *config.Module, given map[string]Input, functions map[string]function.Function) diag.List {
	cfg := root
	if !rulesReachOut(root) { // most rules do not, and then nothing else is evaluated
		cfg = &config.Module{Dir: root.Dir, Variables: root.Variables}
	}
	tree := &module.Tree{Root: &module.Node{Config: cfg, Dir: ".", Calls: map[string]*module.Node{}}}
	g := &demand.Graph{}
	ev := New(g, Options{Tree: tree, Phase: anything{}, Variables: given, RootDir: ".", Functions: functions, Validating: true})
	t := g.Task(ctx)
	for _, f := range ev.Root.Validations(func(name string) bool { _, ok := given[name]; return ok }) {
		f(t)
	}
	return g.Diags()
}

// CheckRoot checks the values of all root variables, given or default, as far as the rules
// depend on variables only.
func CheckRoot(ctx context.Context, root *config.Module, given map[string]Input, functions map[string]function.Function) diag.List {
	cfg := &config.Module{Dir: root.Dir, Variables: root.Variables}
	tree := &module.Tree{Root: &module.Node{Config: cfg, Dir: ".", Calls: map[string]*module.Node{}}}
	g := &demand.Graph{}
	ev := New(g, Options{Tree: tree, Phase: anything{}, Variables: given, RootDir: ".", Functions: functions})
	t := g.Task(ctx)
	for i, v := range ev.Root.code.variables {
		if !onlyVariables(v.own) {
			continue
		}
		ev.Root.variables[i].Get(t, nil)
		if onlyVariables(v.other) {
			ev.Root.validateOthers(t, v)
		}
	}
	return g.Diags()
}

// onlyVariables reports whether rules refer to variables only.
func onlyVariables(rules []*ruleCode) bool {
	for _, r := range rules {
		for _, x := range []*lang.Expr{r.cond, r.msg} {
			if x != nil && (x.OfProviders() || slices.ContainsFunc(x.Refs(), func(ref lang.Ref) bool { return ref.RootName() != "var" })) {
				return false
			}
		}
	}
	return true
}

// rulesReachOut reports whether validation rules of a module refer to anything but its
// variables.
func rulesReachOut(m *config.Module) bool {
	for _, v := range m.Variables {
		for _, r := range v.Validations {
			for _, x := range []hcl.Expression{r.Condition, r.ErrorMessage} {
				if x != nil && slices.ContainsFunc(x.Variables(), func(ref hcl.Traversal) bool { return ref.RootName() != "var" }) {
					return true
				}
			}
		}
	}
	return false
}

// anything is a Phase in which everything is unknown.
type anything struct{}

// Value implements Phase.
func (anything) Value(*demand.Task, *Desired) (cty.Value, diag.List) { return cty.DynamicVal, nil }

// Schema implements Phase.
func (anything) Schema(*demand.Task, addr.Provider) (*schema.Provider, diag.List) {
	return nil, demand.Fail()
}

// Function implements Phase.
func (anything) Function(*demand.Task, addr.Provider, *ProviderConfig, string) (function.Function, diag.List) {
	return function.Function{}, demand.Fail()
}
