package diag

import "github.com/terrace-iac/terrace/source"

// TooDeep returns an error for a text whose nesting is so deep that parsing it would overflow
// the stack and end the program; otherwise nil. It must be called before HCL parses the text.
func TooDeep(name string, text []byte) List {
	at, deep := source.TooDeep(name, text)
	if !deep {
		return nil
	}
	return Errorf(CodeConfigTooDeep, &at, "Too deeply nested", "Expressions and blocks in this file are nested many thousand levels deep, which no configuration written for a reader needs. Flatten it, or move the data to a file that is read with jsondecode or yamldecode.")
}
