package units

import (
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate"
)

// shareProviders parses the providers of --share-provider into o.
func shareProviders(names []string, o *estate.Options) diag.List {
	for _, name := range names {
		a, err := addr.ParseProvider(strings.TrimSpace(name))
		if err != nil {
			return diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "Invalid value %q for flag --share-provider: %s.", name, err)
		}
		o.ShareProviders = append(o.ShareProviders, a)
	}
	return nil
}
