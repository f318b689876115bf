package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// part is what one place gives to a block: the block of a base file, or one of
// an override file with the same header.
type part struct {
	body   hcl.Body
	layer  *source.Layer
	head   hcl.Range
	labels []string
}

func partOf(b *hcl.Block, layer *source.Layer) part {
	return part{body: b.Body, layer: layer, head: b.DefRange, labels: b.Labels}
}

func (p part) isOverride() bool { return p.layer != nil && p.layer.Kind == source.Override }

// content is one block after merging: its own arguments with what they
// replaced, its own nested blocks, and the rest.
type content struct {
	kind   *kind
	head   hcl.Range
	at     hcl.Range // where a missing argument is missed
	args   map[string]*Setting
	blocks map[string][][]part // by type; each block as the parts that it is merged from
	rest   hcl.Body            // nil unless the kind is open
}

// merge applies the rules of the kind to the parts of one block, base first.
// There is at least one part.
func (k *kind) merge(parts []part) (*content, diag.List) {
	c := &content{kind: k, head: parts[0].head, at: parts[0].body.MissingItemRange()}
	var ds diag.List
	var layers []bodyLayer
	for i, p := range parts {
		var got *hcl.BodyContent
		var remain hcl.Body
		var diags hcl.Diagnostics
		if k.open {
			got, remain, diags = p.body.PartialContent(&k.schema)
		} else {
			got, diags = p.body.Content(&k.schema)
		}
		ds = append(ds, diag.FromHCL(diags)...)
		ds = append(ds, c.addArgs(p, got.Attributes, parts[0].head)...)
		own, more := c.addBlocks(p, got.Blocks, parts[0].head)
		ds = append(ds, more...)
		if !k.open {
			continue
		}
		if len(parts) == 1 && own == nil {
			c.rest = remain
			break
		}
		if layers == nil {
			layers = make([]bodyLayer, 0, len(parts)-i+1)
		}
		layers = append(layers, bodyLayer{body: remain, kind: k, layer: p.layer})
		if own != nil {
			ds = append(ds, duplicateNames(layers[len(layers)-1], own)...)
			layers = append(layers, bodyLayer{body: own, layer: p.layer})
		}
	}
	if layers != nil {
		c.rest = newBody(layers)
	}
	return c, ds
}

// addArgs puts arguments on top of those below.
func (c *content) addArgs(p part, attrs hcl.Attributes, base hcl.Range) (ds diag.List) {
	for name, a := range attrs {
		switch r := c.kind.attrs[name]; {
		case r == reserved:
			ds = append(ds, errorAt("config/reserved-argument", a.NameRange, "Reserved argument name in "+c.kind.name+" block",
				"The name %q is kept for a later version of the language and cannot be an argument in a block of type %s. To set an argument of that name of the provider, put it into a block named _.", name, c.kind.name)...)
		case r == forbidden && p.isOverride():
			ds = append(ds, notInOverride(a.NameRange, base, "The "+name+" argument may not be overridden.")...)
		default:
			if c.args == nil {
				c.args = make(map[string]*Setting, len(attrs))
			}
			c.args[name] = &Setting{Attribute: a, Layer: p.layer, Under: c.args[name]}
		}
	}
	return ds
}

// addBlocks puts nested blocks in place of, or into, those below, and returns
// the body of the block named _.
func (c *content) addBlocks(p part, blocks hcl.Blocks, base hcl.Range) (own hcl.Body, ds diag.List) {
	given := map[string][]part{} // of this part
	var first hcl.Range
	for _, b := range blocks {
		r := c.kind.blocks[b.Type]
		switch {
		case r.rule == reserved:
			ds = append(ds, errorAt("config/reserved-block", b.TypeRange, "Reserved block type name in "+c.kind.name+" block",
				"Blocks of type %q cannot stand in a block of type %s: the name is kept for a later version of the language, or means something elsewhere only. To set a block of that name of the provider, put it into a block named _.", b.Type, c.kind.name)...)
		case r.rule == escape && own != nil:
			ds = append(ds, errorAt("config/duplicate-escape", b.DefRange, "Duplicate escaping block",
				"A block can hold only one block named _.").Note(&first, "the first one")...)
		case r.rule == escape:
			own, first = b.Body, b.DefRange
		case r.rule == forbidden && p.isOverride():
			ds = append(ds, notInOverride(b.DefRange, base, "A "+b.Type+" block may not stand in an override file: no rule says how it would merge.")...)
		case r.rule == merges && len(given[b.Type]) > 0:
			ds = append(ds, errorAt("config/duplicate-block", b.DefRange, "Duplicate "+b.Type+" block",
				"A block of type %s can hold only one %s block.", c.kind.name, b.Type).Note(&given[b.Type][0].head, "the first one")...)
		default:
			given[b.Type] = append(given[b.Type], partOf(b, p.layer))
		}
	}
	if len(given) > 0 && c.blocks == nil {
		c.blocks = make(map[string][][]part, len(given))
	}
	for typ, ps := range given {
		c.blocks[typ] = c.kind.blocks[typ].rule.apply(c.blocks[typ], ps)
	}
	return own, ds
}

// apply merges the blocks of one type that a part gives onto those below.
func (r rule) apply(below [][]part, ps []part) [][]part {
	switch r {
	case merges:
		if len(below) == 0 {
			return [][]part{ps}
		}
		return [][]part{append(below[0], ps...)}
	case byHeader:
		for _, p := range ps {
			i := slices.IndexFunc(below, func(b []part) bool { return slices.Equal(b[0].labels, p.labels) })
			if i < 0 || below[i][len(below[i])-1].layer == p.layer {
				below = append(below, []part{p})
			} else {
				below[i] = append(below[i], p)
			}
		}
		return below
	default:
		out := make([][]part, len(ps))
		for i := range ps {
			out[i] = ps[i : i+1 : i+1]
		}
		return out
	}
}

// nested merges the content of one nested block of a type, or returns nil.
func (c *content) nested(typ string, k *kind) (*content, diag.List) {
	if len(c.blocks[typ]) == 0 {
		return nil, nil
	}
	return k.merge(c.blocks[typ][0])
}

// duplicateNames finds arguments that stand both in a block and in its _ block.
func duplicateNames(outer bodyLayer, own hcl.Body) (ds diag.List) {
	attrs, _ := own.JustAttributes()
	for name, a := range attrs {
		if outer.ownAttr(name) {
			continue
		}
		c, _, _ := outer.body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
		if other := c.Attributes[name]; other != nil {
			ds = append(ds, errorAt("config/duplicate-argument", a.NameRange, "Duplicate argument",
				"The argument %q was already set at %s.", name, other.NameRange).Note(&other.Range, "set here")...)
		}
	}
	return ds
}

func notInOverride(at, base hcl.Range, detail string) diag.List {
	return errorAt("config/unsupported-override", at, "Unsupported override", "%s", detail+" Change the original block instead.").
		Note(&base, "the block that it overrides")
}

// notes tell what a setting replaced.
func (s *Setting) notes() []diag.Note {
	var out []diag.Note
	for u := s.Under; u != nil; u = u.Under {
		out = append(out, diag.Note{Text: "overrides the value set here", At: u.Range.Ptr()})
	}
	return out
}

// explain adds to messages about a setting what it replaced.
func (s *Setting) explain(ds diag.List) diag.List {
	if s.Under == nil {
		return ds
	}
	for _, m := range ds {
		m.Notes = append(m.Notes, s.notes()...)
	}
	return ds
}
