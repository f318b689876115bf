package view

import (
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

// causeMark is the first byte of a line with a cause, if causes are marked; see Pieces.
const causeMark = "\x1f"

// causeLine writes a line with a cause.
func (p *printer) causeLine(indent int, text string) {
	if p.marks {
		p.str(causeMark)
	}
	p.indent(indent)
	p.dressed(gray, "  # "+text)
	p.str("\n")
}

// ShowCauses returns pieces with the lines that name causes, or without them.
func ShowCauses(pieces []Piece, show bool) []Piece {
	out := slices.Clone(pieces)
	for i := range out {
		out[i].Text, out[i].Head = ShownCauses(out[i].Text, show), ShownCauses(out[i].Head, show)
	}
	return out
}

// ShownCauses returns the text of a piece with the lines that name causes, or without them.
func ShownCauses(text string, show bool) string {
	if show || !strings.Contains(text, causeMark) {
		return strings.ReplaceAll(text, causeMark, "")
	}
	text, _ = SplitCauses(text)
	return text
}

// A LineCause is the cause of a line in the text of a change.
type LineCause struct {
	Line int // from 0
	Text string
}

// SplitCauses returns the text of a piece without the lines that name causes, and the causes of the
// other lines.
func SplitCauses(text string) (string, []LineCause) {
	if !strings.Contains(text, causeMark) {
		return text, nil
	}
	var b strings.Builder
	var out []LineCause
	n := 0
	for line := range strings.Lines(text) {
		if cause, ok := strings.CutPrefix(line, causeMark); ok {
			out = append(out, LineCause{n, strings.TrimPrefix(strings.TrimSpace(cause), "# ")})
			continue
		}
		b.WriteString(line)
		n++
	}
	return b.String(), out
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
