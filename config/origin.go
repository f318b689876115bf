package config

import "github.com/hashicorp/hcl/v2"

// An Origin tells how a block came together: which blocks it was merged from,
// and where its own arguments and nested blocks stand, those that the language
// defines and not a provider or child module (for these see Setting and Replaced
// of Module). The zero Origin is that of a block that nobody wrote.
type Origin struct {
	c     *content
	parts []part
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
