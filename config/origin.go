package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// An Origin describes how a block was merged: the original blocks, and the positions of the
// arguments and nested blocks that the language itself defines. For the arguments of a provider or
// child module, see Module.Setting and Module.Replaced. The zero Origin describes a block that
// does not exist.
type Origin struct {
	c     *content
	parts []part
}

// Origin returns the origin of a block of this module. at and merged are the fields At and Merged of
// the block, such as Resource.At and Resource.Merged. Origin parses the files of the block again if the module's Set contains their text, so
// that a module need not store rarely used information.
func (m *Module) Origin(at source.Range, merged []Overridden) Origin {
	if merged == nil {
		merged = []Overridden{{At: at, Layer: m.Set.LayerOf(at)}}
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

// Defines reports whether the language itself defines an argument or nested block in blocks of
// a type, such as count in resource. Origin reports these.
func Defines(typ, name string) bool { return kindOf(typ).owns(name) }

// reparsed is a file of the module that was parsed again.
type reparsed struct {
	file *source.File
	*parsed
}

// blockAt parses the file at p again and returns the block whose header is at p.
func (m *Module) blockAt(p Overridden) (typedPart, bool) {
	f := m.Set.File(p.At.Filename)
	if f == nil {
		return typedPart{}, false
	}
	kept, _ := m.again.Load(f.Path)
	again, _ := kept.(*reparsed)
	if again == nil || again.file != f || again.layer != p.Layer {
		again = &reparsed{f, parseFile(FileRole{Path: f.Path}, p.Layer, parse(f.Path, func() ([]byte, error) { return f.Bytes, nil }), &source.Set{})}
		m.again.Store(f.Path, again)
	}
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

// mergedFrom returns the positions of a block's parts that a module stores.
func mergedFrom(parts []part) []Overridden {
	if len(parts) < 2 {
		return nil
	}
	return placesOf(parts)
}

// Parts returns the headers of the blocks that were merged, base first.
func (o Origin) Parts() []Overridden { return placesOf(o.parts) }

// Setting returns one of the block's own arguments, such as count, source or depends_on, with
// the settings that it replaced. It is nil if the argument is not set.
func (o Origin) Setting(name string) *Setting {
	if o.c == nil {
		return nil
	}
	return o.c.args[name]
}

// Settings returns all of the block's own arguments. The map must not be modified.
func (o Origin) Settings() map[string]*Setting {
	if o.c == nil {
		return nil
	}
	return o.c.args
}

// A NestedOrigin is the Origin of a nested block.
type NestedOrigin struct {
	Origin
	Type     string
	Labels   []string
	Replaced []Overridden // the blocks that all nested blocks of this type replaced, nearest first
}

// Blocks returns the block's own nested blocks, such as lifecycle and provisioner, in their
// order.
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

func placesOf(parts []part) []Overridden {
	out := make([]Overridden, len(parts))
	for i, p := range parts {
		out[i] = Overridden{p.head, p.layer, true}
	}
	return out
}

// innerKind returns the kind of a nested block that the language defines, or nil if the
// language defines none of its arguments.
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

// Body returns the arguments of a connection or provisioner block that depend on its type. It
// is nil for other blocks.
func (n NestedOrigin) Body() hcl.Body {
	switch n.Type {
	case "connection":
		return n.parts[0].body
	case "provisioner":
		return n.c.rest
	}
	return nil
}
