package view

import (
	"strconv"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// label writes a name padded to a width.
func (p *printer) label(name string, width int) {
	p.str(name)
	for n := width - utf8.RuneCountInString(name); n > 0; n-- {
		p.str(" ")
	}
	p.str(" = ")
}

// maxNames is the largest number of names in the cache.
const maxNames = 10_000

// bareName quotes a name that is not an identifier.
func (p *printer) bareName(name string) string {
	out, ok := p.bare[name]
	if !ok {
		if out = name; !hclsyntax.ValidIdentifier(name) {
			out = strconv.Quote(name)
		}
		if len(p.bare) < maxNames {
			p.bare[name] = out
		}
	}
	return out
}

// child writes a child, including its indentation.
func (p *printer) child(n *node, name string, width, indent int, f flags) {
	p.warning(n.warn, indent+1)
	p.cause(n, indent+1)
	p.indent(indent + 1)
	p.symbol(n.op, f)
	if name != "" {
		p.label(name, width)
	}
	p.node(n, indent+1, f)
}

func (p *printer) object(n *node, indent int, f flags) {
	if len(n.children) == 0 {
		p.str("{}")
		p.null(n, f)
		p.forces(n, f)
		return
	}
	p.str("{")
	p.forces(n, f)
	p.str("\n")
	names, width := names(n.children, p.bareName)
	sub := flags{all: f.all, plain: f.plain, noNull: !n.showNull}
	unchanged := 0
	for i, k := range n.children {
		with := sub
		switch {
		case n.kind == object && always(k.name): // shown with all of its parts, changed or not
			with.all = true
		case k.node.op == same && !f.all:
			unchanged++
			continue
		}
		p.child(k.node, names[i], width, indent, with)
		p.str("\n")
	}
	p.hidden(unchanged, "attribute", indent, f)
	p.closing("}", n, indent, f)
}

func (p *printer) closing(s string, n *node, indent int, f flags) {
	p.indent(indent)
	p.symbol(same, f)
	p.str(s)
	p.null(n, f)
}

// names returns the names as they are written, and the width of the widest.
func names(children []child, written func(string) string) ([]string, int) {
	out, width := make([]string, len(children)), 0
	for i, k := range children {
		out[i] = written(k.name)
		width = max(width, len(out[i]))
	}
	return out, width
}

func (p *printer) mapping(n *node, indent int, f flags) {
	if len(n.children) == 0 {
		p.str("{}")
		p.null(n, f)
		p.forces(n, f)
		return
	}
	p.str("{")
	p.forces(n, f)
	p.str("\n")
	names, width := names(n.children, strconv.Quote)
	end := "\n"
	if n.bare {
		width, end = 0, ",\n"
	}
	sub := flags{all: f.all, plain: f.plain, noNull: !n.showNull}
	unchanged := 0
	for i, k := range n.children {
		if k.node.op == same && !f.all {
			unchanged++
			continue
		}
		p.child(k.node, names[i], width, indent, sub)
		p.str(end)
	}
	p.hidden(unchanged, "element", indent, f)
	p.closing("}", n, indent, f)
}

// sequence writes a list or set. For a list, it includes the unchanged elements before and
// after a change.
func (p *printer) sequence(n *node, indent int, f flags) {
	if len(n.children) == 0 {
		p.str("[]")
		p.null(n, f)
		p.forces(n, f)
		return
	}
	p.str("[")
	p.forces(n, f)
	p.str("\n")
	sub := flags{all: f.all, plain: f.plain, noNull: true}
	element := func(k *node) {
		s := sub
		s.all = s.all || k.op == same
		p.child(k, "", 0, indent, s)
		p.str(",\n")
	}
	var last *node // the last unchanged element that was skipped
	unchanged, next := 0, false
	for _, k := range n.children {
		if k.node.op == same && !f.all && !next {
			last = k.node
			unchanged++
			continue
		}
		next = false
		if !n.bare {
			if last != nil {
				p.hidden(unchanged-1, "element", indent, sub)
				element(last)
			}
			last, unchanged = nil, 0
			next = k.node.op != same
		}
		element(k.node)
	}
	p.hidden(unchanged, "element", indent, sub)
	p.closing("]", n, indent, f)
}

func quoted(s string) string { return strconv.Quote(s) }
