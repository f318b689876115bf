package view

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
)

// setCauses sets the causes of a change in its tree of nodes. A list has the causes of all of its
// elements, since the tree does not contain their indexes.
func (n *node) setCauses(causes []plan.Cause) {
	if len(causes) == 0 {
		return
	}
	t := causeTexts{exact: make(map[string]string, len(causes)), below: map[string][]string{}}
	for _, c := range causes {
		text := causeText(c)
		t.exact[value.PathString(c.Path)] = text
		for i := 1; i < len(c.Path); i++ {
			above := value.PathString(c.Path[:i])
			if all := t.below[above]; len(all) <= mostCauses && !slices.Contains(all, text) {
				t.below[above] = append(all, text)
			}
		}
	}
	n.causesIn(t, "")
}

// NotFromConfiguration is the text of a cause that no file contains, such as the default of a
// provider.
const NotFromConfiguration = "not from the configuration"

// causeText returns the place of a cause as text.
func causeText(c plan.Cause) string {
	switch {
	case c.File != "":
		return Place(c.File, c.Line, c.Was)
	case c.Removed:
		return "not set in the configuration"
	}
	return NotFromConfiguration
}

// Place returns the place of a cause as text. was is the text at that place in another revision, or
// "".
func Place(file string, line int, was string) string {
	text := file + ":" + strconv.Itoa(line)
	if was != "" {
		text += " was " + was
	}
	return text
}

// forcing writes the causes that force the replacement of an object.
func (v *planView) forcing(causes []plan.Cause) {
	n := 0
	for _, c := range causes {
		if !c.Forces {
			continue
		}
		if n++; n > mostCauses {
			v.causeLine(0, "…")
			return
		}
		text := causeText(c)
		if len(c.Path) > 0 {
			text = "forced by " + strings.TrimPrefix(value.PathString(c.Path), ".") + ": " + text
		}
		v.causeLine(0, text)
	}
}

// causeLine writes a line with a cause. If causes are apart, it records the cause of the next line.
func (p *printer) causeLine(indent int, text string) {
	if p.lines != nil {
		_ = p.Flush() // a write to a buffer cannot fail
		p.causes = append(p.causes, LineCause{Line: p.lines.n, Indent: indent, Text: text})
		return
	}
	p.indent(indent)
	p.dressed(gray, "  # "+text)
	p.str("\n")
}

// A LineCause is the cause of a line in the text of a change.
type LineCause struct {
	Line   int    `json:"line"`             // from 0
	Indent int    `json:"indent,omitempty"` // the level of indentation of the line with the cause
	Text   string `json:"text"`
}

// ShowCauses returns pieces whose texts contain the lines that name causes, or that have no causes.
func ShowCauses(style Style, pieces []Piece, show bool) []Piece {
	out := slices.Clone(pieces)
	for i := range out {
		if show {
			out[i].Text = WithCauses(style, out[i].Text, out[i].Causes)
		}
		out[i].Causes = nil
	}
	return out
}

// WithCauses returns the text of a piece with a line above each line that has a cause.
func WithCauses(style Style, text string, causes []LineCause) string {
	if len(causes) == 0 {
		return text
	}
	var b bytes.Buffer
	p := newPrinter(&b, style)
	n := 0
	for line := range strings.Lines(text) {
		for ; len(causes) > 0 && causes[0].Line <= n; causes = causes[1:] {
			p.causeLine(causes[0].Indent, causes[0].Text)
		}
		p.str(line)
		n++
	}
	for _, c := range causes {
		p.causeLine(c.Indent, c.Text)
	}
	_ = p.Flush() // a write to a buffer cannot fail
	return b.String()
}

// lineCounter is a buffer that counts lines.
type lineCounter struct {
	text bytes.Buffer
	n    int
}

func (c *lineCounter) Write(text []byte) (int, error) {
	c.n += bytes.Count(text, []byte("\n"))
	return c.text.Write(text)
}

// causeTexts contains the texts of causes by path.
type causeTexts struct {
	exact map[string]string
	below map[string][]string // different causes of the parts of a value: mostCauses and one more
}

// mostCauses is the largest number of causes in one line.
const mostCauses = 3

func (n *node) causesIn(t causeTexts, path string) {
	set := func(k *node, path string) {
		switch {
		case k.op == same:
		case t.exact[path] != "":
			k.cause = t.exact[path]
		case k.kind != blockBody && k.kind != object && k.kind != mapping:
			k.cause = t.list(path)
		}
		k.causesIn(t, path)
	}
	for _, k := range n.children {
		switch n.kind {
		case blockBody, object:
			set(k.node, path+"."+k.name)
		case mapping:
			set(k.node, path+"["+value.Quote(k.name)+"]")
		}
	}
	for _, g := range n.groups {
		for i, k := range g.children {
			at := path + "." + g.name
			switch {
			case t.exact[at] != "":
			case k.name != "":
				at += "[" + value.Quote(k.name) + "]"
			case !g.single:
				at += "[" + strconv.Itoa(i) + "]"
			}
			set(k.node, at)
		}
	}
}

// list returns the causes of the parts of the value at a path, in one line.
func (t causeTexts) list(path string) string {
	all := t.below[path]
	if len(all) > mostCauses {
		return strings.Join(all[:mostCauses], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}

// cause writes the line above a part that names the place of its new value.
func (p *printer) cause(n *node, indent int) {
	if n.cause != "" {
		p.causeLine(indent, n.cause)
	}
}
