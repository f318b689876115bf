package cliconfig

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Pattern matches provider addresses. A part "*" matches any text.
type Pattern struct{ Host, Namespace, Type string }

// ParsePattern parses [host/]namespace/type. A part may be "*" if all later parts are too.
func ParsePattern(s string) (Pattern, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 2 && len(parts) != 3 {
		return Pattern{}, fmt.Errorf("invalid provider matching pattern %q: must have either two or three slash-separated segments", s)
	}
	if len(parts) == 2 {
		parts = append([]string{addr.DefaultHost}, parts...)
	}
	full := make([]string, 3) // wildcards are replaced by names, in order to check the rest
	for i, part := range parts {
		full[i] = part
		if part == "*" {
			full[i] = "any"
			if i == 0 {
				full[i] = addr.DefaultHost
			}
			if i < 2 && parts[i+1] != "*" {
				return Pattern{}, fmt.Errorf("invalid provider matching pattern %q: if a segment is \"*\" then all that follow must be too", s)
			}
		}
	}
	p, err := addr.ParseProvider(strings.Join(full, "/"))
	if err != nil {
		return Pattern{}, fmt.Errorf("invalid provider matching pattern %q: %w", s, err)
	}
	out := Pattern{p.Host, p.Namespace, p.Type}
	for i, field := range []*string{&out.Host, &out.Namespace, &out.Type} {
		if parts[i] == "*" {
			*field = "*"
		}
	}
	return out, nil
}

// Matches reports whether the pattern matches an address.
func (p Pattern) Matches(a addr.Provider) bool {
	return (p.Host == "*" || p.Host == a.Host) && (p.Namespace == "*" || p.Namespace == a.Namespace) && (p.Type == "*" || p.Type == a.Type)
}

func (p Pattern) String() string { return p.Host + "/" + p.Namespace + "/" + p.Type }

func patterns(texts []string, what string, at source.Range) ([]Pattern, diag.List) {
	if texts == nil {
		return nil, nil
	}
	out := make([]Pattern, 0, len(texts))
	for _, t := range texts {
		p, err := ParsePattern(t)
		if err != nil {
			return out, diag.Errorf(diag.CodeCLIConfiguration, &at, "Invalid provider source "+what+" patterns", "CLI config specifies invalid provider %s patterns: %s.", what, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// OCIRepo is the template of the repository address of providers in an OCI mirror.
type OCIRepo struct{ expr hclsyntax.Expression }

// ParseOCITemplate parses a URI template, such as example.com/{namespace}/{type}. The names are
// hostname, namespace and type.
func ParseOCITemplate(text string) (*OCIRepo, error) {
	var b strings.Builder
	for rest := text; rest != ""; {
		before, after, ok := strings.Cut(rest, "{")
		if strings.ContainsAny(before, "}$%") {
			return nil, fmt.Errorf("the template contains a character that no address has")
		}
		b.WriteString(before)
		if !ok {
			break
		}
		name, more, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			return nil, fmt.Errorf("a { is not closed")
		case name != "hostname" && name != "namespace" && name != "type":
			return nil, fmt.Errorf("{%s} is not available, only {hostname}, {namespace} and {type} are", name)
		}
		b.WriteString("${" + name + "}")
		rest = more
	}
	expr, hds := hclsyntax.ParseTemplate([]byte(b.String()), "", hcl.InitialPos)
	if hds.HasErrors() {
		return nil, hds
	}
	return &OCIRepo{expr}, nil
}

// Repository returns the host and the path of a provider's repository.
func (t *OCIRepo) Repository(p addr.Provider) (host, path string, err error) {
	v, hds := t.expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{
		"hostname":  cty.StringVal(p.Host),
		"namespace": cty.StringVal(p.Namespace),
		"type":      cty.StringVal(p.Type),
	}})
	if hds.HasErrors() {
		return "", "", hds
	}
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return "", "", fmt.Errorf("the repository template does not give a string")
	}
	host, path, ok := strings.Cut(v.AsString(), "/")
	if !ok || host == "" || path == "" {
		return "", "", fmt.Errorf("%q is not the address of a repository: it must be HOST/PATH", v.AsString())
	}
	return host, path, nil
}

// parseOCIRepo parses a template. It returns errors if the template could give two providers that
// the patterns include the same repository.
func parseOCIRepo(text string, include []Pattern, at source.Range) (*OCIRepo, diag.List) {
	const sum = "Invalid oci_mirror repository template"
	expr, hds := hclsyntax.ParseTemplate([]byte(text), at.Filename, at.Start)
	if hds.HasErrors() {
		return nil, diag.FromHCL(hds)
	}
	var ds diag.List
	used := make(map[string]bool)
	for _, ref := range expr.Variables() {
		name := ref.RootName()
		used[name] = true
		if name != "hostname" && name != "namespace" && name != "type" {
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &at, sum, "The symbol %q is not available in the address of an OCI mirror repository; only \"hostname\", \"namespace\" and \"type\" are.", name)...)
		}
	}
	for _, part := range []struct {
		name, only string
		of         func(Pattern) string
	}{
		{"hostname", "exactly one registry hostname", func(p Pattern) string { return p.Host }},
		{"namespace", "exactly one provider namespace", func(p Pattern) string { return p.Host + "/" + p.Namespace }},
		{"type", "exactly one provider", Pattern.String},
	} {
		if !used[part.name] && !oneOnly(include, part.of) {
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &at, sum, "The template must refer to the %q symbol unless the \"include\" argument selects %s.", part.name, part.only)...)
		}
	}
	return &OCIRepo{expr}, ds
}

func oneOnly(include []Pattern, of func(Pattern) string) bool {
	if len(include) == 0 {
		return false
	}
	first := of(include[0])
	for _, p := range include {
		if of(p) != first {
			return false
		}
	}
	return !strings.HasSuffix(first, "*")
}
