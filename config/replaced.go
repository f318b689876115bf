package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// A Place is where a block or argument stands, with the role of its file.
type Place struct {
	At    source.Range // the header of a block, or an argument
	Layer *source.Layer
	Block bool // whether it is a block
}

// Replaced lists what a name stood for in a body of this module before
// overrides gave it anew, the nearest first, blocks of one file in their order.
// For an argument that replaced arguments, Setting tells more.
func (m *Module) Replaced(body hcl.Body, name string) []Place {
	b, ok := body.(*Body)
	if !ok {
		return nil
	}
	var out []Place
	won := false
	for i := len(b.layers) - 1; i >= 0; i-- {
		given := b.layers[i].given(name)
		if won {
			out = append(out, given...)
		}
		// A block and its _ block do not replace one another.
		if len(given) > 0 && !b.layers[i].escaped {
			won = true
		} else if len(given) > 0 && i > 0 {
			won = won || len(b.layers[i-1].given(name)) == 0
		}
	}
	return out
}

// BlockTypes lists the types of the nested blocks of a body of this module,
// dynamic ones under the type that they make, sorted. Blocks in JSON look like
// arguments as long as there is no schema, and do not count.
func (m *Module) BlockTypes(body hcl.Body) []string {
	var out []string
	add := func(body hcl.Body) {
		if b, ok := syntaxBody(body); ok {
			for _, block := range b.Blocks {
				out = append(out, nativeName(block.Type, block.Labels))
			}
		}
	}
	if b, ok := body.(*Body); ok {
		for i := range b.layers {
			add(b.layers[i].open)
		}
	} else {
		add(body)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// given is where a layer gives a name.
func (l *bodyLayer) given(name string) []Place {
	var out []Place
	if b, ok := syntaxBody(l.body); ok {
		if a := b.Attributes[name]; a != nil {
			out = append(out, Place{At: a.SrcRange, Layer: l.layer})
		}
		for _, block := range b.Blocks {
			if nativeName(block.Type, block.Labels) == name {
				out = append(out, Place{block.DefRange(), l.layer, true})
			}
		}
		return out
	}
	attrs, _ := l.body.JustAttributes()
	if a := attrs[name]; a != nil {
		out = append(out, Place{At: a.Range, Layer: l.layer})
	}
	if attrs["dynamic"] != nil {
		for _, d := range jsonDynamics(l.body) {
			if slices.Contains(d.Labels, name) {
				out = append(out, Place{d.DefRange, l.layer, true})
			}
		}
	}
	return out
}
