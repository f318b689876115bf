package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// A message refers to one position. The code that finds an error, for example with a provider's
// schema long after loading, does not know about overrides. The module therefore adds
// information about a position when a message is printed.

// remarks returns notes about the settings and blocks that were replaced at a position in the
// module's files. At the header of a block, the notes list the merged blocks.
func (m *Module) remarks(at source.Range) []source.Remark {
	if merged, body := m.mergedAt(at); merged != nil {
		if out, ok := m.remarksIn(m.Origin(source.Range{}, merged), body, at); ok {
			return out
		}
	}
	for _, l := range m.Locals {
		if out, ok := l.Value.remarks(at); ok {
			return out
		}
	}
	for _, rp := range m.RequiredProviders {
		if out, ok := rp.setting().remarks(at); ok {
			return out
		}
	}
	if m.Backend != nil && len(m.Backend.gone) > 0 && inBlock(m.Backend.Body, m.Backend.At, at) {
		return remarksOf(m.Backend.gone)
	}
	return nil
}

// mergedAt returns the merged block with the nearest header above a position, and the part of
// its body that the language does not define.
func (m *Module) mergedAt(at source.Range) (merged []Overridden, body hcl.Body) {
	nearest := -1
	look := func(places []Overridden, of hcl.Body) {
		for _, p := range places {
			if p.At.Filename == at.Filename && p.At.Start.Byte <= at.Start.Byte && p.At.Start.Byte > nearest {
				nearest, merged, body = p.At.Start.Byte, places, of
			}
		}
	}
	for _, r := range m.Resources {
		look(r.Merged, r.Body)
	}
	for _, c := range m.Calls {
		look(c.Merged, c.Body)
	}
	for _, p := range m.Providers {
		look(p.Merged, p.Body)
	}
	for _, v := range m.Variables {
		look(v.Merged, nil)
	}
	for _, o := range m.Outputs {
		look(o.Merged, nil)
	}
	return merged, body
}

// remarksIn is like remarks for a position in one merged block. body is the part that the
// language does not define. ok is false if the position is outside the block.
func (m *Module) remarksIn(o Origin, body hcl.Body, at source.Range) (out []source.Remark, ok bool) {
	if !slices.ContainsFunc(o.parts, func(p part) bool { return mayHold(p, at) }) {
		return nil, false
	}
	for _, s := range o.Settings() {
		if out, ok := s.remarks(at); ok {
			return out, true
		}
	}
	for _, b := range o.Blocks() {
		if !slices.ContainsFunc(b.parts, func(p part) bool { return inBlock(p.body, p.head, at) }) {
			continue
		}
		if len(b.parts) > 1 {
			return m.remarksIn(b.Origin, nil, at)
		}
		return remarksOf(b.Replaced), true
	}
	if b, ok := body.(*Body); ok {
		if name, layer := b.nameAt(at); name != "" {
			if gone := m.Replaced(b, name); len(gone) > 0 || layer == o.parts[0].layer {
				return remarksOf(gone), true
			}
			return []source.Remark{{Text: "merged into the block set here", At: o.parts[0].head}}, true
		}
	}
	for i, p := range o.parts {
		if !inBlock(p.body, p.head, at) {
			continue
		}
		for j, other := range o.parts {
			switch {
			case j < i:
				out = append(out, source.Remark{Text: "overrides this block", At: other.head})
			case j > i:
				out = append(out, source.Remark{Text: "overridden here", At: other.head})
			}
		}
		return out, true
	}
	return nil, false
}

// remarks returns the settings that a setting replaced, if the position is in the setting or in
// one of them.
func (s *Setting) remarks(at source.Range) ([]source.Remark, bool) {
	for ; s != nil; s = s.Replaced {
		if contains(s.Range, at) {
			return remarksOf(s.chain()), true
		}
	}
	return nil, false
}

func remarksOf(gone []Overridden) (out []source.Remark) {
	for _, g := range gone {
		text := "overrides the value set here"
		if g.Block {
			text = "overrides the block set here"
		}
		out = append(out, source.Remark{Text: text, At: g.At})
	}
	return out
}

// nameAt returns the name that is set at a position, and its layer; "" if there is none.
func (b *Body) nameAt(at source.Range) (string, *source.Layer) {
	for i := range b.layers {
		layer := b.layers[i].layer
		if n, ok := syntaxBody(b.layers[i].open); ok {
			for name, a := range n.Attributes {
				if contains(a.SrcRange, at) {
					return name, layer
				}
			}
			for _, block := range n.Blocks {
				if inBlock(block.Body, block.DefRange(), at) {
					return nativeName(block.Type, block.Labels), layer
				}
			}
			continue
		}
		attrs, _ := b.layers[i].open.JustAttributes()
		for name, a := range attrs {
			if contains(a.Range, at) {
				return name, layer
			}
		}
	}
	return "", nil
}

// inBlock reports whether a position is in a block. JSON only has the range of the header.
func inBlock(body hcl.Body, head, at source.Range) bool {
	if r, ok := nativeRange(body); ok {
		return contains(hcl.RangeBetween(head, r), at)
	}
	return contains(head, at) || body != nil && contains(body.MissingItemRange(), at)
}

// mayHold reports whether a position can be in a block.
func mayHold(p part, at source.Range) bool {
	if _, ok := nativeRange(p.body); ok {
		return inBlock(p.body, p.head, at)
	}
	return p.head.Filename == at.Filename
}

// contains reports whether a position begins within a range.
func contains(r, at source.Range) bool {
	return r.Filename == at.Filename && r.Start.Byte <= at.Start.Byte && (at.Start.Byte < r.End.Byte || at.Start.Byte == r.Start.Byte)
}
