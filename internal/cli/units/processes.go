package units

import (
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
)

// providersOf parses the providers that a flag names.
func providersOf(flag string, names []string, into *[]addr.Provider) diag.List {
	for _, name := range names {
		a, err := addr.ParseProvider(strings.TrimSpace(name))
		if err != nil {
			return diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "Invalid value %q for flag --%s: %s.", name, flag, err)
		}
		*into = append(*into, a)
	}
	return nil
}
