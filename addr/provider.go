package addr

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// DefaultHost is the registry host of provider and module addresses without a host.
const DefaultHost = "registry.opentofu.org"

// OtherDefaultHost is the default registry host of Terraform, which occurs in its state files.
const OtherDefaultHost = "registry.terraform.io"

// A Provider is the source address of a provider.
type Provider struct {
	Host      string
	Namespace string
	Type      string
}

// BuiltIn is the provider that is part of this program.
var BuiltIn = Provider{Host: "terraform.io", Namespace: "builtin", Type: "terraform"}

// DefaultProvider returns the provider of a local name without an entry in required_providers.
func DefaultProvider(local string) Provider {
	if local == "terraform" {
		return BuiltIn
	}
	return Provider{Host: DefaultHost, Namespace: "hashicorp", Type: local}
}

// String returns the full address: "registry.opentofu.org/hashicorp/time".
func (p Provider) String() string { return p.Host + "/" + p.Namespace + "/" + p.Type }

// Display returns the address without the default host.
func (p Provider) Display() string {
	if p.Host == DefaultHost {
		return p.Namespace + "/" + p.Type
	}
	return p.String()
}

// IsZero reports whether p is the zero Provider.
func (p Provider) IsZero() bool { return p == Provider{} }

// IsBuiltIn reports whether the provider is part of this program.
func (p Provider) IsBuiltIn() bool { return p == BuiltIn }

// A ProviderConfig is a provider configuration in a module, as in a state file:
// `module.a.provider["registry.opentofu.org/hashicorp/time"].alias["key"]`.
type ProviderConfig struct {
	Module   Module
	Provider Provider
	Alias    string
	Key      Key // key of a configuration with for_each
}

// String returns the address in the form of state files, which ParseProviderConfig parses.
func (p ProviderConfig) String() string {
	s := "provider[" + Quote(p.Provider.String()) + "]"
	if p.Alias != "" {
		s += "." + p.Alias + p.Key.String()
	}
	return join(string(p.Module), s)
}

// ParseProvider parses [host/][namespace/]type. The parts consist of lower case letters, digits
// and dashes. The host must contain a dot or a port unless it is localhost.
func ParseProvider(s string) (Provider, error) {
	parts := strings.Split(s, "/")
	p := Provider{Host: DefaultHost, Namespace: "hashicorp"}
	switch len(parts) {
	case 1:
		p.Type = parts[0]
		if p.Type == "terraform" {
			return BuiltIn, nil
		}
	case 2:
		p.Namespace, p.Type = parts[0], parts[1]
	case 3:
		p.Host, p.Namespace, p.Type = parts[0], parts[1], parts[2]
	default:
		return Provider{}, fmt.Errorf("%q is not a provider source: it has the form [hostname/]namespace/type", s)
	}
	p.Host = strings.ToLower(p.Host)
	if !validHost(p.Host) {
		return Provider{}, fmt.Errorf("%q is not a provider source: %q is not a host name", s, p.Host)
	}
	var err error
	if p.Namespace, err = providerPart(s, "namespace", p.Namespace); err != nil {
		return Provider{}, err
	}
	if p.Type, err = providerPart(s, "type", p.Type); err != nil {
		return Provider{}, err
	}
	for _, prefix := range []string{"terraform-provider-", "opentofu-provider-", "terraform-", "opentofu-"} {
		if rest, ok := strings.CutPrefix(p.Type, prefix); ok && rest != "" {
			return Provider{}, fmt.Errorf("%q is not a provider source: the type must not start with %q; did you mean %q?", s, prefix, Provider{p.Host, p.Namespace, rest}.Display())
		}
	}
	if p.Host == "opentofu.org" && p.Namespace == "builtin" {
		p.Host = BuiltIn.Host
	}
	return p, nil
}

func providerPart(s, what, part string) (string, error) {
	part = strings.ToLower(part)
	if part == "-" && what == "namespace" {
		return part, nil
	}
	ok := part != "" && !strings.HasPrefix(part, "-") && !strings.HasSuffix(part, "-") && !strings.Contains(part, "--")
	for _, r := range part {
		ok = ok && (r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || r > 0x7f)
	}
	if !ok {
		return "", fmt.Errorf("%q is not a provider source: the %s %q may hold letters, digits and single dashes between them only", s, what, part)
	}
	return part, nil
}

func validHost(h string) bool {
	name, port, hasPort := strings.Cut(h, ":")
	if hasPort {
		for _, r := range port {
			if r < '0' || r > '9' {
				return false
			}
		}
		if port == "" {
			return false
		}
	}
	if name != "localhost" && !strings.Contains(name, ".") {
		return false
	}
	for _, label := range strings.Split(name, ".") {
		if label == "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
		for _, r := range label {
			if !(r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || r > 0x7f) {
				return false
			}
		}
	}
	return true
}

// ParseProviderConfig parses the result of String.
func ParseProviderConfig(s string) (ProviderConfig, error) {
	t, err := parseTraversal(s)
	if err != nil {
		return ProviderConfig{}, err
	}
	var out ProviderConfig
	for len(t) >= 2 && StepName(t[0]) == "module" && StepName(t[1]) != "" {
		out.Module = out.Module.Child(StepName(t[1]))
		t = t[2:]
		if len(t) > 0 {
			if _, keyed := t[0].(hcl.TraverseIndex); keyed {
				return ProviderConfig{}, fmt.Errorf("the provider configuration address %q has an instance key in its module path", s)
			}
		}
	}
	if len(t) < 2 || StepName(t[0]) != "provider" {
		return ProviderConfig{}, fmt.Errorf("%q is not the address of a provider configuration", s)
	}
	switch step := t[1].(type) {
	case hcl.TraverseIndex:
		key, err := KeyFromValue(step.Key)
		if err != nil || key.Kind != StringKey {
			return ProviderConfig{}, fmt.Errorf("%q is not the address of a provider configuration: the provider's source must be a string", s)
		}
		if out.Provider, err = ParseProvider(key.Str); err != nil {
			return ProviderConfig{}, err
		}
	case hcl.TraverseAttr: // before version 4 of the state format
		out.Provider = Provider{Host: DefaultHost, Namespace: "-", Type: step.Name}
	}
	t = t[2:]
	if len(t) > 0 {
		if out.Alias = StepName(t[0]); out.Alias == "" {
			return ProviderConfig{}, fmt.Errorf("%q is not the address of a provider configuration: an alias is a name", s)
		}
		t = t[1:]
		if out.Key, _, err = takeKey(&t); err != nil {
			return ProviderConfig{}, err
		}
	}
	if len(t) > 0 {
		return ProviderConfig{}, fmt.Errorf("%q has more steps than the address of a provider configuration", s)
	}
	return out, nil
}
