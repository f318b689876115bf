package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
)

// connection decodes the connection block of a resource, provisioner or removed block.
func connection(c *content) (*Block, diag.List) {
	all := c.blocks("connection")
	if len(all) == 0 {
		return nil, nil
	}
	first := all[0][0]
	var ds diag.List
	for _, b := range all[1:] {
		ds = append(ds, errorAt(diag.CodeConfigDuplicateBlock, b[0].head, "Duplicate connection block",
			"A block of type %s can hold only one connection block.", c.kind.name).Note(&first.head, "the first one")...)
	}
	return &Block{Body: first.body, At: first.head}, ds
}

func provisioners(c *content) (out []*Provisioner, ds diag.List) {
	for _, parts := range c.blocks("provisioner") {
		p, more := decodeProvisioner(parts)
		ds = append(ds, more...)
		out = append(out, p)
	}
	return out, ds
}

func decodeProvisioner(parts []part) (*Provisioner, diag.List) {
	c, ds := kinds().provisioner.merge(parts)
	e := &errs{ds}
	p := &Provisioner{Type: parts[0].labels[0], Body: c.rest, At: c.head}
	switch p.Type {
	case "chef", "habitat", "puppet", "salt-masterless":
		e.add(errorAt(diag.CodeConfigRemovedProvisioner, c.head, "Provisioner removed",
			"The provisioner %q is no longer part of the language. Use local-exec or remote-exec instead.", p.Type))
	}
	switch word := e.keyword(c.args["when"], diag.CodeConfigProvisionerWhen, `Invalid "when" keyword`, "create", "destroy"); word {
	case "destroy":
		p.OnDestroy = true
	}
	switch word := e.keyword(c.args["on_failure"], diag.CodeConfigProvisionerOnFailure, `Invalid "on_failure" keyword`, "continue", "fail"); word {
	case "continue":
		p.Continue = true
	}
	p.Connection = keep[*Block](e)(connection(c))
	if p.OnDestroy {
		e.add(onlySelf(parts[0].body))
	}
	return p, e.ds
}

// keyword decodes an argument that is one of two bare words.
func (e *errs) keyword(s *Setting, code, summary, a, b string) string {
	if s == nil {
		return ""
	}
	x, diags := native(s.Expr)
	if diags.HasErrors() {
		e.add(diag.FromHCL(diags))
		return ""
	}
	if inner, quoted := unquoted(x); quoted {
		e.add(warnAt(diag.CodeConfigQuotedKeyword, s.Expr.Range(), "Quoted keywords are deprecated",
			"In this context, keywords are expected literally rather than in quotes. Remove the quotes."))
		x = inner
	}
	word := hcl.ExprAsKeyword(x)
	if word != a && word != b {
		e.add(errorAt(code, s.Expr.Range(), summary, "The %q argument must be one of the words %s and %s.", s.Name, a, b))
		return ""
	}
	return word
}

// onlySelf checks that destroy provisioners only refer to the object itself. Everything else
// may be destroyed when they run.
func onlySelf(body hcl.Body) (ds diag.List) {
	b, ok := syntaxBody(body)
	if !ok {
		attrs, _ := body.JustAttributes()
		for _, a := range inOrder(attrs) {
			if a.Name != "when" && a.Name != "on_failure" {
				ds = append(ds, onlySelfRefs(a.Expr)...)
			}
		}
		return ds
	}
	for name, a := range b.Attributes {
		if name != "when" && name != "on_failure" {
			ds = append(ds, onlySelfRefs(a.Expr)...)
		}
	}
	for _, block := range b.Blocks {
		ds = append(ds, onlySelf(block.Body)...)
	}
	return ds
}

func onlySelfRefs(x hcl.Expression) (ds diag.List) {
	for _, t := range x.Variables() {
		ok := false
		switch t.RootName() {
		case "self", "path", "terraform", "tofu":
			ok = true
		case "count":
			ok = true
		case "each":
			ok = member(t) == "key"
		}
		if !ok {
			ds = append(ds, errorAt(diag.CodeConfigDestroyReference, t.SourceRange(), "Invalid reference from destroy provisioner",
				"What runs when an object is destroyed, and its connection, may refer only to the object itself, through self, count.index or each.key: other objects may be gone by then.")...)
		}
	}
	return ds
}
