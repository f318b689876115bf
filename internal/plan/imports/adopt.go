package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Adopt returns the import block and the resource block that take an existing object into a
// configuration. ref is the provider configuration; nil means the default one of the type.
// settings are the arguments: the state of the object, or a configuration.
func Adopt(r addr.Resource, ref *config.ProviderRef, s *schema.Resource, identity, settings cty.Value) (importing, resource string) {
	var b strings.Builder
	fmt.Fprintf(&b, "import {\n  to = %s\n", r)
	if ref != nil {
		fmt.Fprintf(&b, "  provider = %s\n", ref)
	}
	parts := map[string]cty.Value{}
	for name, v := range identity.AsValueMap() {
		if !v.IsNull() {
			parts[name] = v
		}
	}
	b.WriteString("  identity = {\n")
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		fmt.Fprintf(&b, "    %s = %s\n", name, hclwrite.TokensForValue(parts[name]).Bytes())
	}
	b.WriteString("  }\n}\n")
	return string(hclwrite.Format([]byte(b.String()))), GenerateConfig(r, ref, s, settings)
}

// AdoptedName returns a name for a resource block, from a text such as the name of an object.
// taken reports whether a name is in use. The result is a valid name that is not taken.
func AdoptedName(text, otherwise string, taken func(string) bool) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9' && b.Len() > 0:
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	name := strings.TrimRight(b.String(), "_")
	if name == "" {
		name = otherwise
	}
	out := name
	for n := 2; taken(out); n++ {
		out = fmt.Sprintf("%s_%d", name, n)
	}
	return out
}
