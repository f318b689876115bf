package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

func decodeCall(o *object) (*Call, diag.List) {
	c, ds := kinds().module.merge(o.parts)
	e := &errs{ds}
	call := &Call{Name: o.key.a, Body: c.rest, At: c.head, Merged: mergedFrom(o.parts), Version: c.args["version"]}
	e.add(validName(call.Name, c.head, "module instance"))
	call.Source = keep[*Setting](e)(c.required("source"))
	call.Providers = keep[[]PassedProvider](e)(decodePassed(c.args["providers"]))
	call.DependsOn = keep[[]hcl.Traversal](e)(traversals(c.args["depends_on"]))
	life, ds := c.inner("lifecycle", kinds().callLife)
	e.add(ds)
	var enabled *Setting
	if life != nil {
		enabled = life.args["enabled"]
	}
	call.Repeat = keep[Repeat](e)(c.repeat(enabled))
	return call, e.ds
}

func decodeProvider(o *object) (*Provider, diag.List) {
	c, ds := kinds().provider.merge(o.parts)
	e := &errs{ds}
	p := &Provider{Name: o.key.a, Alias: o.key.b, Body: c.rest, At: c.head, Merged: mergedFrom(o.parts), ForEach: c.args["for_each"], Empty: emptyBody(c.rest) && c.args["for_each"] == nil}
	e.add(providerName(p.Name, c.head))
	if s := c.args["version"]; s != nil {
		text, ds := s.constString()
		e.add(ds)
		e.add(s.explain(warnAt(diag.CodeConfigProviderVersion, s.NameRange, "Version constraints inside provider configuration blocks are deprecated",
			"A constraint on the version of a provider belongs in required_providers in a terraform block; the version argument here will go away.")))
		if !ds.HasErrors() {
			p.Version = keep[[]Constraint](e)(constraint(text, s.Expr.Range()))
		}
	}
	if p.ForEach != nil && p.Alias == "" {
		e.add(p.ForEach.explain(errorAt(diag.CodeConfigProviderForEach, p.ForEach.NameRange, "Alias required when using \"for_each\"",
			"A provider configuration with for_each needs an alias, by which its instances are named.")))
	}
	return p, e.ds
}

// emptyBody reports whether a body has no content.
func emptyBody(body hcl.Body) bool {
	if b, ok := body.(*hclnative.Body); ok {
		return len(b.Attrs) == 0 && len(b.Blocks) == 0
	}
	_, diags := body.Content(&hcl.BodySchema{})
	return !diags.HasErrors()
}
