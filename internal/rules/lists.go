package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// # Functions of rules
//
// Rules can call all functions of the language, and functions that list the subjects of the whole
// estate. Each list is computed once per check, from the subjects that Checker.Add received.

// listFunctions are the functions that list subjects, with the kind of the subjects.
var listFunctions = map[string]subject.Kind{
	"resources": subject.Resource, "data_sources": subject.Data, "modules": subject.Module, "providers": subject.Provider,
	"units": subject.Unit, "edges": subject.Edge, "changes": subject.Resource, "core::getresources": subject.Resource,
}

// A list is a call of a function that lists subjects.
type list struct {
	name    string // of the function
	kind    subject.Kind
	pattern Pattern
}

// findLists returns the lists that a rule reads.
func (r *Rule) findLists() (out []list) {
	seen := map[*lang.Expr]bool{}
	for _, x := range r.exprs() {
		r.walk(x, seen, func(x *lang.Expr) {
			for _, c := range callsOf(x) {
				if k := listFunctions[c.name]; k != "" {
					out = append(out, list{c.name, k, NewPattern(c.arg)})
				}
			}
		})
	}
	return out
}

// fields are the fields of listed subjects that expressions read, by the name of the function. nil
// means all fields. A list of an estate with many resources is large, and most rules read few fields.
type fields map[string]map[string]bool

// listFields returns the fields that the expressions of a set read.
func (s *Set) listFields() fields {
	out := fields{}
	s.each(out.add)
	return out
}

// add adds the fields that an expression reads. A for expression over a list reads those that it names,
// if it uses its variable only with a field. Everything else reads all fields.
func (f fields) add(x *lang.Expr) {
	native, ok := x.Expression.(hclsyntax.Node)
	if !ok {
		return
	}
	loops := map[*hclsyntax.FunctionCallExpr]*hclsyntax.ForExpr{}
	_ = hclsyntax.VisitAll(native, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			if c, ok := n.CollExpr.(*hclsyntax.FunctionCallExpr); ok {
				loops[c] = n
			}
		case *hclsyntax.FunctionCallExpr:
			if listFunctions[n.Name] == "" {
				break
			}
			if n.Name == "core::getresources" { // its elements are the attributes of resources
				if known, seen := f["resources"]; !seen {
					f["resources"] = map[string]bool{"attrs": true}
				} else if known != nil {
					known["attrs"] = true
				}
				break
			}
			if known, seen := f[n.Name]; !seen {
				f[n.Name] = map[string]bool{}
			} else if known == nil {
				break
			}
			if loop := loops[n]; loop == nil || !f.loop(n.Name, loop) {
				f[n.Name] = nil
			}
		}
		return nil
	})
}

// loop adds the fields that a for expression reads. It returns false if it may read all.
func (f fields) loop(name string, x *hclsyntax.ForExpr) bool {
	for _, part := range []hclsyntax.Expression{x.KeyExpr, x.ValExpr, x.CondExpr} {
		if part == nil {
			continue
		}
		for _, ref := range part.Variables() {
			if ref.RootName() != x.ValVar {
				continue
			}
			if len(ref) < 2 {
				return false
			}
			step, ok := ref[1].(hcl.TraverseAttr)
			if !ok {
				return false
			}
			f[name][step.Name] = true
		}
	}
	return true
}

// attributes are the names of attributes that expressions read from "attrs" and "config" of listed subjects, by
// these words. An object of a list that lacks one gets it, so that it is unknown or null and no error,
// as in a rule about the object.
type attributes map[string]map[string]bool

// listAttributes returns the attributes that the expressions of a set may read from lists.
func (s *Set) listAttributes() attributes {
	out := attributes{"attrs": {}, "config": {}}
	s.each(out.add)
	return out
}

// each calls do with each expression of the set.
func (s *Set) each(do func(*lang.Expr)) {
	for _, r := range s.Rules {
		for _, x := range r.exprs() {
			do(x)
		}
		for _, x := range r.locals {
			do(x)
		}
	}
	for _, f := range s.files {
		for _, x := range f.locals {
			do(x)
		}
	}
}

func (a attributes) add(x *lang.Expr) {
	native, ok := x.Expression.(hclsyntax.Node)
	if !ok {
		return
	}
	_ = hclsyntax.VisitAll(native, func(n hclsyntax.Node) hcl.Diagnostics {
		var path hcl.Traversal
		switch n := n.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			path = n.Traversal[1:]
		case *hclsyntax.RelativeTraversalExpr:
			path = n.Traversal
		}
		for i := 0; i+1 < len(path); i++ {
			of, ok := path[i].(hcl.TraverseAttr)
			if names := a[of.Name]; ok && names != nil {
				switch step := path[i+1].(type) {
				case hcl.TraverseAttr:
					names[step.Name] = true
				case hcl.TraverseIndex:
					if value.IsText(step.Key) {
						names[step.Key.AsString()] = true
					}
				}
			}
		}
		return nil
	})
}

