package eval

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// ProviderMeta is the provider_meta of the module that an instance stands in, for
// the provider of the instance, or cty.NilVal. Its arguments are constants. The
// block that it is read with is asked for only where there is something to read;
// nil: the provider takes none.
func (ev *Evaluator) ProviderMeta(a addr.Instance, block func() *schema.Block) cty.Value {
	n := ev.o.Tree.Node(a.Module)
	if n == nil || len(n.Config.ProviderMetas) == 0 {
		return cty.NilVal
	}
	r := n.Config.Resources[a.Resource]
	if r == nil {
		return cty.NilVal
	}
	pm := n.Config.ProviderMetas[r.LocalProvider()]
	if pm == nil {
		return cty.NilVal
	}
	s := block()
	if s == nil {
		return cty.NilVal
	}
	b, ds := lang.CompileBody(pm.Body, s)
	if ds.HasErrors() {
		return cty.NilVal
	}
	v, ds := b.Eval(nil, nil)
	if ds.HasErrors() {
		return cty.NilVal
	}
	return v
}
