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

// providerMeta is a provider_meta block, read once for all instances of its module.
type providerMeta struct {
	once  sync.Once
	value cty.Value
}

// ProviderMeta is the provider_meta of the module that an instance stands in, for
// the provider of the instance, or cty.NilVal. Its arguments are constants. The
// schema is asked for only where there is something to read; what is wrong is
// reported once for the block, which then counts as none.
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
		return cty.NilVal, nil // reported to who asks for the instance
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
