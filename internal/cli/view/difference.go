package view

import (
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// JSONMessages makes messages into JSON, with the differences that failed
// conditions tell.
func JSONMessages(set *source.Set) diag.JSON {
	return diag.JSON{Set: set, Difference: planjson.Difference}
}

// Difference is for Printer.Difference: the two sides of a failed condition in
// the form of a plan's values. What is secret is not shown.
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
