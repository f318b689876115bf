package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// An Origin tells how a block came together: which blocks it was merged from,
// and where its own arguments and nested blocks stand, those that the language
// defines and not a provider or child module (for these see Setting and Replaced
// of Module). The zero Origin is that of a block that nobody wrote.
type Origin struct {
	c     *content
	parts []part
}

// Origin tells how a block of this module came together, by what the module has
// of it as At and Merged. It reads the files of the block again, as far as the
// module's Set has their text, so that no module need keep what is rarely asked.
func (m *Module) Origin(at source.Range, merged []Place) Origin {
	if merged == nil {
		merged = []Place{{At: at, Layer: m.Set.LayerOf(at)}}
	}
	var o Origin
	kind := ""
	for _, p := range merged {
		if b, ok := m.blockAt(p); ok {
			kind, o.parts = b.typ, append(o.parts, b.part)
		}
	}
	if len(o.parts) > 0 {
		o.c, _ = kindOf(kind).merge(o.parts)
	}
	return o
}

// Defines reports whether the language itself defines an argument or nested block
// of blocks of a type, such as count of resource: whether Origin reports it.
func Defines(typ, name string) bool { return kindOf(typ).owns(name) }

// blockAt reads the block again whose header stands at a place.
func (m *Module) blockAt(p Place) (typedPart, bool) {
	f := m.Set.File(p.At.Filename)
	if f == nil {
		return typedPart{}, false
	}
	again := parseFile(FileRole{Path: f.Path}, p.Layer, parse(f.Path, func() ([]byte, error) { return f.Bytes, nil }), &source.Set{})
	for _, b := range again.blocks {
		if b.head == p.At {
			return b, true
		}
		if b.typ != "check" {
			continue
		}
		c, _ := kinds().check.merge([]part{b.part})
		for _, data := range c.blocks("data") {
			if data[0].head == p.At {
				return typedPart{"data", data[0]}, true
			}
		}
	}
	return typedPart{}, false
}

// mergedFrom is what a module keeps of the parts of a block.
func mergedFrom(parts []part) []Place {
	if len(parts) < 2 {
		return nil
	}
	return placesOf(parts)
}

// Parts lists the headers of the blocks that it was merged from, base first.
func (o Origin) Parts() []Place { return placesOf(o.parts) }

// Setting returns one of the block's own arguments, such as count, source or
// depends_on, with what it replaced; nil if it is not set.
func (o Origin) Setting(name string) *Setting {
	if o.c == nil {
		return nil
	}
	return o.c.args[name]
}

// Settings returns all of the block's own arguments. The map must not be changed.
func (o Origin) Settings() map[string]*Setting {
	if o.c == nil {
		return nil
	}
	return o.c.args
}

// A NestedOrigin is an Origin of a nested block.
type NestedOrigin struct {
	Origin
	Type     string
	Labels   []string
	Replaced []Place // the blocks that it and the others of its type took the place of, the nearest first
}

// Blocks lists the block's own nested blocks, such as lifecycle and provisioner,
// in their order.
func (o Origin) Blocks() (out []NestedOrigin) {
	if o.c == nil {
		return nil
	}
	for _, set := range o.c.nested {
		inner := o.c.kind.innerKind(set.typ)
		for _, parts := range set.list {
			n := NestedOrigin{Origin: Origin{parts: parts}, Type: set.typ, Labels: parts[0].labels, Replaced: set.gone}
			if inner != nil {
				n.c, _ = inner.merge(parts)
			}
			out = append(out, n)
		}
	}
	return out
}

func placesOf(parts []part) []Place {
	out := make([]Place, len(parts))
	for i, p := range parts {
		out[i] = Place{p.head, p.layer, true}
	}
	return out
}

// innerKind is the kind of a nested block of our own, or nil if it has no
// arguments that the language defines.
func (k *kind) innerKind(typ string) *kind {
	switch inner := k.blocks[typ].inner; {
	case inner != nil:
		return inner
	case typ == "provisioner":
		return kinds().provisioner
	case typ == "precondition" || typ == "postcondition" || typ == "validation" || typ == "assert":
		return kinds().rule
	case typ == "compatible_with":
		return kinds().compatible
	}
	return nil
}

// Body returns the arguments of a connection or provisioner block that belong to
// it and not to every block of its type; nil for other blocks.
func (n NestedOrigin) Body() hcl.Body {
	switch n.Type {
	case "connection":
		return n.parts[0].body
	case "provisioner":
		return n.c.rest
	}
	return nil
}
