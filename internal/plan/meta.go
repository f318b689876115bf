package plan

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/zclconf/go-cty/cty"
)

// meta is the provider_meta of the module that an instance stands in, or cty.NilVal.
func (p *planner) meta(a addr.Instance, prov provider.Provider) cty.Value {
	return p.shell.Meta(p.nodeOf(a.Module), a, prov)
}

// Meta is the provider_meta of a module for the provider of an instance, or
// cty.NilVal. Its arguments are constants.
func (s *Shell) Meta(n *module.Node, a addr.Instance, prov provider.Provider) cty.Value {
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
	ps, ds := prov.Schema(s.Context)
	if ds.HasErrors() || ps.Meta == nil {
		return cty.NilVal
	}
	b, ds := lang.CompileBody(pm.Body, ps.Meta)
	if ds.HasErrors() {
		return cty.NilVal
	}
	v, ds := b.Eval(nil, nil)
	if ds.HasErrors() {
		return cty.NilVal
	}
	return v
}
