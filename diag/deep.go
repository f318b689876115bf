package diag

import "github.com/terrace-iac/terrace/source"

// TooDeep is an error about a text that nests so deeply that parsing it would use up the
// stack, which ends the program; nil for all others. It is asked before HCL is.
func TooDeep(name string, text []byte) List {
	at, deep := source.TooDeep(name, text)
	if !deep {
		return nil
	}
	return Errorf(CodeConfigTooDeep, &at, "Too deeply nested", "Expressions and blocks in this file are nested many thousand levels deep, which no configuration written for a reader needs. Flatten it, or move the data to a file that is read with jsondecode or yamldecode.")
}
