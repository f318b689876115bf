package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// An Overridden is the position of a block or argument, with the role of its file.
type Overridden struct {
	At    source.Range // range of the header of a block, or of an argument
	Layer *source.Layer
	Block bool // it is a block
}

// Replaced returns the arguments and blocks that a name in a body of this module replaced, nearest
// first, and blocks of one file in source order. For an argument that replaced arguments, Setting
// returns more details.
func (m *Module) Replaced(body hcl.Body, name string) []Overridden {
	b, ok := body.(*Body)
	if !ok {
		return nil
	}
	var out []Overridden
	won := false
	for i := len(b.layers) - 1; i >= 0; i-- {
		given := b.layers[i].given(name)
		if won {
			out = append(out, given...)
		}
		// A block and its _ block do not replace each other.
		if len(given) > 0 && !b.layers[i].escaped {
			won = true
		} else if len(given) > 0 && i > 0 {
			won = won || len(b.layers[i-1].given(name)) == 0
		}
	}
	return out
}

// BlockTypes returns the types of the nested blocks in a body of this module, sorted. Dynamic
// blocks count as the type that they create. Blocks in JSON are ignored, because without a
// schema they look like arguments.
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

// given returns the positions at which a layer sets a name.
func (l *bodyLayer) given(name string) []Overridden {
	var out []Overridden
	if b, ok := syntaxBody(l.body); ok {
		if a := b.Attributes[name]; a != nil {
			out = append(out, Overridden{At: a.SrcRange, Layer: l.layer})
		}
		for _, block := range b.Blocks {
			if nativeName(block.Type, block.Labels) == name {
				out = append(out, Overridden{block.DefRange(), l.layer, true})
			}
		}
		return out
	}
	attrs, _ := l.body.JustAttributes()
	if a := attrs[name]; a != nil {
		out = append(out, Overridden{At: a.Range, Layer: l.layer})
	}
	if attrs["dynamic"] != nil {
		for _, d := range jsonDynamics(l.body) {
			if slices.Contains(d.Labels, name) {
				out = append(out, Overridden{d.DefRange, l.layer, true})
			}
		}
	}
	return out
}
