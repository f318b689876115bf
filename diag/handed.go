package diag

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// FromValues converts messages of the HCL library about text that holds nothing but
// values, which no message shows. Names, which other messages speak of as well, stay;
// where the library quotes something else of the text, only the place is given.
func FromValues(text []byte, in hcl.Diagnostics) List {
	out := FromHCL(in)
	for _, m := range out {
		m.Values = nil
		if !namesOnly[m.Summary] && quotes(m.Detail, text) {
			m.Detail = "This is not a value. Strings need quotes; nothing can be referred to or called."
		}
	}
	return out
}

// namesOnly are the messages whose details quote names of arguments and blocks.
var namesOnly = map[string]bool{
	"Attribute redefined":      true,
	"Duplicate argument":       true,
	"Unsupported argument":     true,
	"Unsupported block type":   true,
	"Extraneous JSON property": true,
}

// quotes reports whether a detail has words of a text in quotation marks.
func quotes(detail string, text []byte) bool {
	for i, part := range strings.Split(detail, `"`) {
		if i%2 == 1 && len(part) > 1 && bytes.Contains(text, []byte(part)) {
			return true
		}
	}
	return false
}
