package view

import (
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// op is the change of one part of an object.
type op uint8

const (
	same op = iota
	create
	update
	remove
)

// kind determines how a node is written.
type kind uint8

const (
	leaf      kind = iota // the values before and after
	text                  // a string with several lines before or after
	encoded               // a string that contains JSON; inner is its content
	object                // children with plain names
	mapping               // children with quoted names
	sequence              // children without names
	unknown               // known after apply; inner is the value before, if any
	secret                // not shown
	converted             // inner becomes other, which has another shape
	writeOnly
	blockBody // children are arguments, groups are blocks
)

// A node is one part of a change.
type node struct {
	op     op
	kind   kind
	forces bool // the part forces replacement

	bare      bool // sequence: without unchanged neighbors; mapping: names are not aligned
	showNull  bool // removed children end in "-> null"
	warn      warning
	secretSet bool   // blockBody: the content is not shown
	empty     bool   // blockBody: the schema has no nested blocks
	cause     string // the place of the new value, such as "main.tf:7"; "" if it is not shown

	before, after cty.Value
	inner, other  *node
	children      []child
	groups        []group
}

type child struct {
	name string
	node *node
}

// A group contains the blocks of one type.
type group struct {
	name     string
	forces   bool
	single   bool    // there is at most one block, which has no index
	children []child // name is the label of the block if blocks are a map
}

// warning is the warning above an attribute or block that becomes or ceases to be sensitive.
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

// A pair contains the values of a part before and after a change.
type pair struct {
	before, after   cty.Value      // cty.NilVal if absent
	beforeS, afterS *value.PathSet // the sensitive paths of each value
	replace         *value.PathSet
}

// present converts a null argument to an absent one.
func present(v cty.Value) cty.Value {
	if v == cty.NilVal || v.IsKnown() && v.IsNull() {
		return cty.NilVal
	}
	return v
}

// written converts an empty string to an absent argument, for arguments of resources and
// blocks. Old providers cannot return a null string.
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

// start returns the operation of a collection before its children are compared.
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

// fold sets the operation of a collection to update if a child has another operation.
func (n *node) fold(k op) {
	if k != same && k != n.op {
		n.op = update
	}
}

// attr returns the pair of an argument of an object.
func (p pair) attr(name string) pair {
	return pair{
		before: present(getAttr(p.before, name)), after: present(getAttr(p.after, name)),
		beforeS: p.beforeS.Attr(name), afterS: p.afterS.Attr(name), replace: p.replace.Attr(name),
	}
}

// getAttr returns cty.NilVal if the value has no such attribute. This happens if the plan was
// made with another version of the provider.
func getAttr(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	if !v.IsKnown() {
		return cty.UnknownVal(v.Type().AttributeType(name))
	}
	return v.GetAttr(name)
}