// with returns an object with the attributes that it lacks and expressions read. missing is their value.
func (a attributes) with(word string, v, missing cty.Value) cty.Value {
	bare, marks := v.Unmark()
	if bare.IsNull() || !bare.IsKnown() || !bare.Type().IsObjectType() {
		return v
	}
	var all map[string]cty.Value
	for name := range a[word] {
		if bare.Type().HasAttribute(name) {
			continue
		}
		if all == nil {
			if all = bare.AsValueMap(); all == nil {
				all = map[string]cty.Value{}
			}
		}
		all[name] = missing
	}
	if all == nil {
		return v
	}
	return cty.ObjectVal(all).WithMarks(marks)
}

// needs are the parts of the subjects of one kind that the check of the whole estate reads.
type needs struct {
	all, attrs, config bool
	meta               map[string]bool
}

// keptNeeds returns the needs of each kind, by the rules about the whole estate and the lists that they read.
func (s *Set) keptNeeds(lists fields) map[subject.Kind]*needs {
	out := map[subject.Kind]*needs{}
	of := func(k subject.Kind) *needs {
		if out[k] == nil {
			out[k] = &needs{meta: map[string]bool{"operation": true}}
		}
		return out[k]
	}
	for _, r := range s.Rules {
		if !r.wide {
			continue
		}
		n, seen := of(r.Kind), map[*lang.Expr]bool{}
		for _, x := range r.exprs() {
			r.walk(x, seen, func(x *lang.Expr) {
				for _, ref := range x.Refs() {
					n.add(ref.Traversal.RootName(), ref.Traversal[1:])
				}
			})
		}
	}
	for name, read := range lists {
		for _, k := range kindsOf(name) {
			n := of(k)
			n.all = n.all || read == nil
			for field := range read {
				n.attrs, n.config = n.attrs || field == "attrs", n.config || field == "config"
				n.meta[field] = true
			}
		}
	}
	return out
}

// kindsOf returns the kinds of the subjects that a function lists.
func kindsOf(name string) []subject.Kind {
	if name == "changes" {
		return []subject.Kind{subject.Resource, subject.Data}
	}
	return []subject.Kind{listFunctions[name]}
}

// add records the fields that a reference needs. root is its first name, and path the rest.
func (n *needs) add(root string, path hcl.Traversal) {
	switch root {
	case "attrs":
		n.attrs = true
	case "config":
		n.config = true
	case "meta":
		if len(path) > 0 {
			if a, ok := path[0].(hcl.TraverseAttr); ok {
				n.meta[a.Name] = true
				return
			}
		}
		n.all = true
	}
}

// of returns a subject with the parts that are needed. An estate has many subjects, and their values are large.
func (n *needs) of(s *subject.Subject) *subject.Subject {
	if n == nil || n.all {
		return s
	}
	out := *s
	if !n.attrs {
		out.Attrs = cty.EmptyObjectVal
	}
	if !n.config {
		out.Config = cty.EmptyObjectVal
	}
	out.Meta = make(map[string]cty.Value, len(n.meta))
	for name := range n.meta {
		if v, ok := s.Meta[name]; ok {
			out.Meta[name] = v
		}
	}
	return &out
}

// functions returns the functions of rules: those in table, those that list subjects, and
// semverconstraint.
func (c *Checker) functions(table map[string]function.Function) map[string]function.Function {
	out := maps.Clone(table)
	for name, kind := range listFunctions {
		out[name] = c.listFunction(name, kind)
	}
	out["semverconstraint"] = semverConstraint()
	out["core::semverconstraint"] = out["semverconstraint"]
	return out
}

func (c *Checker) listFunction(name string, kind subject.Kind) function.Function {
	spec := &function.Spec{
		Params: []function.Parameter{{Name: "pattern", Type: cty.String}},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return c.list(name, kind, args[0].AsString()), nil
		},
	}
	if name == "core::getresources" {
		spec.Params = append(spec.Params, function.Parameter{Name: "filter", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true, AllowMarked: true})
		spec.Impl = func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return c.matching(args[0].AsString(), args[1]), nil
		}
	}
	return function.New(spec)
}

