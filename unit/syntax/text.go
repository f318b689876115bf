package syntax

import (
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/internal/base/similar"
	"github.com/zclconf/go-cty/cty"
)

// Quote returns a text in quotation marks, for messages.
func Quote(s string) string { return strconv.Quote(s) }

// Nearest returns the name that is most similar to a misspelled one, or "".
func Nearest(given string, names []string) string {
	return similar.Nearest(given, slices.Values(names))
}

// Known reports whether a value is known and not null.
func Known(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }
