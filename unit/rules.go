package unit

import (
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # The rules of merging
//
// The table of blocks (syntax.BlockSpec) contains the merging rule of each block and
// argument. This file implements each rule as a join.

// A merge is one way of merging. lower and upper are the merged files. They are nil for
// imports, because several imports are merged before the file itself.
type merge struct {
	way          syntax.Way
	lower, upper *group
}

// top returns the join for an argument or block at the top.
func (m merge) top(name string) join {
	if per := m.member(name); per != nil {
		return mapsJoin(per)
	}
	if b := syntax.Language().Unit.Block(name); b != nil {
		return m.block(b)
	}
	return m.argument(syntax.Language().Unit.Arg(name))
}

// member returns the join for the members of an argument or block at the top: each input,
// each argument of a block, or the blocks of one label. It returns nil for a name that is
// joined as a whole.
func (m merge) member(name string) join {
	if a := syntax.Language().Unit.Arg(name); a != nil && a.Keyed {
		return m.argument(a)
	}
	if b := syntax.Language().Unit.Block(name); b != nil {
		return m.memberOf(b)
	}
	return nil
}

func (m merge) memberOf(b *syntax.BlockSpec) join {
	switch rule := b.Merge.By(m.way); {
	case rule == syntax.ByLabel:
		return replaceJoin
	case rule == syntax.Merges && b.Label == syntax.NoLabel:
		return m.body(b)
	case rule == syntax.Merges:
		return mapsJoin(m.body(b))
	}
	return nil
}

// block returns the join for the blocks of one type in two files.
func (m merge) block(b *syntax.BlockSpec) join {
	if per := m.memberOf(b); per != nil {
		return mapsJoin(per)
	}
	if rule := b.Merge.By(m.way); rule != syntax.Redefines {
		return m.rule(rule)
	}
	return m.redefined(b)
}

// body returns the join for the arguments and nested blocks of a block.
func (m merge) body(b *syntax.BlockSpec) join {
	return func(c *evaluator, key string, lower, upper node) node {
		var how join = replaceJoin
		if sub := b.Block(key); sub != nil {
			how = m.block(sub)
		} else if a := b.Arg(key); a != nil {
			how = m.argument(a)
		}
		return how(c, key, lower, upper)
	}
}

func (m merge) argument(a *syntax.ArgSpec) join {
	if a == nil {
		return replaceJoin
	}
	return m.rule(a.Merge.By(m.way))
}

// rule returns the join for one value.
func (m merge) rule(r syntax.Rule) join {
	switch r {
	case syntax.Fills:
		return setJoin
	case syntax.FillsNumber:
		return setNumber
	case syntax.ByKey:
		return mapsJoin(replaceJoin)
	case syntax.Deep:
		return deepJoin
	case syntax.DeepOrReplaces:
		return deepOrUpper
	case syntax.DeepObjects:
		return mappingsOrUpper
	case syntax.Appends:
		return listJoin(false, false)
	case syntax.AppendsNew:
		return listJoin(false, true)
	case syntax.Prepends:
		return listJoin(true, false)
	case syntax.PrependsNew:
		return listJoin(true, true)
	case syntax.PathsLeft:
		return m.pathsLeft()
	}
	return replaceJoin
}

// redefined returns the join that takes the upper block, and adds only those arguments of
// the lower one that have a merging rule of their own.
func (m merge) redefined(b *syntax.BlockSpec) join {
	return func(c *evaluator, key string, lower, upper node) node {
		lo, uo := lower.open(c), upper.open(c)
		g := newGroup(uo.where())
		names, ok := uo.keys(c)
		if !ok {
			return upper
		}
		for _, k := range names {
			g.put(k, uo.child(c, k))
		}
		for i := range b.Args {
			a := &b.Args[i]
			if a.Merge.By(m.way) == syntax.Replaces {
				continue
			}
			if in := lo.child(c, a.Name); in != nil {
				g.put(a.Name, joinOf(a.Name, in, g.member(a.Name), m.argument(a)))
			}
		}
		return g
	}
}

// pathsLeft returns the join for the paths of dependencies blocks. It omits paths of the
// lower block that belong to a dependency that the upper file redefines.
func (m merge) pathsLeft() join {
	if m.lower == nil || m.lower.member("dependency") == nil || m.upper.member("dependency") == nil {
		return listJoin(false, true)
	}
	lower, upper := m.lower.member("dependency"), m.upper.member("dependency")
	return func(c *evaluator, key string, low, up node) node {
		gone := map[string]bool{}
		labels, _ := upper.keys(c)
		for _, l := range labels {
			d := lower.child(c, l)
			if d == nil {
				continue
			}
			owner, _ := d.where()
			if x := c.expanded(d, owner, "dependency", l, func(_ *instance, b node) node { return b }); x != nil {
				for _, i := range x.instances(c) {
					gone[c.textOf(x.of(&i), "config_path")] = true
				}
				continue
			}
			gone[c.textOf(d, "config_path")] = true
		}
		rest := &converted{low, func(_ *evaluator, v cty.Value) cty.Value {
			bare, marks := v.Unmark()
			if !syntax.Known(bare) || !bare.CanIterateElements() {
				return v
			}
			var out []cty.Value
			for _, p := range bare.AsValueSlice() {
				if s, _ := p.Unmark(); !syntax.IsString(s) || !gone[s.AsString()] {
					out = append(out, p)
				}
			}
			return cty.TupleVal(out).WithMarks(marks)
		}}
		return listJoin(false, true)(c, key, rest, up)
	}
}

// deepOrUpper merges recursively by the rules of includes: if only one value is a mapping,
// it takes the upper value. Imports report an error in that case.
func deepOrUpper(c *evaluator, key string, lower, upper node) node {
	lo, uo := lower.open(c), upper.open(c)
	if c.stuck() {
		return valueNode{v: cty.DynamicVal}
	}
	_, lok := lo.keys(c)
	_, uok := uo.keys(c)
	switch {
	case lok && uok:
		return &overlay{lo, uo, deepOrUpper}
	case lok && !isNull(c, uo) && !unknownNode(c, uo), uok && !isNull(c, lo) && !unknownNode(c, lo):
		return upper
	}
	return deepJoin(c, key, lower, upper)
}

// mappingsOrUpper merges two mappings recursively. For other values it takes the upper one.
func mappingsOrUpper(c *evaluator, key string, lower, upper node) node {
	_, lok := lower.keys(c)
	_, uok := upper.keys(c)
	if lok && uok {
		return deepJoin(c, key, lower, upper)
	}
	return upper
}

// setNumber is setJoin for numbers: 0 counts as not set.
func setNumber(c *evaluator, key string, lower, upper node) node {
	v, _ := upper.value(c).Unmark()
	if !c.stuck() && syntax.Known(v) && v.Type() == cty.Number && v.AsBigFloat().Sign() == 0 {
		return lower
	}
	return setJoin(c, key, lower, upper)
}
