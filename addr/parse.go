package addr

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxAddress is the maximum length of an address in bytes, since addresses may come from
// outside.
const maxAddress = 64 << 10

// A Target is the address in -target, -exclude, moved and removed blocks and state commands: a
// module, a resource in a module, or one instance of either.
type Target struct {
	Module    ModuleInstance
	ModuleKey bool     // the last step of Module has a key, or Module is exact
	Resource  Resource // zero for a whole module
	Key       Key
	HasKey    bool   // Key was given
	Pattern   string // the pattern as it was written; see ParsePattern. Empty for an address
}

// IsModule reports whether the target is a whole module.
func (t Target) IsModule() bool { return t.Resource == Resource{} }

// String returns the address in the form that ParseTarget parses, or the pattern in the form
// that ParsePattern parses.
func (t Target) String() string {
	if t.Pattern != "" {
		return t.Pattern
	}
	if t.IsModule() {
		return string(t.Module)
	}
	return Instance{t.Module, t.Resource, t.Key}.String()
}

// Instance returns the resource instance with exactly the target's address.
func (t Target) Instance() Instance { return Instance{t.Module, t.Resource, t.Key} }

// Contains reports whether the target covers a resource instance. A step without a key covers
// every instance of the call or resource.
func (t Target) Contains(i Instance) bool {
	if !coversModule(t.Module, i.Module, t.IsModule()) {
		return false
	}
	if t.IsModule() {
		return true
	}
	return t.Resource == i.Resource && (!t.HasKey || t.Key == i.Key)
}

// ContainsConfig reports whether the target covers instances of a resource block.
func (t Target) ContainsConfig(r ConfigResource) bool {
	mod := t.Module.Static()
	if t.IsModule() {
		return mod == "" || mod == r.Module || strings.HasPrefix(string(r.Module), string(mod)+".")
	}
	return mod == r.Module && t.Resource == r.Resource
}

func coversModule(t, m ModuleInstance, prefix bool) bool {
	if t == m {
		return true
	}
	a, b := t.Steps(), m.Steps()
	if len(a) > len(b) || (!prefix && len(a) != len(b)) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || (a[i].Key.Kind != NoKey && a[i].Key != b[i].Key) {
			return false
		}
	}
	return true
}

// ParseTarget parses a module, resource or resource instance address.
func ParseTarget(s string) (Target, error) {
	if t, ok := parsePlain(s); ok {
		return t, nil
	}
	t, err := parseTraversal(s)
	if err != nil {
		return Target{}, err
	}
	return TargetFromTraversal(t)
}

// ParseInstance parses the address of one resource instance.
func ParseInstance(s string) (Instance, error) {
	t, err := ParseTarget(s)
	if err != nil {
		return Instance{}, err
	}
	if t.IsModule() {
		return Instance{}, fmt.Errorf("%q names a module, but a resource instance is needed here", s)
	}
	return t.Instance(), nil
}

// ParseModuleInstance parses the address of a module instance; "" is the root.
func ParseModuleInstance(s string) (ModuleInstance, error) {
	if s == "" {
		return "", nil
	}
	t, err := ParseTarget(s)
	if err != nil {
		return "", err
	}
	if !t.IsModule() {
		return "", fmt.Errorf("%q names a resource, but a module is needed here", s)
	}
	return t.Module, nil
}

// ParseConfigResource parses the address of a resource without instance keys, as in the
// dependencies of a state file.
func ParseConfigResource(s string) (ConfigResource, error) {
	t, err := ParseTarget(s)
	if err != nil {
		return ConfigResource{}, err
	}
	if t.IsModule() {
		return ConfigResource{}, fmt.Errorf("%q names a module, but a resource is needed here", s)
	}
	return ConfigResource{t.Module.Static(), t.Resource}, nil
}

// parsePlain parses a valid address that consists of ASCII names and dots. It returns false for
// all other texts. Large states contain many such addresses, for which HCL's parser takes longer
// than everything else about the state.
func parsePlain(s string) (out Target, ok bool) {
	if len(s) > maxAddress {
		return Target{}, false
	}
	next := func() string {
		name, rest, _ := strings.Cut(s, ".")
		if !plainName(name) || rest == "" && len(name) != len(s) {
			return ""
		}
		s = rest
		return name
	}
	name := next()
	for name == "module" {
		call := next()
		if call == "" {
			return Target{}, false
		}
		out.Module = out.Module.Child(call, Key{})
		if s == "" {
			return out, true
		}
		name = next()
	}
	switch name {
	case "data":
		out.Resource.Mode, name = Data, next()
	case "ephemeral":
		out.Resource.Mode, name = Ephemeral, next()
	case "resource":
		name = next()
	}
	out.Resource.Type, out.Resource.Name = name, next()
	return out, out.Resource.Type != "" && out.Resource.Name != "" && s == ""
}

// plainName reports whether a text is a name of ASCII letters, digits, underscores and dashes.
func plainName(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '-') {
			return false
		}
	}
	return s != ""
}

