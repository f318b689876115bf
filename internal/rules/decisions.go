package rules

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/zclconf/go-cty/cty"
)

// # Decisions
//
// Units that call the same module have many equal values. Whether a filter or a condition is true
// depends on nothing but the values to which it refers: functions are pure, and local values of a
// file and lists of the estate are the same for all subjects. So each expression is evaluated once
// for equal values. An attribute that does not exist, and an unknown value of a certain type, are
// compared like values. A value that is marked or large is not compared: its expression is evaluated
// again.
//
// Many rules refer to the same value. So the values of a reference are numbered, once for each
// subject, and the decisions of an expression are found by the numbers of its references.

// Limits of what is kept: the length of a key of a value, in bytes, the number of values of one
// reference, and the number of decisions of one expression. So a reference needs at most about 300 KB.
const (
	maxKey       = 256
	maxValues    = 1024
	maxDecisions = 1024
)

// A decision is the result of a filter or a condition. The zero value means that it was not evaluated.
type decision uint8

const (
	undecided decision = iota
	holds
	fails
	unknown
	failed // the expression has an error
)

// A reference is a reference in expressions that decide rules. It may be used concurrently.
type reference struct {
	lang.Ref
	text   string // such as attrs.tags.cost; see pathText
	ofUnit bool   // the reference is to the unit, so that its subjects have the same value

	mu      sync.Mutex
	numbers map[string]int32 // of the values, from 1, by their keys
	missed  int              // the number of lookups in a row of values without a number
}

// number returns the number of the value with a key, or -1 if it has none.
func (r *reference) number(key []byte) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.numbers[string(key)]; ok {
		r.missed = 0
		return n
	}
	if len(r.numbers) == maxValues {
		r.missed++
		return -1
	}
	if r.numbers == nil {
		r.numbers = map[string]int32{}
	}
	n := int32(len(r.numbers) + 1)
	r.numbers[string(key)] = n
	return n
}

// distinct reports whether nearly every subject seems to have another value, so that a number is not
// worth the key.
func (r *reference) distinct() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed > maxValues/8
}

// decisions are the results of one expression by the values to which it refers. They may be used
// concurrently.
type decisions struct {
	number int      // of the expression, from 0
	refs   []int    // numbers of the references that decide the expression, also through local values
	ofUnit bool     // all references are to the unit
	parts  []string // the paths of the subject's parts that decide the expression, such as .tags.cost

	mu   sync.Mutex
	one  []decision          // with one reference: by the number of its value
	many map[string]decision // with none or several references: by the numbers of their values
}

// get returns the decision for the values with the given numbers, or undecided.
func (d *decisions) get(key []byte, number int32) decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.refs) != 1 {
		return d.many[string(key)]
	}
	if int(number) < len(d.one) {
		return d.one[number]
	}
	return undecided
}

// put stores the decision for the values with the given numbers.
func (d *decisions) put(key []byte, number int32, result decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.refs) == 1 {
		for int(number) >= len(d.one) {
			d.one = append(d.one, undecided)
		}
		d.one[number] = result
		return
	}
	if d.many == nil {
		d.many = map[string]decision{}
	}
	if len(d.many) < maxDecisions {
		d.many[string(key)] = result
	}
}

// addDecisions adds the decisions of an expression of a rule, and the references that decide it.
func (c *Checker) addDecisions(r *Rule, x *lang.Expr, numbers map[referenceKey]int) {
	d := &decisions{number: len(c.known), ofUnit: true}
	c.known[x] = d
	for _, ref := range r.references(x) {
		root := ref.Traversal.RootName()
		path, whole := pathText(ref.Traversal[1:])
		key := referenceKey{text: root + path}
		if root == "input" {
			key.file = r.file
		}
		n, ok := numbers[key]
		if !ok || !whole {
			n = len(c.refs)
			c.refs = append(c.refs, &reference{Ref: ref, text: key.text, ofUnit: root == "unit"})
			if whole {
				numbers[key] = n
			}
		}
		if !slices.Contains(d.refs, n) {
			d.refs = append(d.refs, n)
		}
		d.ofUnit = d.ofUnit && root == "unit"
		if (root == "attrs" || root == "config") && len(ref.Traversal) > 1 && !slices.Contains(d.parts, path) {
			d.parts = append(d.parts, path)
		}
	}
}

