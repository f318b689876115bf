package diag

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Explain returns lines with the values of the references in an expression that was evaluated
// in a context. It omits marked values. planning means that an unknown value becomes known
// during apply; before a plan, for example in validate, all values of variables are unknown.
func Explain(x hcl.Expression, ctx *hcl.EvalContext, planning bool) []string {
	return explainValues(&hcl.Diagnostic{Expression: x, EvalContext: ctx}, planning)
}

// explainValues returns lines with the values of the references in a failed expression. It
// omits marked values.
func explainValues(d *hcl.Diagnostic, planning bool) []string {
	if d.Expression == nil || d.EvalContext == nil {
		return nil
	}
	var lines []string
	for _, ref := range d.Expression.Variables() {
		v, diags := ref.TraverseAbs(d.EvalContext)
		for diags.HasErrors() && len(ref) > 2 { // the value of a shorter reference shows the reason
			ref = ref[:len(ref)-1]
			v, diags = ref.TraverseAbs(d.EvalContext)
		}
		if diags.HasErrors() {
			continue
		}
		name := addr.Text(ref)
		if v.ContainsMarked() {
			lines = append(lines, name+" has a value that is not shown")
			continue
		}
		if v.IsKnown() {
			lines = append(lines, name+" "+describe(v))
		} else if text := describeUnknown(v.Type(), planning); text != "" {
			lines = append(lines, name+" "+text)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// duplicateKey is the summary of the only HCL message that quotes a value.
const duplicateKey = "Duplicate object key"

// secretKey reports whether the expression of a message has a marked value.
func secretKey(d *hcl.Diagnostic) bool {
	if d.Expression == nil || d.EvalContext == nil {
		return false
	}
	v, _ := d.Expression.Value(d.EvalContext)
	return v.ContainsMarked()
}

// describeUnknown returns a short description of an unknown value, or "" if there is nothing to
// say about it.
func describeUnknown(ty cty.Type, planning bool) string {
	switch {
	case ty == cty.DynamicPseudoType && planning:
		return "will be known only after apply"
	case ty == cty.DynamicPseudoType:
		return ""
	case planning:
		return "is a " + ty.FriendlyName() + ", known only after apply"
	}
	return "is a " + ty.FriendlyName()
}

// describe returns a short description of a known value: a primitive itself, otherwise the kind
// and size.
func describe(v cty.Value) string {
	ty := v.Type()
	switch {
	case v.IsNull():
		return "is null"
	case ty == cty.String:
		return "is " + strconv.Quote(clip(source.HideCredentials(v.AsString())))
	case ty == cty.Number:
		return "is " + v.AsBigFloat().Text('f', -1)
	case ty == cty.Bool:
		return fmt.Sprintf("is %t", v.True())
	case ty.IsCollectionType() || ty.IsTupleType():
		if n := v.LengthInt(); n > 0 {
			return fmt.Sprintf("is %s with %d element%s", ty.FriendlyName(), n, plural(n))
		}
		return "is empty " + ty.FriendlyName()
	case ty.IsObjectType():
		switch names := slices.Sorted(maps.Keys(ty.AttributeTypes())); len(names) {
		case 0:
			return "is object with no attributes"
		case 1:
			return "is object with 1 attribute " + strconv.Quote(names[0])
		default:
			return fmt.Sprintf("is object with %d attributes", len(names))
		}
	default:
		return "is " + ty.FriendlyName()
	}
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func clip(s string) string {
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + "…"
}
