package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/source"
)

// replaced records, for the items of a body, the settings and blocks that they replaced. All blocks
// with one name replaced the same settings and blocks.
func (p *printer) replaced(b *Body, items []outItem) {
	for i := range items {
		it := &items[i]
		if it.block == nil {
			it.gone = p.m.Replaced(b, it.set.Name)
			continue
		}
		name := it.block.typ
		if name == "dynamic" && len(it.block.labels) == 1 {
			name = it.block.labels[0]
		}
		it.block.gone = p.m.Replaced(b, name)
	}
}

// chain returns the settings that a setting replaced, nearest first.
func (s *Setting) chain() (out []Overridden) {
	for u := s.Replaced; u != nil; u = u.Replaced {
		out = append(out, Overridden{At: u.Range, Layer: u.Layer})
	}
	return out
}

// under returns the settings that an argument replaced.
func (it outItem) under() []Overridden {
	if it.gone != nil {
		return it.gone
	}
	return it.set.chain()
}

// origin returns the text about where an argument was set and what it replaced.
func (p *printer) origin(it outItem) string {
	return placeText(it.set.Range, it.set.Layer) + overridesText(it.under())
}

// headOrigin returns the text about which blocks were merged and what they replaced.
func (p *printer) headOrigin(b *outBlock) string {
	out := placeText(b.heads[0], p.m.Set.LayerOf(b.heads[0]))
	for _, h := range b.heads[1:] {
		out += ", merged with " + placeText(h, p.m.Set.LayerOf(h))
	}
	return out + overridesText(b.gone)
}

func overridesText(gone []Overridden) string {
	var b strings.Builder
	for _, g := range gone {
		b.WriteString(", overrides " + placeText(g.At, g.Layer))
	}
	return b.String()
}

func placeText(at source.Range, l *source.Layer) string {
	s := fmt.Sprintf("%s:%d", at.Filename, at.Start.Line)
	if l != nil && l.Kind == source.Override {
		s += " (" + l.String() + ")"
	}
	return s
}

// A jsonPlace is a source position in JSON output. Print documents the form.
type jsonPlace struct {
	File      string      `json:"file"`
	Line      int         `json:"line"`
	Column    int         `json:"column"`
	Layer     string      `json:"layer"`
	Overrides []jsonPlace `json:"overrides,omitempty"` // for an argument
}

func placeJSON(at source.Range, l *source.Layer) jsonPlace {
	return jsonPlace{File: at.Filename, Line: at.Start.Line, Column: at.Start.Column, Layer: l.String()}
}

func placesJSON(gone []Overridden) (out []jsonPlace) {
	for _, g := range gone {
		out = append(out, placeJSON(g.At, g.Layer))
	}
	return out
}

// jsonOrigins returns the comment property of a block, or "".
func (p *printer) jsonOrigins(b *outBlock) string {
	var doc struct {
		Block     []jsonPlace          `json:"block,omitempty"`
		Overrides []jsonPlace          `json:"overrides,omitempty"`
		Arguments map[string]jsonPlace `json:"arguments,omitempty"`
	}
	for _, h := range b.heads {
		doc.Block = append(doc.Block, placeJSON(h, p.m.Set.LayerOf(h)))
	}
	doc.Overrides = placesJSON(b.gone)
	for _, it := range b.body.items {
		if it.block != nil {
			continue
		}
		if doc.Arguments == nil {
			doc.Arguments = map[string]jsonPlace{}
		}
		at := placeJSON(it.set.Range, it.set.Layer)
		at.Overrides = placesJSON(it.under())
		doc.Arguments[it.set.Name] = at
	}
	if doc.Block == nil && doc.Arguments == nil {
		return ""
	}
	out, err := json.Marshal(doc)
	if err != nil { // cannot happen: there are only strings and numbers
		return ""
	}
	return string(out)
}
