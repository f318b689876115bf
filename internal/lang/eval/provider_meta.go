package eval

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// providerMeta is a provider_meta block, decoded once for all instances of its module.
type providerMeta struct {
	once  sync.Once
	value cty.Value
}

// ProviderMeta returns the provider_meta of an instance's module for the instance's provider,
// or cty.NilVal. Its arguments are constants. ask is only called if there is a block. Errors
// are reported once for the block, which then counts as missing.
func (ev *Evaluator) ProviderMeta(a addr.Instance, of addr.Provider, ask func() (*schema.Provider, diag.List)) cty.Value {
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
	known, _ := ev.metas.LoadOrStore(pm, &providerMeta{})
	m := known.(*providerMeta)
	m.once.Do(func() {
		v, ds := readMeta(pm, of, ask)
		ev.report(ds)
		m.value = v
	})
	return m.value
}

func readMeta(pm *config.ProviderMeta, of addr.Provider, ask func() (*schema.Provider, diag.List)) (cty.Value, diag.List) {
	s, ds := ask()
	if ds.HasErrors() {
		return cty.NilVal, nil // reported to the caller that computes the instance
	}
	if s.Meta == nil {
		return cty.NilVal, diag.Errorf(diag.CodeEvalProviderMeta, &pm.At, "Provider "+of.String()+" doesn't support provider_meta", "Resources of this module belong to a provider that takes no provider_meta block. Remove the block.")
	}
	b, ds := lang.CompileBody(pm.Body, s.Meta)
	if ds.HasErrors() {
		return cty.NilVal, ds
	}
	v, more := b.Eval(nil, nil)
	if ds = append(ds, more...); ds.HasErrors() {
		return cty.NilVal, ds
	}
	return v, ds
}
