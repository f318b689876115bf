package view

import (
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// Value formats a value as an expression, as outputs are shown after an apply. It hides
// sensitive and ephemeral parts.
func Value(v cty.Value) string {
	var b strings.Builder
	writeValue(&b, v, 0)
	return b.String()
}

func writeValue(b *strings.Builder, v cty.Value, indent int) {
	if v.IsMarked() {
		switch {
		case value.Secret(v):
			b.WriteString("(sensitive value)")
			return
		case value.HasMark(v, value.Ephemeral):
			b.WriteString("(ephemeral value)")
			return
		}
		v, _ = v.Unmark()
	}
	ty := v.Type()
	switch {
	case !v.IsKnown():
		b.WriteString("(known after apply)")
	case v.IsNull():
		b.WriteString(nullText(ty))
	case ty == cty.String:
		writeText(b, v.AsString(), indent)
	case ty == cty.Number:
		b.WriteString(number(v.AsBigFloat()))
	case ty == cty.Bool:
		b.WriteString(strconv.FormatBool(v.True()))
	case ty.IsListType():
		writeSequence(b, "tolist([", "])", v, indent)
	case ty.IsSetType():
		writeSequence(b, "toset([", "])", v, indent)
	case ty.IsTupleType():
		writeSequence(b, "[", "]", v, indent)
	case ty.IsMapType():
		writeNamed(b, "tomap({", "})", v, indent)
	case ty.IsObjectType():
		writeNamed(b, "{", "}", v, indent)
	default:
		b.WriteString(ty.FriendlyName())
	}
}

// nullText returns null, with as much of its type as an expression can contain.
func nullText(ty cty.Type) string {
	switch {
	case ty == cty.String:
		return "tostring(null)"
	case ty == cty.Number:
		return "tonumber(null)"
	case ty == cty.Bool:
		return "tobool(null)"
	case ty.IsListType():
		return "tolist(null) /* of " + ty.ElementType().FriendlyName() + " */"
	case ty.IsSetType():
		return "toset(null) /* of " + ty.ElementType().FriendlyName() + " */"
	case ty.IsMapType():
		return "tomap(null) /* of " + ty.ElementType().FriendlyName() + " */"
	case ty.IsObjectType() || ty.IsTupleType():
		return "null /* " + ty.FriendlyName() + " */"
	}
	return "null"
}

func writeText(b *strings.Builder, s string, indent int) {
	if !strings.Contains(s, "\n") {
		b.WriteString(strconv.Quote(s))
		return
	}
	end := "EOT"
	for strings.Contains(s, end) {
		end += "_"
	}
	pad := strings.Repeat(" ", indent)
	b.WriteString("<<")
	if indent > 0 {
		b.WriteString("-")
	}
	b.WriteString(end + "\n")
	for _, line := range strings.Split(s, "\n") {
		b.WriteString(pad + line + "\n")
	}
	b.WriteString(pad + end)
}

func writeSequence(b *strings.Builder, open, end string, v cty.Value, indent int) {
	if v.LengthInt() == 0 {
		b.WriteString(open + end)
		return
	}
	b.WriteString(open + "\n")
	pad := strings.Repeat(" ", indent+2)
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		b.WriteString(pad)
		writeValue(b, e, indent+2)
		b.WriteString(",\n")
	}
	b.WriteString(pad[2:] + end)
}

func writeNamed(b *strings.Builder, open, end string, v cty.Value, indent int) {
	parts := elements(v)
	if len(parts) == 0 {
		b.WriteString(open + end)
		return
	}
	b.WriteString(open + "\n")
	pad := strings.Repeat(" ", indent+2)
	for _, name := range sortedNames(parts) {
		b.WriteString(pad + strconv.Quote(name) + " = ")
		writeValue(b, parts[name], indent+2)
		b.WriteString("\n")
	}
	b.WriteString(pad[2:] + end)
}
