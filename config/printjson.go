package config

import (
	"bytes"
	"encoding/json"
	"strings"
)

// jsonObject is an object with ordered properties. A property that is added several times
// becomes a list, like blocks of one type.
type jsonObject struct {
	names  []string
	values map[string][]string
	list   map[string]bool // properties that are always lists
}

func (o *jsonObject) add(name, value string, list bool) {
	if o.values == nil {
		o.values, o.list = map[string][]string{}, map[string]bool{}
	}
	if o.values[name] == nil {
		o.names = append(o.names, name)
	}
	o.values[name] = append(o.values[name], value)
	o.list[name] = o.list[name] || list
}

func (o *jsonObject) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(jsonString(name) + ":")
		vs := o.values[name]
		if len(vs) == 1 && !o.list[name] {
			b.WriteString(vs[0])
			continue
		}
		b.WriteByte('[')
		for j, v := range vs {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(elements(v))
		}
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.String()
}

// elements returns a value as elements of a list. A list is replaced by its elements.
func elements(v string) string {
	v = strings.TrimSpace(v)
	if strings.HasPrefix(v, "[") {
		return strings.TrimSuffix(strings.TrimPrefix(v, "["), "]")
	}
	return v
}

// writeJSON returns blocks as one document.
func (p *printer) writeJSON(blocks []*outBlock) string {
	var doc jsonObject
	for _, b := range blocks {
		doc.add(b.typ, p.jsonBlock(b), true)
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(doc.String()), "", "  ") != nil {
		return doc.String() + "\n"
	}
	out.WriteByte('\n')
	return out.String()
}

// jsonBlock returns a block within one object for each of its labels.
func (p *printer) jsonBlock(b *outBlock) string {
	body := p.jsonBody(b)
	for i := len(b.labels) - 1; i >= 0; i-- {
		body = "{" + jsonString(b.labels[i]) + ":" + body + "}"
	}
	return body
}

func (p *printer) jsonBody(b *outBlock) string {
	var o jsonObject
	if p.origins {
		if c := p.jsonOrigins(b); c != "" {
			o.add("//", c, false)
		}
	}
	for _, it := range b.body.unclash() {
		switch {
		case it.block != nil:
			o.add(it.block.typ, p.jsonBlock(it.block), true)
		case it.json != "":
			o.add(it.set.Name, it.json, false)
		case it.raw:
			o.add(it.set.Name, p.text(it.set.Attribute), false)
		default:
			o.add(it.set.Name, p.jsonText(it.set.Attribute, it.form, it.sure), false)
		}
	}
	return o.String()
}

// unclash moves items into the block named _ if JSON syntax would confuse their names with
// arguments or blocks of the kind.
func (b *outBody) unclash() []outItem {
	var plain, clash []outItem
	for _, it := range b.items {
		if it.clash {
			it.clash = false
			clash = append(clash, it)
		} else {
			plain = append(plain, it)
		}
	}
	if clash == nil {
		return b.items
	}
	for i, it := range plain {
		if it.block != nil && it.block.typ == "_" {
			plain[i].block = &outBlock{typ: "_", body: &outBody{items: append(clash, it.block.body.items...)}}
			return plain
		}
	}
	return append(plain, outItem{block: &outBlock{typ: "_", body: &outBody{items: clash}}})
}
