package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// decodeProviderRef decodes the provider argument: name, name.alias or name.alias[key].
func decodeProviderRef(x hcl.Expression) (*ProviderRef, diag.List) {
	inner, diags := native(x)
	if diags.HasErrors() {
		return nil, diag.FromHCL(diags)
	}
	var warns diag.List
	if bare, quoted := unquoted(inner); quoted {
		warns = quotedReference(x.Range())
		inner = bare
	}
	var key hcl.Expression
	if idx, ok := inner.(*hclsyntax.IndexExpr); ok {
		inner, key = idx.Collection, idx.Key
	}
	t, diags := hcl.AbsTraversalForExpr(inner)
	if diags.HasErrors() {
		return nil, invalidProviderRef(x.Range(), "A reference to a provider configuration has the form NAME, NAME.ALIAS or NAME.ALIAS[KEY].")
	}
	ref, ds := providerRef(t, key)
	if ds.HasErrors() {
		return nil, ds
	}
	ref.At = x.Range()
	return &ref, warns
}

func invalidProviderRef(at source.Range, detail string) diag.List {
	return errorAt(diag.CodeConfigProviderReference, at, "Invalid provider configuration reference", "%s", detail)
}

func providerRef(t hcl.Traversal, key hcl.Expression) (ProviderRef, diag.List) {
	at := t.SourceRange()
	ref := ProviderRef{Name: t.RootName(), At: at, Key: key}
	if ds := providerName(ref.Name, at); ds != nil {
		return ref, ds
	}
	rest := t[1:]
	if len(rest) > 0 {
		step, ok := rest[0].(hcl.TraverseAttr)
		if !ok {
			return ref, invalidProviderRef(at, "The name of a provider can be followed by a dot and the alias of a configuration only.")
		}
		ref.Alias = step.Name
		rest = rest[1:]
	}
	if len(rest) > 0 && key == nil {
		if step, ok := rest[0].(hcl.TraverseIndex); ok {
			ref.Key = &hclsyntax.LiteralValueExpr{Val: step.Key, SrcRange: step.SrcRange}
			rest = rest[1:]
		}
	}
	if len(rest) > 0 || ref.Key != nil && ref.Alias == "" {
		return ref, invalidProviderRef(at, "A reference to a provider configuration has the form NAME, NAME.ALIAS or NAME.ALIAS[KEY].")
	}
	return ref, nil
}

// decodePassed decodes the providers argument of a module call.
func decodePassed(s *Setting) (out []PassedProvider, ds diag.List) {
	if s == nil {
		return nil, nil
	}
	pairs, diags := hcl.ExprMap(s.Expr)
	if diags.HasErrors() {
		return nil, s.explain(errorAt(diag.CodeConfigPassedProviders, s.Expr.Range(), "Invalid providers argument",
			"The providers argument is an object: on the left the names that the module uses, on the right the configurations of this module."))
	}
	out = make([]PassedProvider, 0, len(pairs))
	seen := map[string]source.Range{}
	for _, kv := range pairs {
		child, more := decodeProviderRef(keyExpr(kv.Key))
		ds = append(ds, more...)
		parent, more := decodeProviderRef(kv.Value)
		ds = append(ds, more...)
		if child == nil || parent == nil {
			continue
		}
		if child.Key != nil {
			ds = append(ds, invalidProviderRef(kv.Key.Range(), "The name that the module uses cannot have an instance key; put the key on the right-hand side.")...)
			continue
		}
		name := child.String()
		if first, dup := seen[name]; dup {
			ds = append(ds, errorAt(diag.CodeConfigDuplicatePassedProvider, kv.Key.Range(), "Duplicate provider address",
				"The provider configuration %s was already passed at %s.", name, first).Note(&first, "first passed here")...)
			continue
		}
		seen[name] = kv.Key.Range()
		out = append(out, PassedProvider{Child: *child, Parent: *parent})
	}
	return out, s.explain(ds)
}

// keyExpr returns the expression of an object key, which may be a bare name.
func keyExpr(x hcl.Expression) hcl.Expression {
	if k, ok := x.(*hclsyntax.ObjectConsKeyExpr); ok {
		return k.Wrapped
	}
	return x
}