// A referenceKey is equal for references to the same value.
type referenceKey struct {
	text string
	file *file // only for inputs, which each file has of its own
}

// appendRef appends the value of a reference to a key. It returns false if it cannot be compared.
func (s *scope) appendRef(key []byte, t *demand.Task, ref *reference) ([]byte, bool) {
	v, used, ds := s.Resolve(t, ref.Traversal, &ref.At)
	if len(ds) > 0 {
		return key, false
	}
	if rest := ref.Traversal[min(used, len(ref.Traversal)):]; len(rest) > 0 {
		next, ok := follow(v, rest)
		if !ok {
			return key, false
		}
		if v = next; v == cty.NilVal {
			return append(key, '!'), true
		}
	}
	return appendValue(key, v)
}

// follow returns the value at the end of a path of attributes, or cty.NilVal if a known object on the way
// lacks an attribute. It returns false for other values and paths, whose errors may have other reasons.
func follow(v cty.Value, path hcl.Traversal) (cty.Value, bool) {
	for _, step := range path {
		attr, ok := step.(hcl.TraverseAttr)
		if !ok {
			next, diags := hcl.Traversal{step}.TraverseRel(v)
			if len(diags) > 0 {
				return v, false
			}
			v = next
			continue
		}
		switch ty := v.Type(); {
		case v.IsMarked() || v.IsNull():
			return v, false
		case ty.IsObjectType():
			if !ty.HasAttribute(attr.Name) {
				return cty.NilVal, true
			}
			v = v.GetAttr(attr.Name)
		default:
			next, diags := hcl.Traversal{step}.TraverseRel(v)
			if len(diags) > 0 {
				return v, false
			}
			v = next
		}
	}
	return v, true
}

// appendValue appends a value with its type to a key, so that different values have different
// keys. It returns false if the value cannot be compared.
func appendValue(key []byte, v cty.Value) ([]byte, bool) {
	ty := v.Type()
	if v.IsMarked() || len(key) > maxKey {
		return key, false
	}
	if !v.IsKnown() {
		if !ty.IsPrimitiveType() && ty != cty.DynamicPseudoType || !v.RawEquals(cty.UnknownVal(ty)) { // something else is known about it
			return key, false
		}
		return append(append(append(key, '?'), ty.FriendlyName()...), 0), true
	}
	if v.IsNull() {
		if !ty.IsPrimitiveType() && ty != cty.DynamicPseudoType {
			return key, false
		}
		return append(append(append(key, '0'), ty.FriendlyName()...), 0), true
	}
	switch ty {
	case cty.String:
		s := v.AsString()
		if len(s) > maxKey {
			return key, false
		}
		return append(binary.AppendUvarint(append(key, '"'), uint64(len(s))), s...), true
	case cty.Number:
		return append(v.AsBigFloat().Append(append(key, '1'), 'p', 0), 0), true // without rounding
	case cty.Bool:
		if v.True() {
			return append(key, 't'), true
		}
		return append(key, 'f'), true
	}
	kind := byte(0)
	switch {
	case ty.IsObjectType():
		kind = '{'
	case ty.IsTupleType():
		kind = '('
	case ty.IsListType():
		kind = '['
	case ty.IsMapType():
		kind = 'm'
	case ty.IsSetType():
		kind = 's'
	default:
		return key, false
	}
	n := v.LengthInt()
	key = binary.AppendUvarint(append(key, kind), uint64(n))
	if n == 0 && ty.IsCollectionType() { // the elements of other collections show their type
		if !ty.ElementType().IsPrimitiveType() {
			return key, false
		}
		key = append(append(key, ty.FriendlyName()...), 0)
	}
	named := ty.IsObjectType() || ty.IsMapType()
	for it := v.ElementIterator(); it.Next(); {
		k, el := it.Element()
		ok := true
		if named {
			key, ok = appendValue(key, k)
		}
		if ok {
			key, ok = appendValue(key, el)
		}
		if !ok {
			return key, false
		}
	}
	return key, true
}
