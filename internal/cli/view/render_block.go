package view

// always reports whether an argument is shown even if it did not change.
func always(name string) bool { return name == "id" || name == "name" || name == "tags" }

// block writes the body of a block or a resource, beginning with its brace.
func (p *printer) block(n *node, indent int, f flags) {
	if n.secretSet {
		p.secretBlock(n, indent, f)
		return
	}
	if len(n.children) == 0 && n.empty {
		p.str("{}")
		p.forces(n, f)
		return
	}
	p.str("{")
	p.forces(n, f)
	p.str("\n")
	names, width := names(n.children, p.bareName)
	sub := flags{all: f.all, plain: f.plain}
	unchanged := 0
	for i, k := range n.children {
		s := sub
		if k.node.op == same && !f.all {
			if !always(k.name) {
				unchanged++
				continue
			}
			s.all = true
		}
		p.child(k.node, names[i], width, indent, s)
		p.str("\n")
	}
	p.hidden(unchanged, "attribute", indent, f)
	unchanged = 0
	for _, g := range n.groups {
		unchanged += p.group(g, len(n.children) > 0, indent, sub)
	}
	if unchanged > 0 {
		p.str("\n")
		p.hidden(unchanged, "block", indent, f)
	}
	p.indent(indent)
	p.symbol(same, f)
	p.str("}")
}

// group writes the changed blocks of one type and returns the number of the others.
func (p *printer) group(g group, space bool, indent int, f flags) (unchanged int) {
	for _, k := range g.children {
		if k.node.op == same && !f.all {
			unchanged++
			continue
		}
		if space {
			p.str("\n")
			space = false
		}
		p.warning(k.node.warn, indent+1)
		p.cause(k.node, indent+1)
		p.indent(indent + 1)
		p.symbol(k.node.op, f)
		p.str(p.bareName(g.name))
		if k.name != "" {
			p.str(" ", quoted(k.name))
		}
		p.str(" ")
		s := f
		s.forces = g.forces
		p.node(k.node, indent+1, s)
		p.str("\n")
	}
	return unchanged
}

func (p *printer) secretBlock(n *node, indent int, f flags) {
	p.str("{")
	p.forces(n, f)
	p.str("\n")
	for _, s := range [...]string{"  # At least one attribute in this block is (or was) sensitive,\n", "  # so its contents will not be displayed.\n"} {
		p.indent(indent)
		p.symbol(same, f)
		p.str(s)
	}
	p.indent(indent)
	p.symbol(same, f)
	p.str("}")
}
