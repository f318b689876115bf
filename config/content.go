package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// part is the content of a block from one place: the block in a base file, or one in an
// override file with the same header.
type part struct {
	body   hcl.Body
	layer  *source.Layer
	head   hcl.Range
	labels []string
}

// typedPart is a nested block, or a block at the top of a file.
type typedPart struct {
	typ string
	part
}

func (p part) isOverride() bool { return p.layer != nil && p.layer.Kind == source.Override }

// content is one block after merging: its own arguments with the settings that they replaced, its
// own nested blocks, and the rest.
type content struct {
	kind   *kind
	head   hcl.Range
	at     hcl.Range // range for errors about missing arguments
	args   map[string]*Setting
	nested []blockSet
	rest   hcl.Body // nil unless the kind is open
}

// blockSet contains the nested blocks of one type, each as the parts from which it is merged.
type blockSet struct {
	typ  string
	list [][]part
	gone []Overridden // blocks that they replaced, nearest first
}

// blocks returns the nested blocks of a type.
func (c *content) blocks(typ string) [][]part {
	for i := range c.nested {
		if c.nested[i].typ == typ {
			return c.nested[i].list
		}
	}
	return nil
}

// merge merges the parts of one block according to the rules of the kind, base first. There
// must be at least one part.
func (k *kind) merge(parts []part) (*content, diag.List) {
	c := &content{kind: k, head: parts[0].head, at: parts[0].body.MissingItemRange()}
	var ds diag.List
	var layers []bodyLayer
	for i, p := range parts {
		cut, diags := k.split(p)
		ds = append(ds, diag.FromHCL(diags)...)
		for _, s := range cut.args {
			ds = append(ds, c.addArg(p, s, parts[0].head)...)
		}
		own, more := c.addBlocks(p, cut.blocks, parts[0].head)
		ds = append(ds, more...)
		if !k.open {
			continue
		}
		if len(parts) == 1 && own == nil {
			c.rest = cut.rest
			break
		}
		if layers == nil {
			layers = make([]bodyLayer, 0, len(parts)-i+1)
		}
		layers = append(layers, bodyLayer{body: cut.rest, layer: p.layer})
		if own != nil {
			layers = append(layers, bodyLayer{body: own, layer: p.layer, escaped: true})
		}
	}
	if layers != nil {
		c.rest = newBody(layers)
	}
	return c, ds
}

// addArg adds an argument, which replaces or extends the one of lower layers.
func (c *content) addArg(p part, s *Setting, base hcl.Range) diag.List {
	switch r := c.kind.attrs[s.Name]; {
	case r == reserved:
		return errorAt(diag.CodeConfigReservedArgument, s.NameRange, "Reserved argument name in "+c.kind.name+" block",
			"The name %q is kept for a later version of the language and cannot be an argument in a block of type %s. To set an argument of that name of the provider, put it into a block named _.", s.Name, c.kind.name)
	case r == forbidden && p.isOverride():
		return notInOverride(s.NameRange, base, "The "+s.Name+" argument may not be overridden.")
	}
	if c.args == nil {
		c.args = make(map[string]*Setting)
	}
	s.Replaced = c.args[s.Name]
	c.args[s.Name] = s
	return nil
}

// addBlocks adds nested blocks, which replace or extend those of lower layers. It returns the
// body of the block named _.
func (c *content) addBlocks(p part, blocks []typedPart, base hcl.Range) (own hcl.Body, ds diag.List) {
	var given []blockSet // from this part
	var first hcl.Range
	for _, b := range blocks {
		r := c.kind.blocks[b.typ].rule
		i := slices.IndexFunc(given, func(s blockSet) bool { return s.typ == b.typ })
		switch {
		case r == reserved:
			ds = append(ds, errorAt(diag.CodeConfigReservedBlock, b.head, "Reserved block type name in "+c.kind.name+" block",
				"Blocks of type %q cannot be in a block of type %s: the name is kept for a later version of the language, or has a meaning elsewhere only. To set a block of that name of the provider, put it into a block named _.", b.typ, c.kind.name)...)
		case r == escape && own != nil:
			ds = append(ds, errorAt(diag.CodeConfigDuplicateEscape, b.head, "Duplicate escaping block",
				"A block can hold only one block named _.").Note(&first, "the first one")...)
		case r == escape:
			own, first = b.body, b.head
		case r == forbidden && p.isOverride():
			ds = append(ds, notInOverride(b.head, base, "A "+b.typ+" block is not allowed in an override file: no rule says how it would merge.")...)
		case r == merges && i >= 0:
			ds = append(ds, errorAt(diag.CodeConfigDuplicateBlock, b.head, "Duplicate "+b.typ+" block",
				"A block of type %s can hold only one %s block.", c.kind.name, b.typ).Note(&given[i].list[0][0].head, "the first one")...)
		case i >= 0:
			given[i].list = append(given[i].list, []part{b.part})
		default:
			given = append(given, blockSet{typ: b.typ, list: [][]part{{b.part}}})
		}
	}
	for _, set := range given {
		c.put(set)
	}
	return own, ds
}

// put merges the blocks of one type in a part with those of lower layers.
func (c *content) put(set blockSet) {
	i := slices.IndexFunc(c.nested, func(s blockSet) bool { return s.typ == set.typ })
	if i < 0 {
		c.nested = append(c.nested, set)
		return
	}
	below := &c.nested[i]
	switch c.kind.blocks[set.typ].rule {
	case merges:
		below.list[0] = append(below.list[0], set.list[0]...)
	case byHeader:
		n := len(below.list)
		for _, ps := range set.list {
			i := slices.IndexFunc(below.list[:n], func(b []part) bool { return slices.Equal(b[0].labels, ps[0].labels) })
			if i < 0 {
				below.list = append(below.list, ps)
			} else {
				below.list[i] = append(below.list[i], ps...)
			}
		}
	default:
		below.gone = append(replacedParts(below.list), below.gone...)
		below.list = set.list
	}
}

// replacedParts returns the positions of blocks that are replaced.
func replacedParts(blocks [][]part) []Overridden {
	var out []Overridden
	for _, parts := range blocks {
		out = append(out, placesOf(parts)...)
	}
	return out
}

// inner merges the content of the only nested block of a type. It returns nil if there is none.
func (c *content) inner(typ string, k *kind) (*content, diag.List) {
	list := c.blocks(typ)
	if len(list) == 0 {
		return nil, nil
	}
	return k.merge(list[0])
}

func notInOverride(at, base hcl.Range, detail string) diag.List {
	return errorAt(diag.CodeConfigUnsupportedOverride, at, "Unsupported override", "%s", detail+" Change the original block instead.").
		Note(&base, "the block that it overrides")
}

// notes returns notes for messages about a setting, which list the settings that it replaced.
func (s *Setting) notes() []diag.Note {
	var out []diag.Note
	for u := s.Replaced; u != nil; u = u.Replaced {
		out = append(out, diag.Note{Text: "overrides the value set here", At: u.Range.Ptr()})
	}
	return out
}

// explain adds to messages about a setting the settings that it replaced.
func (s *Setting) explain(ds diag.List) diag.List {
	if s.Replaced == nil {
		return ds
	}
	for _, m := range ds {
		m.Notes = append(m.Notes, s.notes()...)
	}
	return ds
}
