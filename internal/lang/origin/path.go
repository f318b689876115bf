package origin

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A step is one step of a path: a name or an index. Inside values, a dot and brackets have the same
// meaning, because maps and objects accept both.
type step struct {
	key      cty.Value // a known string or number without marks
	brackets bool      // written in brackets, as instance keys are
}

func nameStep(s string) step   { return step{key: cty.StringVal(s)} }
func keyStep(v cty.Value) step { return step{key: v, brackets: true} }
func indexStep(i int) step     { return keyStep(cty.NumberIntVal(int64(i))) }

// name returns the step as a name. A number is converted to text.
func (s step) name() string {
	text, err := convert.Convert(s.key, cty.String)
	if err != nil {
		return ""
	}
	return text.AsString()
}

// index returns the step as an index of a list. It returns false if the step is not a whole number from
// 0 to 1<<31-1.
func (s step) index() (int, bool) {
	n, err := convert.Convert(s.key, cty.Number)
	if err != nil {
		return 0, false
	}
	i, accuracy := n.AsBigFloat().Int64()
	return int(i), accuracy == 0 && i >= 0 && i < 1<<31
}

// steps converts a traversal to steps. ok is false for splats and for unknown, null or sensitive keys.
func steps(t hcl.Traversal) (out []step, ok bool) {
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			out = append(out, nameStep(s.Name))
		case hcl.TraverseAttr:
			out = append(out, nameStep(s.Name))
		case hcl.TraverseIndex:
			if s.Key.IsNull() || !s.Key.IsKnown() || s.Key.IsMarked() {
				return out, false
			}
			out = append(out, keyStep(s.Key))
		default:
			return out, false
		}
	}
	return out, true
}

// join returns the concatenation of two paths. It does not modify them.
func join(a, b []step) []step {
	out := make([]step, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}

// pathText returns a path in the syntax of references: .a["b c"][0].
func pathText(path []step) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.key.Type() == cty.String && !s.brackets && value.IsIdentifier(s.key.AsString()):
			b.WriteString("." + s.key.AsString())
		case s.key.Type() == cty.String:
			b.WriteString("[" + addr.Quote(s.key.AsString()) + "]")
		default:
			b.WriteString("[" + s.name() + "]")
		}
	}
	return b.String()
}

// part returns the part of a value at a path, with the marks of the values around it. ok is false if the
// value does not contain that part. Unknown values contain every part.
func part(v cty.Value, path []step) (_ cty.Value, ok bool) {
	for _, s := range path {
		bare, marks := v.Unmark()
		next, ok := child(bare, s)
		if !ok {
			return cty.DynamicVal.WithMarks(marks), false
		}
		v = next.WithMarks(marks)
	}
	return v, true
}

func child(v cty.Value, s step) (cty.Value, bool) {
	ty := v.Type()
	switch {
	case !v.IsKnown():
		return cty.DynamicVal, true
	case v.IsNull():
		return cty.DynamicVal, false
	case ty.IsObjectType():
		if !ty.HasAttribute(s.name()) {
			return cty.DynamicVal, false
		}
		return v.GetAttr(s.name()), true
	case ty.IsMapType():
		key := cty.StringVal(s.name())
		if v.HasIndex(key).False() {
			return cty.DynamicVal, false
		}
		return v.Index(key), true
	case ty.IsListType() || ty.IsTupleType():
		i, isIndex := s.index()
		if !isIndex || i >= v.LengthInt() {
			return cty.DynamicVal, false
		}
		return v.Index(cty.NumberIntVal(int64(i))), true
	}
	return cty.DynamicVal, false
}

// secretAt reports whether the part of a value at a path must not be shown, because the part, something
// inside it, or a value around it is sensitive.
func secretAt(v cty.Value, path []step) bool {
	for _, s := range path {
		if value.Secret(v) {
			return true
		}
		bare, _ := v.Unmark()
		next, ok := child(bare, s)
		if !ok {
			return false
		}
		v = next
	}
	return value.ContainsSecret(v)
}