// repeat decodes the three arguments for repetition, of which only one may be set.
func (c *content) repeat(enabled *Setting) (r Repeat, ds diag.List) {
	r = Repeat{Count: c.args["count"], ForEach: c.args["for_each"], Enabled: enabled}
	var set []*Setting
	for _, s := range []*Setting{r.Count, r.ForEach, r.Enabled} {
		if s != nil {
			set = append(set, s)
		}
	}
	if len(set) < 2 {
		return r, nil
	}
	names := quote(set[0].Name) + " and " + quote(set[1].Name)
	if len(set) == 3 {
		names = quote(set[0].Name) + ", " + quote(set[1].Name) + " and " + quote(set[2].Name)
	}
	// The message refers to the last one: for several in one file, the later.
	blame := set[0]
	for _, s := range set[1:] {
		if s.above(blame) {
			blame = s
		}
	}
	ds = errorAt(diag.CodeConfigInvalidCombination, blame.NameRange, "Invalid combination of "+names,
		"Only one of count, for_each and enabled can say which instances there are. Remove all but one of them; an override file cannot remove an argument, and so it has to go from the base.")
	for _, s := range set {
		if s == blame {
			continue
		}
		text := "set here"
		if s.Replaced != nil {
			text = "overridden here"
		}
		ds = ds.Note(&s.Range, "%s is %s", s.Name, text)
	}
	ds = blame.explain(ds)
	switch {
	case r.Count != nil:
		r.ForEach, r.Enabled = nil, nil
	default:
		r.Enabled = nil
	}
	return r, ds
}

// above reports whether a setting has a later position than another.
func (s *Setting) above(o *Setting) bool {
	if a, b := s.layerN(), o.layerN(); a != b {
		return a > b
	}
	return s.NameRange.Start.Byte > o.NameRange.Start.Byte
}

func (s *Setting) layerN() int {
	if s.Layer == nil || s.Layer.Kind != source.Override {
		return 0
	}
	return s.Layer.N
}

// checkRule decodes one condition with its message. kind is its name in messages.
func checkRule(parts []part, kind string) (*Rule, *content, diag.List) {
	c, ds := kinds().rule.merge(parts)
	r := &Rule{At: c.head}
	if s, more := c.required("condition"); s != nil {
		r.Condition = s.Expr
	} else {
		ds = append(ds, more...)
	}
	if s, more := c.required("error_message"); s != nil {
		r.ErrorMessage = s.Expr
	} else {
		ds = append(ds, more...)
	}
	if r.Condition == nil || r.ErrorMessage == nil {
		return nil, c, ds
	}
	if len(r.Condition.Variables()) == 0 {
		ds = append(ds, constantCondition(r.Condition.Range(), kind)...)
	}
	return r, c, ds
}

func constantCondition(at source.Range, kind string) diag.List {
	return errorAt(diag.CodeConfigConstantCondition, at, "Invalid "+kind+" expression",
		"A condition must refer to at least one object of the configuration: otherwise its result never changes.")
}

// required returns an argument that the block must have.
func (c *content) required(name string) (*Setting, diag.List) {
	if s := c.args[name]; s != nil {
		return s, nil
	}
	return nil, errorAt(diag.CodeConfigMissingArgument, c.at, "Missing required argument",
		"The argument %q is required, but no definition was found.", name)
}

// rules decodes all conditions of a type. self reports whether a reference refers to the object
// that has the conditions, which is not allowed. nil allows every reference.
func (c *content) rules(typ string, self func(hcl.Traversal) bool, label string) (out []*Rule, ds diag.List) {
	for _, parts := range c.blocks(typ) {
		r, _, more := checkRule(parts, typ)
		ds = append(ds, more...)
		if r == nil {
			continue
		}
		for _, x := range []hcl.Expression{r.Condition, r.ErrorMessage} {
			if self == nil {
				break
			}
			for _, t := range x.Variables() {
				if self(t) {
					ds = append(ds, errorAt(diag.CodeConfigSelfReference, t.SourceRange(), "Invalid reference in "+typ,
						"The %s of %s must not refer to that object by its address. In a postcondition, write self instead.", typ, label)...)
				}
			}
		}
		out = append(out, r)
	}
	return out, ds
}

// hasTraversal reports whether an expression is an address: names, dots and brackets only.
// Indexes may be expressions.
func hasTraversal(x hcl.Expression) bool {
	switch x := x.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return true
	case *hclsyntax.RelativeTraversalExpr:
		return hasTraversal(x.Source)
	case *hclsyntax.IndexExpr:
		return hasTraversal(x.Collection)
	default:
		return false
	}
}
