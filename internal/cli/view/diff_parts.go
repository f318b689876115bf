package view

import (
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// op is what happens to one part of an object.
type op uint8

const (
	same op = iota
	create
	update
	remove
)

// kind tells how a node is written.
type kind uint8

const (
	leaf      kind = iota // before and after
	text                  // a string of several lines on one side at least
	encoded               // a string of JSON: inner
	object                // children with bare names
	mapping               // children with quoted names
	sequence              // children without names
	unknown               // inner is what was there before, if anything
	secret                // not shown
	converted             // inner became after, of another kind
	writeOnly
	blockBody // children are arguments, groups are blocks
)

// A node is one part of a change.
type node struct {
	op     op
	kind   kind
	forces bool // it forces replacement

	bare      bool // mapping, sequence: no surroundings of unchanged parts; mapping: names are not aligned
	showNull  bool // removed children end in "-> null"
	warn      warning
	secretSet bool // blockBody: nothing of it is shown
	empty     bool // blockBody: the block has no blocks inside by its schema

	before, after cty.Value
	inner, other  *node
	children      []child
	groups        []group
}

type child struct {
	name string
	node *node
}

// A group is the blocks of one type.
type group struct {
	name     string
	forces   bool
	children []child // name is the label of a block in a map
}

// warning is said above an attribute that becomes or ceases to be sensitive.
type warning uint8

const (
	noWarning warning = iota
	becomesSecret
	becomesSecretSame
	becomesPlain
	becomesPlainSame
	blockBecomesSecret
	blockBecomesPlain
)

// A pair is the two sides of a part, and what is said of it by path.
type pair struct {
	before, after   cty.Value      // cty.NilVal where absent
	beforeS, afterS *value.PathSet // sensitive parts
	replace         *value.PathSet
}

// present turns a null argument into an absent one.
func present(v cty.Value) cty.Value {
	if v == cty.NilVal || v.IsKnown() && v.IsNull() {
		return cty.NilVal
	}
	return v
}

// written turns an empty string into an absent argument, as is done for the
// arguments of resources and blocks: old providers know no null strings.
func written(v cty.Value) cty.Value {
	if s, is := stringOf(v); is && s == "" {
		return cty.NilVal
	}
	return v
}

func (p pair) op() op {
	switch {
	case p.before == cty.NilVal && p.after == cty.NilVal:
		return same
	case p.before == cty.NilVal:
		return create
	case p.after == cty.NilVal:
		return remove
	case equal(p.before, p.after):
		return same
	}
	return update
}

// start is the operation of a collection before its children are known.
func (p pair) start() op {
	switch {
	case p.before == cty.NilVal && p.after != cty.NilVal:
		return create
	case p.after == cty.NilVal && p.before != cty.NilVal:
		return remove
	}
	return same
}

func (n *node) add(name string, k *node) {
	n.children = append(n.children, child{name, k})
	n.fold(k.op)
}

// fold makes the operation of a collection an update if a child's is another.
func (n *node) fold(k op) {
	if k != same && k != n.op {
		n.op = update
	}
}

// attr gives the pair of an argument of an object.
func (p pair) attr(name string) pair {
	return pair{
		before: present(getAttr(p.before, name)), after: present(getAttr(p.after, name)),
		beforeS: p.beforeS.Attr(name), afterS: p.afterS.Attr(name), replace: p.replace.Attr(name),
	}
}

// getAttr is cty.NilVal too where the value has no such attribute, as when a
// plan was made with another version of the provider than the schema is of.
func getAttr(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	if !v.IsKnown() {
		return cty.UnknownVal(v.Type().AttributeType(name))
	}
	return v.GetAttr(name)
}
