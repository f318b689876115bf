package inputs

import (
	"fmt"
	"github.com/terrace-iac/terrace/internal/base/value"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// An Origin is the origin of an input of a unit, or of one element of it.
type Origin struct {
	Name string // path after "inputs." in an expression
	Of   string // name of the whole input
	*explanation.Explanation
}

// mostParts is the maximum number of elements of an input whose origins are listed.
const mostParts = 24

// Origins returns the origins of the inputs of a unit, sorted by name. wanted is as in
// unit.Unit.Inputs. If several files contribute to an input, the origins of its elements follow.
// An input that cannot be computed has no steps.
func Origins(t *demand.Task, u *unit.Unit, wanted func(name string) bool) []Origin {
	settings, _ := u.Inputs(t, wanted) // their errors are reported where they are used
	var out []Origin
	for _, s := range settings {
		if s.Name == "" { // the whole inputs attribute is unknown
			continue
		}
		path := stepText(s.Name)
		whole, _ := u.Explain(t, "inputs"+path)
		out = append(out, Origin{Name: shortPath(path), Of: s.Name, Explanation: whole})
		out = append(out, originsOfParts(t, u, s.Name, whole)...)
	}
	return out
}

// originsOfParts returns the origins of the elements of an object or map, if they come from
// different files.
func originsOfParts(t *demand.Task, u *unit.Unit, name string, whole *explanation.Explanation) []Origin {
	if len(whole.Steps) == 0 {
		return nil
	}
	v, marks := whole.Value, whole.Sensitive
	if v == cty.NilVal {
		return nil
	}
	ty := v.Type()
	if marks || !v.IsKnown() || v.IsNull() || !ty.IsObjectType() && !ty.IsMapType() || v.LengthInt() > mostParts {
		return nil
	}
	file := ""
	if at := whole.Steps[len(whole.Steps)-1].At; at != nil {
		file = at.File
	}
	var out []Origin
	several := false
	for it := v.ElementIterator(); it.Next(); {
		key, _ := it.Element()
		path := stepText(name) + stepText(key.AsString())
		x, _ := u.Explain(t, "inputs"+path)
		for _, s := range x.Steps {
			several = several || s.At != nil && s.At.File != file
		}
		out = append(out, Origin{Name: shortPath(path), Of: name, Explanation: x})
	}
	if !several {
		return nil
	}
	return out
}

// stepText returns a step of a path in the form of an expression.
func stepText(name string) string {
	if value.IsIdentifier(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}

func shortPath(path string) string {
	if path[0] == '.' {
		return path[1:]
	}
	return path
}
