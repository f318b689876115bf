package unit

import "github.com/terrace-iac/terrace/unit/syntax"

// merged returns a file's effective configuration: its own arguments and blocks, joined by
// name with those of the files that it merges. The joins are computed on demand.
func (c *evaluator) merged(e *evaluation) *group {
	r := c.cellOf(e, syntax.MergedPart)
	if r.g == nil {
		return newGroup(e, nil)
	}
	return r.g
}

func (c *evaluator) buildMerged(e *evaluation) *group {
	own := ownFields(e)
	h := c.imports(e)
	if c.stuck() {
		return own
	}
	g := c.mergeImports(e, h, own)
	for i := len(h.includes) - 1; i >= 0; i-- {
		if in := h.includes[i]; in.mode != noMerge {
			g = mergeIncluded(c.merged(in.e), g, in.mode.included())
		}
	}
	if h.auto != nil {
		g = mergeIncluded(g, ownFields(h.auto), syntax.Include)
	}
	return g
}

// ownFields returns the arguments and blocks that a file itself contains.
func ownFields(e *evaluation) *group {
	g := newGroup(e, nil)
	if e.file().Root == nil {
		return g
	}
	for _, a := range e.file().Root.Attrs {
		var n node = &exprNode{e: e, x: a.Expr, at: &a.At}
		if e.file().Root.Spec.Arg(a.Name) == nil {
			n = &assigned{n, e, &a.At}
		}
		g.put(a.Name, n)
	}
	for _, b := range e.file().Root.Blocks {
		name := b.Spec.Name
		if g.member(name) != nil || b.Spec.Apart {
			continue
		}
		g.put(name, (&blockNode{e, e.file().Root}).child(nil, name))
	}
	return g
}

// mergeImports joins the merging imports in the order in which they are written, and the
// file itself last (rules 9 and 10 of the import specification).
func (c *evaluator) mergeImports(e *evaluation, h *fileImports, own *group) *group {
	type layer struct {
		fields *group
		way    syntax.Way
	}
	var layers []layer
	for _, i := range h.imports {
		if i.mode == noMerge {
			continue
		}
		fields := c.merged(i.e)
		if c.stuck() {
			return own
		}
		c.checkEnvironmentImport(e, i, fields)
		layers = append(layers, layer{rebase(fields, i.e.file().Dir), i.mode.imported()})
	}
	if len(layers) == 0 {
		return own
	}
	g := newGroup(e, nil)
	for _, l := range layers {
		for _, name := range l.fields.names {
			if !stays(name) {
				g.put(name, joinOf(name, g.member(name), l.fields.member(name), merge{way: l.way}.top(name)))
			}
		}
	}
	for _, name := range own.names {
		var givers []giver
		for _, l := range layers {
			if n := l.fields.member(name); n != nil {
				givers = append(givers, giver{n, l.way})
			}
		}
		if len(givers) == 0 {
			g.put(name, own.member(name))
			continue
		}
		g.put(name, joinOf(name, g.member(name), own.member(name), lastJoin(name, givers)))
	}
	return g
}

// stays reports whether a block is ignored by files that merge its own file.
func stays(name string) bool {
	b := syntax.Language().Unit.Block(name)
	return b != nil && b.Stays
}

func (m mode) imported() syntax.Way {
	if m == deep {
		return syntax.DeepImport
	}
	return syntax.Import
}

func (m mode) included() syntax.Way {
	if m == deep {
		return syntax.DeepInclude
	}
	return syntax.Include
}

// A giver is a merging import that sets an argument or block at the top.
type giver struct {
	n   node
	way syntax.Way
}

// lastJoin returns the join of a file with its imports. For anything merged key by key,
// such as inputs and labeled blocks, the last import that sets the key determines the way
// of merging. For anything else it is the last import that sets it.
func lastJoin(name string, givers []giver) join {
	last := givers[len(givers)-1].way
	if (merge{way: syntax.Import}).member(name) == nil {
		return merge{way: last}.top(name)
	}
	return mapsJoin(func(c *evaluator, key string, lower, upper node) node {
		way := givers[0].way
		for _, g := range givers {
			if g.n.child(c, key) != nil {
				way = g.way
			}
		}
		return merge{way: way}.member(name)(c, key, lower, upper)
	})
}

// mergeIncluded merges an included file below another configuration, by the rules of
// include blocks (section 2.3 of the unit language's reference).
func mergeIncluded(lower, upper *group, way syntax.Way) *group {
	g := newGroup(upper.e, nil)
	for _, name := range lower.names {
		if !stays(name) {
			g.put(name, lower.member(name))
		}
	}
	m := merge{way, lower, upper}
	for _, name := range upper.names {
		g.put(name, joinOf(name, g.member(name), upper.member(name), m.top(name)))
	}
	return g
}
