package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// content builds the body of a block that the language defines. sure means that other names are
// known to be arguments, like the inputs of a module.
func (p *printer) content(c *content, sure bool) *outBody {
	b := &outBody{}
	for _, s := range c.args {
		b.items = append(b.items, outItem{set: s, form: formOf(c.kind, s.Name), sure: true})
	}
	slices.SortFunc(b.items, func(x, y outItem) int {
		return cmp.Or(cmp.Compare(x.set.layerN(), y.set.layerN()), cmp.Compare(x.set.Range.Start.Byte, y.set.Range.Start.Byte))
	})
	var escaped []outItem
	if c.rest != nil {
		var plain []outItem
		plain, escaped = p.rest(c.rest, sure)
		for i := range plain {
			plain[i].clash = c.kind.owns(plain[i].name())
		}
		b.items = append(b.items, plain...)
	}
	for _, set := range c.nested {
		for _, parts := range set.list {
			block := p.nestedBlock(c.kind, set.typ, parts)
			block.gone = set.gone
			b.items = append(b.items, outItem{block: block})
		}
	}
	if len(escaped) > 0 {
		b.items = append(b.items, outItem{block: &outBlock{typ: "_", body: &outBody{items: escaped}}})
	}
	return b
}

// name returns the name of the argument or block.
func (it outItem) name() string {
	if it.block != nil {
		return it.block.typ
	}
	return it.set.Name
}

// owns reports whether a name is one of the kind's own arguments or blocks. Native syntax
// distinguishes a provider's argument named connection from the block; JSON does not.
func (k *kind) owns(name string) bool {
	_, arg := k.attrs[name]
	_, block := k.blocks[name]
	return arg || block
}

// nestedBlock builds a block nested in one that the language defines.
func (p *printer) nestedBlock(k *kind, typ string, parts []part) *outBlock {
	inner := k.innerKind(typ)
	if inner == nil {
		return p.plainBlock(typ, parts[0])
	}
	c, _ := inner.merge(parts)
	return &outBlock{typ: typ, labels: parts[0].labels, heads: heads(parts), body: p.content(c, false)}
}

// plainBlock builds a block whose content the language does not define.
func (p *printer) plainBlock(typ string, b part) *outBlock {
	items, _ := p.rest(b.body, typ == "provider_meta")
	return &outBlock{typ: typ, labels: b.labels, heads: []source.Range{b.head}, body: &outBody{items: items}}
}

// rest builds the content of a body without its schema. escaped is the content of _ blocks.
func (p *printer) rest(body hcl.Body, sure bool) (plain, escaped []outItem) {
	switch b := body.(type) {
	case *Body:
		for i := range b.layers {
			l := &b.layers[i]
			items, _ := p.rest(l.open, sure)
			if p.origins {
				p.replaced(b, items)
			}
			if l.escaped {
				escaped = append(escaped, items...)
			} else {
				plain = append(plain, items...)
			}
		}
		return plain, escaped
	case *hclnative.Body:
		return p.nativeBody(b.Syntax(), sure), nil
	case *hclsyntax.Body:
		return p.nativeBody(b, sure), nil
	case *dynamicBody:
		plain, _ = p.rest(b.Body, sure)
		for _, d := range b.kept {
			items, _ := p.rest(d.Body, false)
			plain = append(plain, outItem{raw: true, block: &outBlock{typ: "dynamic", labels: d.Labels, heads: []source.Range{d.DefRange}, body: &outBody{items: items}}})
		}
		return plain, nil
	}
	attrs, _ := body.JustAttributes()
	for _, a := range inOrder(attrs) {
		plain = append(plain, outItem{set: p.setting(a), sure: sure, raw: !sure})
	}
	return plain, nil
}

func (p *printer) setting(a *hcl.Attribute) *Setting {
	return &Setting{Attribute: a, Layer: p.m.Set.LayerOf(a.Range)}
}

// nativeBody builds arguments and blocks in source order.
func (p *printer) nativeBody(b *hclsyntax.Body, sure bool) []outItem {
	type placed struct {
		at   int
		item outItem
	}
	var all []placed
	for _, a := range b.Attributes {
		all = append(all, placed{a.SrcRange.Start.Byte, outItem{set: p.setting(a.AsHCLAttribute()), sure: sure}})
	}
	for _, block := range b.Blocks {
		out := &outBlock{typ: block.Type, labels: block.Labels, heads: []source.Range{block.DefRange()}, body: &outBody{items: p.nativeBody(block.Body, false)}}
		all = append(all, placed{block.TypeRange.Start.Byte, outItem{block: out}})
	}
	slices.SortFunc(all, func(x, y placed) int { return cmp.Compare(x.at, y.at) })
	items := make([]outItem, len(all))
	for i := range all {
		items[i] = all[i].item
	}
	return items
}

// ambiguous reports whether the body has a JSON property that could be an argument or blocks,
// and thus has no form in native syntax.
func (b *outBody) ambiguous(p *printer) bool {
	return slices.ContainsFunc(b.items, func(it outItem) bool {
		if it.block != nil {
			return it.raw || it.block.body.ambiguous(p)
		}
		return it.raw && !scalar(p.text(it.set.Attribute))
	})
}

// scalar reports whether a JSON value is a string, number or bool, or a list of these, which
// cannot be a block.
func scalar(text string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	one := func(v any) bool {
		switch v.(type) {
		case string, float64, bool:
			return true
		}
		return false
	}
	if list, ok := v.([]any); ok {
		return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return !one(v) })
	}
	return one(v)
}

// writeNative writes a block in native syntax.
func (p *printer) writeNative(w *strings.Builder, b *outBlock) {
	if p.origins && len(b.heads) > 0 {
		fmt.Fprintf(w, "# %s\n", p.headOrigin(b))
	}
	w.WriteString(b.typ)
	for _, l := range b.labels {
		w.WriteString(" " + quotedLabel(l))
	}
	w.WriteString(" {\n")
	for i, it := range b.body.items {
		if it.block != nil {
			if i > 0 {
				w.WriteByte('\n')
			}
			p.writeNative(w, it.block)
			continue
		}
		text := it.native
		if text == "" {
			text = p.nativeText(it.set.Attribute, it.form)
		}
		name := it.set.Name
		switch {
		case !p.origins:
			fmt.Fprintf(w, "%s = %s\n", name, text)
		case strings.Contains(text, "\n"):
			fmt.Fprintf(w, "# %s\n%s = %s\n", p.origin(it), name, text)
		default:
			fmt.Fprintf(w, "%s = %s # %s\n", name, text, p.origin(it))
		}
	}
	w.WriteString("}\n")
}

// quotedLabel returns a block's label in quotes. Labels are not templates.
func quotedLabel(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	writeEscaped(&b, strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s))
	b.WriteByte('"')
	return b.String()
}