func parseTraversal(s string) (hcl.Traversal, error) {
	if len(s) > maxAddress {
		return nil, fmt.Errorf("the address is longer than %d bytes", maxAddress)
	}
	t, diags := hclsyntax.ParseTraversalAbs([]byte(s), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("%s: %s", diags[0].Summary, diags[0].Detail)
	}
	return t, nil
}

// TargetFromTraversal converts a traversal in configuration to a target, such as the from and
// to arguments of a moved block.
func TargetFromTraversal(t hcl.Traversal) (Target, error) {
	target, rest, err := splitTarget(t)
	if err != nil {
		return Target{}, err
	}
	if len(rest) > 0 {
		return Target{}, fmt.Errorf("%q has more steps than the address of a resource instance", Text(t))
	}
	return target, nil
}

// splitTarget converts the beginning of a traversal to a target, and returns the remaining
// steps.
func splitTarget(t hcl.Traversal) (Target, hcl.Traversal, error) {
	var out Target
	for len(t) > 0 && StepName(t[0]) == "module" {
		if len(t) < 2 || StepName(t[1]) == "" {
			return Target{}, nil, fmt.Errorf("the word \"module\" must be followed by the name of a module call")
		}
		call := StepName(t[1])
		t = t[2:]
		key, has, err := takeKey(&t)
		if err != nil {
			return Target{}, nil, err
		}
		out.Module = out.Module.Child(call, key)
		out.ModuleKey = has
	}
	if len(t) == 0 {
		if out.Module == "" {
			return Target{}, nil, fmt.Errorf("the address is empty")
		}
		return out, nil, nil
	}
	switch StepName(t[0]) {
	case "data":
		out.Resource.Mode, t = Data, t[1:]
	case "ephemeral":
		out.Resource.Mode, t = Ephemeral, t[1:]
	case "resource":
		t = t[1:]
	case "":
		return Target{}, nil, fmt.Errorf("there is an index where the type of a resource is needed")
	}
	if len(t) < 2 || StepName(t[0]) == "" || StepName(t[1]) == "" {
		return Target{}, nil, fmt.Errorf("a resource address needs a type and a name, separated by a dot")
	}
	out.Resource.Type, out.Resource.Name = StepName(t[0]), StepName(t[1])
	t = t[2:]
	var err error
	out.Key, out.HasKey, err = takeKey(&t)
	return out, t, err
}

func takeKey(t *hcl.Traversal) (Key, bool, error) {
	if len(*t) == 0 {
		return Key{}, false, nil
	}
	idx, ok := (*t)[0].(hcl.TraverseIndex)
	if !ok {
		if _, splat := (*t)[0].(hcl.TraverseSplat); splat {
			return Key{}, false, fmt.Errorf("a splat cannot be part of an address")
		}
		return Key{}, false, nil
	}
	k, err := KeyFromValue(idx.Key)
	*t = (*t)[1:]
	return k, err == nil, err
}

// KeyFromValue returns the key for a known string or a known whole number.
func KeyFromValue(v cty.Value) (Key, error) {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() {
		return Key{}, fmt.Errorf("an instance key must be known and not null")
	}
	switch v.Type() {
	case cty.String:
		return Str(v.AsString()), nil
	case cty.Number:
		f := v.AsBigFloat()
		n, acc := f.Int64()
		if acc != 0 || n < 0 || n > 1<<40 {
			return Key{}, fmt.Errorf("the instance key %s is not a whole number from zero on", f.Text('f', -1))
		}
		return Int(int(n)), nil
	default:
		return Key{}, fmt.Errorf("an instance key must be a string or a whole number")
	}
}

// StepName returns the name in a step of a traversal, or "" if the step has none.
func StepName(step hcl.Traverser) string {
	switch s := step.(type) {
	case hcl.TraverseRoot:
		return s.Name
	case hcl.TraverseAttr:
		return s.Name
	}
	return ""
}

// Text returns a traversal in the form of configuration.
func Text(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			if k, err := KeyFromValue(s.Key); err == nil {
				b.WriteString(k.String())
			} else {
				b.WriteString("[…]")
			}
		case hcl.TraverseSplat:
			b.WriteString("[*]")
		}
	}
	return b.String()
}

// cutKey removes a bracketed key in canonical form from the beginning of s.
func cutKey(s string) (Key, string) {
	if strings.HasPrefix(s, `["`) {
		for i := 2; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				key := s[2:i]
				if strings.ContainsAny(key, `\$%`) {
					key = unquote(s[1 : i+1])
				}
				return Str(key), strings.TrimPrefix(s[i+1:], "]")
			}
		}
		return Str(s[2:]), ""
	}
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return Key{}, ""
	}
	n := 0
	for _, c := range []byte(s[1:end]) {
		n = n*10 + int(c-'0')
	}
	return Int(n), s[end+1:]
}

// unquote decodes a quoted literal with escapes.
func unquote(quoted string) string {
	x, diags := hclsyntax.ParseExpression([]byte(quoted), "", hcl.InitialPos)
	if diags.HasErrors() {
		return quoted[1 : len(quoted)-1]
	}
	v, diags := x.Value(nil)
	if diags.HasErrors() || v.Type() != cty.String || v.IsNull() || !v.IsKnown() {
		return quoted[1 : len(quoted)-1]
	}
	return v.AsString()
}
