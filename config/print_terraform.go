package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
)

// terraform builds the terraform and language blocks.
func (p *printer) terraform(tf *terraformParts) (out []*outBlock) {
	for _, l := range tf.language {
		c, _ := kinds().language.merge([]part{l})
		out = append(out, &outBlock{typ: "language", heads: []source.Range{l.head}, body: p.content(c, false)})
	}
	main := &outBlock{typ: "terraform", body: &outBody{}}
	var more []*outBlock
	for i, s := range tf.version {
		item := outItem{set: s, form: literal, sure: true}
		if i == 0 {
			main.body.items = append(main.body.items, item)
		} else {
			more = append(more, &outBlock{typ: "terraform", body: &outBody{items: []outItem{item}}})
		}
	}
	if len(p.m.RequiredProviders) > 0 {
		main.body.items = append(main.body.items, outItem{block: p.required()})
	}
	if b := tf.backend; b != nil {
		typ := "backend"
		if tf.isCloud {
			typ = "cloud"
		}
		out := p.plainBlock(typ, *b)
		out.gone = tf.gone
		main.body.items = append(main.body.items, outItem{block: out})
	}
	for i, meta := range tf.metas {
		if have := p.m.ProviderMetas[meta.labels[0]]; have != nil && have.At == meta.head {
			out := p.plainBlock("provider_meta", meta.part)
			out.gone = p.metasBefore(tf.metas[:i], p.m.Source(meta.labels[0]))
			main.body.items = append(main.body.items, outItem{block: out})
		}
	}
	if len(tf.encryption) > 0 {
		c, _ := kinds().encryption.merge(tf.encryption)
		main.body.items = append(main.body.items, outItem{block: &outBlock{typ: "encryption", heads: heads(tf.encryption), body: p.content(c, false)}})
	}
	if len(main.body.items) > 0 {
		out = append(out, main)
	}
	return append(out, more...)
}

// metasBefore returns the provider_meta blocks of a provider, last first.
func (p *printer) metasBefore(metas []meta, of addr.Provider) (out []Overridden) {
	for _, m := range slices.Backward(metas) {
		if p.m.Source(m.labels[0]) == of {
			out = append(out, Overridden{m.head, m.layer, true})
		}
	}
	return out
}

func heads(parts []part) []source.Range {
	out := make([]source.Range, len(parts))
	for i := range parts {
		out[i] = parts[i].head
	}
	return out
}

// required builds the required_providers block.
func (p *printer) required() *outBlock {
	b := &outBlock{typ: "required_providers", heads: heads(p.c.tf.required), body: &outBody{}}
	all := make([]*RequiredProvider, 0, len(p.m.RequiredProviders))
	for _, rp := range p.m.RequiredProviders {
		all = append(all, rp)
	}
	slices.SortFunc(all, func(a, b *RequiredProvider) int { return cmp.Compare(a.Name, b.Name) })
	for _, rp := range all {
		b.body.items = append(b.body.items, outItem{set: rp.setting(), sure: true, native: rp.native(p), json: rp.object(p)})
	}
	return b
}

// setting returns the entry as an argument, for its origin.
func (rp *RequiredProvider) setting() *Setting {
	if rp == nil {
		return nil
	}
	return &Setting{Attribute: &hcl.Attribute{Name: rp.Name, Range: rp.At, NameRange: rp.At}, Layer: rp.Layer, Replaced: rp.Replaced.setting()}
}

// object returns an entry of required_providers in JSON.
func (rp *RequiredProvider) object(p *printer) string {
	var parts []string
	if x := rp.SourceExpr; x != nil {
		parts = append(parts, `"source": `+p.jsonText(argument(x), template, true))
	} else if !rp.Source.IsZero() {
		parts = append(parts, `"source": `+jsonString(rp.Source.Display()))
	}
	if x := rp.VersionExpr; x != nil {
		parts = append(parts, `"version": `+p.jsonText(argument(x), template, true))
	} else if len(rp.Version) > 0 {
		parts = append(parts, `"version": `+jsonString(rp.Version[0].Text))
	}
	if len(rp.Aliases) > 0 {
		names := make([]string, len(rp.Aliases))
		for i, a := range rp.Aliases {
			names[i] = jsonString(a.String())
		}
		parts = append(parts, `"configuration_aliases": [`+strings.Join(names, ", ")+"]")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// argument returns an expression as an attribute, whose text is that of the expression.
func argument(x hcl.Expression) *hcl.Attribute {
	at := x.Range()
	start := at
	start.End = start.Start
	return &hcl.Attribute{Expr: x, Range: at, NameRange: start}
}

// native returns an entry of required_providers in native syntax.
func (rp *RequiredProvider) native(p *printer) string {
	var b strings.Builder
	b.WriteString("{\n")
	if x := rp.SourceExpr; x != nil {
		fmt.Fprintf(&b, "source = %s\n", p.nativeText(argument(x), template))
	} else if !rp.Source.IsZero() {
		fmt.Fprintf(&b, "source = %s\n", quotedTemplate(rp.Source.Display()))
	}
	if x := rp.VersionExpr; x != nil {
		fmt.Fprintf(&b, "version = %s\n", p.nativeText(argument(x), template))
	} else if len(rp.Version) > 0 {
		fmt.Fprintf(&b, "version = %s\n", quotedTemplate(rp.Version[0].Text))
	}
	if len(rp.Aliases) > 0 {
		names := make([]string, len(rp.Aliases))
		for i, a := range rp.Aliases {
			names[i] = a.String()
		}
		fmt.Fprintf(&b, "configuration_aliases = [%s]\n", strings.Join(names, ", "))
	}
	b.WriteString("}")
	return b.String()
}
