package diag

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// FromValues converts messages of the HCL library about text that contains only values, which
// must not be shown. Names remain, since other messages contain them, too. If the library
// quotes other parts of the text, the detail is replaced and only the position remains.
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

// namesOnly contains the messages whose details only quote names of arguments and blocks.
var namesOnly = map[string]bool{
	"Attribute redefined":      true,
	"Duplicate argument":       true,
	"Unsupported argument":     true,
	"Unsupported block type":   true,
	"Extraneous JSON property": true,
}

// quotes reports whether a detail contains words of a text in quotation marks.
func quotes(detail string, text []byte) bool {
	for i, part := range strings.Split(detail, `"`) {
		if i%2 == 1 && len(part) > 1 && bytes.Contains(text, []byte(part)) {
			return true
		}
	}
	return false
}
