package lock

import (
	"strings"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// Parse parses the text of a lock file. name is the file name in messages. If there are errors,
// the result contains the valid entries.
func Parse(src []byte, name string) (*File, diag.List) {
	out := &File{}
	if ds := diag.TooDeep(name, src); ds != nil {
		return out, ds
	}
	file, hds := hclnative.ParseConfig(src, name)
	if hds.HasErrors() {
		return out, diag.FromHCL(hds)
	}
	content, hds := file.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "provider", LabelNames: []string{"source_addr"}},
		{Type: "module", LabelNames: []string{"source"}},
	}})
	ds := diag.FromHCL(hds)
	seen := make(map[[2]string]*Module)
	for _, b := range content.Blocks {
		if b.Type == "module" {
			m, more := parseModule(b)
			ds = append(ds, more...)
			if m == nil {
				continue
			}
			key := [2]string{m.Source, m.Version}
			if first := seen[key]; first != nil {
				ds = append(ds, diag.Errorf(diag.CodeLockInvalidFile, &b.DefRange, "Duplicate module lock", "This lock file already pins version %q of module package %s.", m.Version, m.Source).Note(&first.At, "pinned here")...)
				continue
			}
			seen[key] = m
			out.Modules = append(out.Modules, m)
			continue
		}
		p, more := parseProvider(b)
		ds = append(ds, more...)
		if p == nil {
			continue
		}
		if first := out.Provider(p.Addr); first != nil {
			ds = append(ds, diag.Errorf(diag.CodeLockInvalidFile, &b.DefRange, "Duplicate provider lock", "This lock file already declared a lock for provider %s.", p.Addr).Note(&first.At, "locked here")...)
			continue
		}
		out.SetProvider(p)
	}
	return out, ds
}

func parseProvider(b *hcl.Block) (*Provider, diag.List) {
	label := b.Labels[0]
	at := &b.LabelRanges[0]
	p, err := addr.ParseProvider(label)
	switch {
	case err != nil:
		return nil, diag.Errorf(diag.CodeLockInvalidFile, at, "Invalid provider source address", "The provider source address for a provider lock must be a valid, fully-qualified address of the form \"hostname/namespace/type\": %s.", err)
	case p.IsBuiltIn():
		return nil, diag.Errorf(diag.CodeLockInvalidFile, at, "Invalid provider source address", "Cannot lock a version for the built-in provider %s: it is part of the program, so no version of it can be selected on its own.", p)
	case p.String() != label:
		return nil, diag.Errorf(diag.CodeLockInvalidFile, at, "Non-normalized provider source address", "The provider source address for this provider lock must be written as %q, the fully-qualified and normalized form.", p)
	}
	content, hds := b.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "version", Required: true}, {Name: "constraints"}, {Name: "hashes"},
	}})
	ds := diag.FromHCL(hds)
	out := &Provider{Addr: p, At: b.DefRange}
	if a := content.Attributes["version"]; a != nil {
		var more diag.List
		out.Version, more = providerVersion(p, a)
		ds = append(ds, more...)
	}
	if a := content.Attributes["constraints"]; a != nil {
		var more diag.List
		out.Constraints, more = providerConstraints(p, a)
		ds = append(ds, more...)
	}
	var more diag.List
	out.Hashes, more = hashes(content.Attributes["hashes"])
	return out, append(ds, more...)
}

func providerVersion(p addr.Provider, a *hcl.Attribute) (versions.Version, diag.List) {
	text, ds := stringOf(a)
	if ds.HasErrors() {
		return versions.Unspecified, ds
	}
	at := a.Expr.Range()
	v, err := versions.ParseVersion(text)
	switch {
	case err != nil:
		return versions.Unspecified, diag.Errorf(diag.CodeLockInvalidFile, &at, "Invalid provider version number", "The selected version number for provider %s is invalid: %s.", p, err)
	case v.String() != text:
		return v, diag.Errorf(diag.CodeLockInvalidFile, &at, "Invalid provider version number", "The selected version number for provider %s must be written in normalized form: %q.", p, v)
	}
	return v, nil
}

func providerConstraints(p addr.Provider, a *hcl.Attribute) (string, diag.List) {
	text, ds := stringOf(a)
	if ds.HasErrors() {
		return "", ds
	}
	at := a.Expr.Range()
	c, err := ParseConstraints(text)
	if err != nil {
		return "", diag.Errorf(diag.CodeLockInvalidFile, &at, "Invalid provider version constraints", "The recorded version constraints for provider %s are invalid: %s.", p, err)
	}
	if c.String() != text {
		return c.String(), diag.Errorf(diag.CodeLockInvalidFile, &at, "Invalid provider version constraints", "The recorded version constraints for provider %s must be written in normalized form: %q.", p, c)
	}
	return text, nil
}

func parseModule(b *hcl.Block) (*Module, diag.List) {
	content, hds := b.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "version"}, {Name: "hashes", Required: true},
	}})
	ds := diag.FromHCL(hds)
	out := &Module{Source: b.Labels[0], At: b.DefRange}
	if a := content.Attributes["version"]; a != nil {
		var more diag.List
		out.Version, more = stringOf(a)
		ds = append(ds, more...)
	}
	var more diag.List
	out.Hashes, more = hashes(content.Attributes["hashes"])
	return out, append(ds, more...)
}

func stringOf(a *hcl.Attribute) (string, diag.List) {
	var text string
	hds := gohcl.DecodeExpression(a.Expr, nil, &text)
	return text, diag.FromHCL(hds)
}

func hashes(a *hcl.Attribute) ([]Hash, diag.List) {
	if a == nil {
		return nil, nil
	}
	exprs, hds := hcl.ExprList(a.Expr)
	ds := diag.FromHCL(hds)
	if len(exprs) == 0 && !ds.HasErrors() {
		at := a.Expr.Range()
		return nil, diag.Errorf(diag.CodeLockInvalidFile, &at, "Invalid provider hash set", "The \"hashes\" argument must either be omitted or contain at least one hash value.")
	}
	out := make([]Hash, 0, len(exprs))
	for _, x := range exprs {
		var text string
		if hds := gohcl.DecodeExpression(x, nil, &text); hds.HasErrors() {
			ds = append(ds, diag.FromHCL(hds)...)
			continue
		}
		if scheme, rest, ok := strings.Cut(text, ":"); !ok || scheme == "" || rest == "" {
			at := source.Range(x.Range())
			ds = append(ds, diag.Errorf(diag.CodeLockInvalidFile, &at, "Invalid provider hash string", "Cannot interpret %q as a provider hash: it must start with a scheme keyword followed by a colon.", text)...)
			continue
		}
		out = append(out, Hash(text))
	}
	return out, ds
}
