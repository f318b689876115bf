package view

import (
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// JSONMessages returns a converter of messages to JSON, including the differences of failed
// conditions.
func JSONMessages(set *source.Set, names diag.Names) diag.JSON {
	return diag.JSON{Set: set, Names: names, Difference: planjson.Difference}
}

// Difference returns a function for diag.Printer.Difference. It formats the two sides of a
// failed condition like the values of a plan. It hides sensitive values.
func Difference(style Style) func(*diag.Difference) string {
	return func(d *diag.Difference) string {
		var b strings.Builder
		v := &planView{printer: newPrinter(&b, style)}
		n := v.d.typed(pair{before: d.Before, after: d.After, beforeS: value.NewPathSet(d.BeforeSecret), afterS: value.NewPathSet(d.AfterSecret)}, cty.DynamicPseudoType)
		v.str("    ")
		v.node(n, 0, flags{})
		_ = v.Flush()
		return b.String()
	}
}
