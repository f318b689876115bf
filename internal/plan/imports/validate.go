package imports

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/zclconf/go-cty/cty"
)

// Validate returns errors in the ids and identities of import blocks. It does not need state,
// and it checks objects that are already in state, too. It skips blocks with for_each or a
// computed index, and null values, which the plan checks.
func Validate(t *demand.Task, ev *eval.Evaluator) diag.List {
	return validateModule(t, ev, ev.Root)
}

func validateModule(t *demand.Task, ev *eval.Evaluator, m *eval.Module) (ds diag.List) {
	for _, b := range m.Node.Config.Imports {
		if b.ForEach == nil {
			ds = append(ds, validateBlock(t, ev, m, b)...)
		}
	}
	for _, call := range callsWith(m, func(addr.ConfigResource) bool { return true }) {
		if ch, ok := call.Children(t); ok {
			for _, child := range ch.All {
				ds = append(ds, validateModule(t, ev, child)...)
			}
		}
	}
	return ds
}

func validateBlock(t *demand.Task, ev *eval.Evaluator, m *eval.Module, b *config.ImportBlock) diag.List {
	target, ds := refactoring.ReadAddress(b.To, nil)
	if ds.HasErrors() || target.IsModule() {
		return nil // the plan reports it
	}
	it := &Instance{Addr: target.Instance(), Block: b, ev: ev, mod: m}
	if b.Identity == nil {
		_, ds := lang.Eval(t, it.scope(), lang.Compile(b.ID.Expr), cty.String)
		return ds
	}
	it.ident = lang.Compile(b.Identity.Expr)
	v, ds := lang.Eval(t, it.scope(), it.ident, cty.DynamicPseudoType)
	plain, _ := v.UnmarkDeep()
	if ds.HasErrors() || !plain.IsWhollyKnown() || plain.IsNull() || hasNull(plain) {
		return ds
	}
	r := m.Resource(it.Addr.Resource)
	if r == nil || it.Addr.Module != "" {
		return ds
	}
	s, more := r.Schema(t)
	if more.HasErrors() || s.Identity == nil {
		return ds // reported with the resource or by the plan
	}
	_, more = it.fit(plain, s)
	return append(ds, more...)
}

// hasNull reports whether any attribute of an object is null.
func hasNull(v cty.Value) bool {
	if !v.Type().IsObjectType() {
		return false
	}
	for name := range v.Type().AttributeTypes() {
		if v.GetAttr(name).IsNull() {
			return true
		}
	}
	return false
}
