package rules

import (
	"encoding/binary"
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

// Limits of the decisions of one expression: the length of a key, in bytes, and the number of keys.
// So the decisions of an expression need at most 256 KB.
const (
	maxKey       = 256
	maxDecisions = 1024
)

// decisions are the results of one expression by the values to which it refers. They may be used
// concurrently.
type decisions struct {
	number int // of the expression, from 0
	refs   []lang.Ref
	ofUnit bool // all references are to the unit, so that its subjects have the same result

	mu    sync.Mutex
	known map[string]cty.Value // true, false or unknown
}

// A decision is the result of an expression for one key.
type decision struct {
	key    []byte
	result cty.Value // true, false or unknown; cty.NilVal means that there is none
}

func newDecisions(number int, r *Rule, x *lang.Expr) *decisions {
	d := &decisions{number: number, refs: r.references(x), ofUnit: true}
	for _, ref := range d.refs {
		d.ofUnit = d.ofUnit && ref.Traversal.RootName() == "unit"
	}
	return d
}

func (d *decisions) get(key []byte) (result cty.Value, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	result, ok = d.known[string(key)]
	return result, ok
}

func (d *decisions) put(key []byte, result cty.Value) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]cty.Value{}
	}
	if len(d.known) < maxDecisions {
		d.known[string(key)] = result
	}
}

// appendKey appends the values of references to a key. It returns false if one cannot be compared.
func (s *scope) appendKey(key []byte, t *demand.Task, refs []lang.Ref) ([]byte, bool) {
	for _, ref := range refs {
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
				key = append(key, '!')
				continue
			}
		}
		var ok bool
		if key, ok = appendValue(key, v); !ok {
			return key, false
		}
	}
	return key, true
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