// list returns a list of subjects as a tuple of objects. It is unknown if it may lack subjects.
func (c *Checker) list(name string, kind subject.Kind, pattern string) cty.Value {
	key := name + " " + string(kind) + " " + pattern
	c.listed.Lock()
	defer c.listed.Unlock()
	if v, ok := c.made[key]; ok {
		return v
	}
	v := c.makeList(name, kind, NewPattern(pattern))
	c.made[key] = v
	return v
}

func (c *Checker) makeList(name string, kind subject.Kind, p Pattern) cty.Value {
	if name == "changes" && !c.o.Planned {
		return cty.DynamicVal
	}
	if c.partial && name != "changes" && kind != subject.Unit && kind != subject.Edge {
		return cty.DynamicVal
	}
	all := []cty.Value{}
	read, known := c.fields[name]
	everything := !known || read == nil
	for _, k := range c.kept {
		s := k.subject
		if s.Kind != kind && (name != "changes" || s.Kind != subject.Data) || !p.Match(s.Name) {
			continue
		}
		switch {
		case name == "changes": // what is deferred is not planned
			if s.Unplanned() {
				continue
			}
		case s.Gone:
			continue
		case s.Some || s.Uncertain != "":
			return cty.DynamicVal
		}
		item := map[string]cty.Value{}
		for field, v := range s.Meta {
			if everything || read[field] {
				item[field] = v
			}
		}
		if everything || read["unit"] {
			item["unit"] = cty.StringVal(k.unit.Name)
		}
		if everything || read["attrs"] {
			switch {
			case s.Nulls:
				item["attrs"] = c.attributes.with("attrs", s.Attrs, cty.NullVal(cty.DynamicPseudoType))
			case s.Lacks != "":
				item["attrs"] = c.attributes.with("attrs", s.Attrs, cty.DynamicVal)
			default:
				item["attrs"] = s.Attrs
			}
		}
		if everything || read["config"] {
			item["config"] = c.attributes.with("config", s.Config, cty.NullVal(cty.DynamicPseudoType))
		}
		if everything || read["prior_attrs"] {
			if item["prior_attrs"] = cty.DynamicVal; c.o.Planned {
				item["prior_attrs"] = prior(s)
			}
		}
		all = append(all, cty.ObjectVal(item))
	}
	return cty.TupleVal(all)
}

// matching returns the attributes of the resources that have the values of a filter.
func (c *Checker) matching(typ string, filter cty.Value) cty.Value {
	all := c.list("resources", subject.Resource, typ)
	filter, _ = filter.UnmarkDeep()
	if !all.IsKnown() || !filter.IsWhollyKnown() {
		return cty.DynamicVal
	}
	out := []cty.Value{}
	for it := all.ElementIterator(); it.Next(); {
		_, el := it.Element()
		attrs := el.GetAttr("attrs")
		switch equal := matches(attrs, filter); {
		case !equal.IsKnown():
			return cty.DynamicVal
		case equal.True():
			out = append(out, attrs)
		}
	}
	return cty.TupleVal(out)
}

// matches reports whether an object has the values of a filter. The result may be unknown.
func matches(attrs, filter cty.Value) cty.Value {
	if filter.IsNull() || !filter.CanIterateElements() {
		return cty.True
	}
	attrs, _ = attrs.UnmarkDeep()
	result := cty.True
	for it := filter.ElementIterator(); it.Next(); {
		k, want := it.Element()
		if k.Type() != cty.String || !attrs.Type().IsObjectType() || !attrs.Type().HasAttribute(k.AsString()) {
			return cty.UnknownVal(cty.Bool)
		}
		equal := attrs.GetAttr(k.AsString()).Equals(want)
		if equal.IsKnown() && equal.False() {
			return cty.False
		}
		result = result.And(equal)
	}
	return result
}

// prior returns the value of a subject before a planned operation.
func prior(s *subject.Subject) cty.Value {
	if s.Prior == cty.NilVal {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return s.Prior
}

// semverConstraint returns the function semverconstraint, which reports whether a version satisfies
// a constraint.
func semverConstraint() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "version", Type: cty.String}, {Name: "constraint", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := version.NewVersion(args[0].AsString())
			if err != nil {
				return cty.UnknownVal(cty.Bool), function.NewArgErrorf(0, "not a version")
			}
			all, err := version.NewConstraint(args[1].AsString())
			if err != nil {
				return cty.UnknownVal(cty.Bool), function.NewArgErrorf(1, "not a version constraint")
			}
			return cty.BoolVal(all.Check(v)), nil
		},
	})
}

// sortKept sorts the subjects of lists by unit and address.
func sortKept(all []kept) {
	slices.SortStableFunc(all, func(a, b kept) int {
		return cmp.Or(strings.Compare(a.unit.Name, b.unit.Name), strings.Compare(a.subject.Address, b.subject.Address))
	})
}
