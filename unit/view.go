package unit

import (
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Files as objects
//
// A file is read as an object by an import, by an exposed include, by
// read_terragrunt_config, and by render. The members are the same. They differ in unset
// members: an import has {} for collections and null for other values. The others omit
// blocks, as Terragrunt does.

type style uint8

const (
	importStyle style = iota
	includeStyle
	readStyle
	renderStyle
)

// configNode is a file's effective configuration as an object.
type configNode struct {
	e     *evaluation
	style style
	at    *source.Range
}

func (n *configNode) open(*evaluator) node                { return n }
func (n *configNode) where() (*evaluation, *source.Range) { return n.e, n.at }
func (n *configNode) listed()                             {}

// value computes the object in a cell of the file, because several readers may need it.
func (n *configNode) value(c *evaluator) cty.Value {
	if n.style == readStyle && n.e.role != leafRole {
		r := c.cellOf(n.e, syntax.WholePart)
		return r.v
	}
	return objectOf(c, n)
}

func (n *configNode) keys(c *evaluator) ([]string, bool) {
	if n.e.role == stackRole {
		return (&stackConfig{n.e}).keys(c)
	}
	fields := n.fields(c)
	var names []string
	add := func(name string, showing syntax.Showing) {
		set, imported := fields.member(name) != nil, n.style == importStyle
		switch showing {
		case syntax.ShownIfSet:
			imported = imported || set
		case syntax.ShownImports:
			imported = imported && set
		case syntax.NeverShown:
			return
		default:
			imported = true
		}
		if imported {
			names = append(names, name)
		}
	}
	spec := syntax.Language().Unit
	for i := range spec.Args {
		add(spec.Args[i].Name, spec.Args[i].IfSet)
	}
	for _, b := range spec.Blocks {
		add(b.Name, b.Showing)
	}
	if n.style == importStyle {
		names = append(names, "terragrunt_dir")
	}
	slices.Sort(names)
	return names, true
}

func (n *configNode) lacks(key string) string {
	if n.style != importStyle {
		return ""
	}
	if unreachable(key) {
		return "What a file imports itself cannot be reached through it. Let that file hand it on in its locals or inputs."
	}
	return fmt.Sprintf("An imported file has no part named %q.", key)
}

// unreachable reports whether a block takes in other files. Other files cannot read such
// blocks.
func unreachable(name string) bool {
	r, _ := rootNamed(name)
	return r.crosses != ""
}

func (n *configNode) child(c *evaluator, key string) node {
	if n.e.role == stackRole {
		return (&stackConfig{n.e}).child(c, key)
	}
	switch key {
	case "locals":
		if n.style != importStyle && !hasLocals(n.e) { // imports have null instead
			return valueNode{cty.NullVal(cty.DynamicPseudoType), n.e, nil}
		}
		return n.data(&locals{n.e.env()})
	case "terragrunt_dir":
		if n.style == importStyle {
			return valueNode{cty.StringVal(n.e.dir), n.e, n.at}
		}
		return nil
	}
	spec := syntax.Language().Unit
	sub := spec.Block(key)
	if sub != nil && sub.Showing == syntax.ShownImports {
		if n.style != importStyle {
			return nil
		}
		return c.root(n.e, key)
	}
	raw := n.fields(c).member(key)
	switch a := spec.Arg(key); {
	case a != nil && a.Keyed && raw != nil:
		return n.data(raw)
	case a != nil:
		return n.scalar(a, raw)
	case sub == nil || sub.Showing == syntax.NeverShown:
		return nil
	}
	return n.Block(sub, raw)
}

func hasLocals(e *evaluation) bool {
	b := e.file().Root.First("locals")
	return b != nil && len(b.Attrs) > 0
}

// fields returns the effective configuration, with relative paths resolved from the file's
// directory.
func (n *configNode) fields(c *evaluator) *group {
	switch {
	case n.e.of.mod != nil:
		return c.leafFields()
	case n.style == importStyle:
		return rebase(c.merged(n.e), n.e.dir)
	}
	return c.merged(n.e)
}

func (n *configNode) scalar(a *syntax.ArgSpec, raw node) node {
	switch imported := n.style == importStyle; {
	case raw != nil:
		return typed(raw, a)
	case imported && a.Keyed:
		return valueNode{cty.EmptyObjectVal, n.e, n.at}
	case !imported && a.IfSet == syntax.ShownIfSet:
		return nil
	case !imported && a.Ty == cty.String:
		return valueNode{cty.StringVal(""), n.e, n.at}
	}
	return valueNode{cty.NullVal(a.Ty), n.e, n.at}
}

func (n *configNode) Block(sub *syntax.BlockSpec, raw node) node {
	labeled := sub.Label == syntax.OneLabel
	switch {
	case raw == nil && labeled:
		return valueNode{cty.EmptyObjectVal, n.e, n.at}
	case raw == nil && (n.style == importStyle || sub.Showing == syntax.ShownAlways):
		return valueNode{cty.NullVal(cty.DynamicPseudoType), n.e, n.at}
	case raw == nil:
		return nil
	case !labeled:
		return n.shaped(raw, sub, "")
	}
	if n.style == renderStyle && sub.Leads && n.e.leaf != nil {
		raw = &others{raw, n.e}
	}
	return &mapped{raw, func(c *evaluator, label string, b node) node {
		if sub.Leads {
			if x := c.expanded(b, n.e.base(), sub.Name, label, func(i *instance, b node) node { return n.shaped(b, sub, label+i.address().String()) }); x != nil {
				return x
			}
		}
		return n.shaped(b, sub, label)
	}}
}

// others are the dependencies except those on the unit itself, which have no effect (rule
// 16 of the import specification).
type others struct {
	node
	leaf *evaluation
}

func (n *others) open(c *evaluator) node       { return &others{n.node.open(c), n.leaf} }
func (n *others) value(c *evaluator) cty.Value { return objectOf(c, n) }
func (n *others) keys(c *evaluator) ([]string, bool) {
	names, ok := n.node.keys(c)
	return slices.DeleteFunc(slices.Clone(names), func(label string) bool {
		one := c.sub(n.leaf, false)
		d, ok := one.dependency(n.leaf, label, n.node.child(c, label)).(*depNode)
		if !ok {
			return false
		}
		target, ok := d.target(one)
		return ok && string(target) == n.leaf.id
	}), ok
}

func (n *configNode) shaped(raw node, sub *syntax.BlockSpec, label string) node {
	return &shape{raw: raw, spec: sub, label: label, of: n}
}

// data returns values for another file: unchanged for imports, and otherwise as plain data,
// because Terragrunt loses the types.
func (n *configNode) data(in node) node {
	if n.style == importStyle || n.style == renderStyle {
		return in
	}
	return &plainNode{in}
}

// plainNode converts sets, lists and maps to the types that decoding JSON would give.
type plainNode struct{ n node }

func (n *plainNode) open(c *evaluator) node {
	o := n.n.open(c)
	if v, ok := o.(valueNode); ok {
		v.v = plain(v.v)
		return v
	}
	return &plainNode{o}
}

func (n *plainNode) value(c *evaluator) cty.Value        { return plain(n.n.value(c)) }
func (n *plainNode) keys(c *evaluator) ([]string, bool)  { return n.n.keys(c) }
func (n *plainNode) where() (*evaluation, *source.Range) { return n.n.where() }

func (n *plainNode) child(c *evaluator, key string) node {
	in := n.n.child(c, key)
	if in == nil {
		return nil
	}
	return &plainNode{in}
}

func plain(v cty.Value) cty.Value {
	if !holdsCollection(v.Type()) {
		return v
	}
	bare, marks := v.Unmark()
	if !syntax.Known(bare) {
		return v
	}
	ty := bare.Type()
	switch {
	case ty.IsObjectType() || ty.IsMapType():
		m := bare.AsValueMap()
		for k, in := range m {
			m[k] = plain(in)
		}
		return cty.ObjectVal(m).WithMarks(marks)
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		var out []cty.Value
		for _, in := range bare.AsValueSlice() {
			out = append(out, plain(in))
		}
		return cty.TupleVal(out).WithMarks(marks)
	}
	return v
}

func holdsCollection(ty cty.Type) bool {
	switch {
	case ty.IsCollectionType():
		return true
	case ty.IsTupleType():
		return slices.ContainsFunc(ty.TupleElementTypes(), holdsCollection)
	case ty.IsObjectType():
		for _, a := range ty.AttributeTypes() {
			if holdsCollection(a) {
				return true
			}
		}
	}
	return false
}
