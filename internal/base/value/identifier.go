package value

import "github.com/hashicorp/hcl/v2/hclsyntax"

// IsIdentifier reports whether a name is an identifier of HCL. It decides common names without HCL's scanner.
func IsIdentifier(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' && len(name) > 1:
		case i > 0 && ('0' <= c && c <= '9' || c == '-'):
		default:
			return hclsyntax.ValidIdentifier(name)
		}
	}
	return name != ""
}
