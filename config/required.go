package config

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// decodeRequiredProvider decodes one entry of required_providers. It returns nil if the entry
// is unusable.
func decodeRequiredProvider(a *hcl.Attribute) (*RequiredProvider, diag.List) {
	ds := providerName(a.Name, a.NameRange)
	rp := &RequiredProvider{Name: a.Name, At: a.Range}
	pairs, diags := hcl.ExprMap(a.Expr)
	if diags.HasErrors() {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
			return nil, append(ds, errorAt(diag.CodeConfigRequiredProvider, a.Expr.Range(), "Invalid required_providers object",
				"The entry of a provider is an object with the arguments source, version and configuration_aliases, or a string with a version constraint.")...)
		}
		c, more := constraint(v.AsString(), a.Expr.Range())
		rp.Version = c
		return rp, append(ds, more...)
	}
	seen := map[string]source.Range{}
	for _, kv := range pairs {
		k, diags := kv.Key.Value(nil)
		if diags.HasErrors() || k.IsNull() || !k.IsKnown() || k.Type() != cty.String {
			ds = append(ds, errorAt(diag.CodeConfigRequiredProvider, kv.Key.Range(), "Invalid required_providers object",
				"The names of the arguments must be written out: source, version and configuration_aliases.")...)
			continue
		}
		name := k.AsString()
		if first, dup := seen[name]; dup {
			ds = append(ds, errorAt(diag.CodeConfigRequiredProvider, kv.Key.Range(), "Invalid required_providers object",
				"The argument %q is set twice.", name).Note(&first, "set here")...)
		}
		seen[name] = kv.Key.Range()
		ds = append(ds, rp.set(name, kv.Key.Range(), kv.Value)...)
	}
	return rp, ds
}

// set decodes one argument of an entry.
func (rp *RequiredProvider) set(name string, at source.Range, x hcl.Expression) diag.List {
	if (name == "version" || name == "source") && len(x.Variables()) > 0 {
		if name == "version" {
			rp.VersionExpr = x
		} else {
			rp.SourceExpr = x
		}
		return nil
	}
	switch name {
	case "version":
		text, ds := constString(&hcl.Attribute{Name: name, Expr: x})
		if ds.HasErrors() {
			return ds
		}
		rp.Version, ds = constraint(text, x.Range())
		return ds
	case "source":
		text, ds := constString(&hcl.Attribute{Name: name, Expr: x})
		if ds.HasErrors() {
			return ds
		}
		return rp.setSource(text, x.Range())
	case "configuration_aliases":
		return rp.setAliases(x)
	default:
		return errorAt(diag.CodeConfigRequiredProvider, at, "Invalid required_providers object",
			"An entry of required_providers can hold only source, version and configuration_aliases; there is no argument named %q. Arguments of the provider itself go into a provider block.", name)
	}
}

func (rp *RequiredProvider) setSource(text string, at source.Range) diag.List {
	p, err := addr.ParseProvider(text)
	if err != nil {
		return errorAt(diag.CodeConfigProviderSource, at, "Invalid provider source", "%s", sentence(err))
	}
	rp.Source, rp.SourceAt = p, at
	return nil
}

// ResolveProviders returns a copy of the module in which the entries of required_providers with
// references have their values. It returns the module itself if there are none. value evaluates an
// argument, whose name is "source" or "version", to a string. An argument that cannot be evaluated
// counts as not given.
func (m *Module) ResolveProviders(value func(provider, argument string, x hcl.Expression) (string, diag.List)) (*Module, diag.List) {
	var out *Module
	var ds diag.List
	for _, name := range slices.Sorted(maps.Keys(m.RequiredProviders)) {
		rp := m.RequiredProviders[name]
		if rp.SourceExpr == nil && rp.VersionExpr == nil {
			continue
		}
		if out == nil {
			c := *m
			out = &c
			out.RequiredProviders = maps.Clone(m.RequiredProviders)
		}
		resolved := *rp
		if x := rp.SourceExpr; x != nil {
			text, more := value(name, "source", x)
			if ds = append(ds, more...); !more.HasErrors() {
				ds = append(ds, resolved.setSource(text, x.Range())...)
			}
		}
		if x := rp.VersionExpr; x != nil {
			text, more := value(name, "version", x)
			if ds = append(ds, more...); !more.HasErrors() {
				resolved.Version, more = constraint(text, x.Range())
				ds = append(ds, more...)
			}
		}
		out.RequiredProviders[name] = &resolved
	}
	if out == nil {
		return m, nil
	}
	return out, append(ds, twoNames(out)...)
}

func (rp *RequiredProvider) setAliases(x hcl.Expression) diag.List {
	items, ds := list(&hcl.Attribute{Name: "configuration_aliases", Expr: x})
	for _, item := range items {
		t, diags := hcl.AbsTraversalForExpr(item)
		ds = append(ds, diag.FromHCL(diags)...)
		if diags.HasErrors() {
			continue
		}
		ref, more := providerRef(t, nil)
		switch {
		case more.HasErrors():
			ds = append(ds, more...)
		case ref.Key != nil:
			ds = append(ds, errorAt(diag.CodeConfigConfigurationAlias, item.Range(), "Invalid configuration_aliases value",
				"An element of configuration_aliases has the form %s.ALIAS.", rp.Name)...)
		case ref.Name != rp.Name:
			ds = append(ds, errorAt(diag.CodeConfigConfigurationAlias, item.Range(), "Invalid configuration_aliases value",
				"The aliases of an entry must be those of its own provider: write %s.%s instead of %s.", rp.Name, ref.Alias, ref)...)
		default:
			rp.Aliases = append(rp.Aliases, ref)
		}
	}
	return ds
}

// constraint parses the text of a version constraint.
func constraint(text string, at source.Range) ([]Constraint, diag.List) {
	if _, err := version.NewConstraint(text); err != nil {
		return nil, errorAt(diag.CodeConfigVersionConstraint, at, "Invalid version constraint",
			"%q is not a version constraint: write a list of conditions such as \">= 1.2, < 2.0\" or \"~> 1.4\".", text)
	}
	return []Constraint{{Text: text, At: at}}, nil
}

// providerName checks that a provider's local name has its normal form: lower case letters,
// digits, and single dashes between them.
func providerName(name string, at source.Range) diag.List {
	ok := name != "" && !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, "-") && !strings.Contains(name, "--")
	for _, r := range name {
		ok = ok && (r == '-' || '0' <= r && r <= '9' || unicode.IsLetter(r))
	}
	if !ok {
		return errorAt(diag.CodeConfigProviderName, at, "Invalid provider local name",
			"%q is not a name for a provider: it may hold letters, digits and single dashes between them only.", name)
	}
	if lower := strings.ToLower(name); lower != name {
		return errorAt(diag.CodeConfigProviderName, at, "Invalid provider local name",
			"The local name of a provider must be in its normal form: write %q instead of %q.", lower, name)
	}
	return nil
}
