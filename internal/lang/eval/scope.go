package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// instanceScope is a module's scope, extended by each, count and self of one instance.
type instanceScope struct {
	*Module
	inst instance
	self cty.Value
	of   *Desired // the instance to which self belongs
}

func (s *instanceScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	switch ref.RootName() {
	case "count":
		if v := s.inst.index(); v != cty.NilVal {
			return named(ref, at, map[string]cty.Value{"index": v})
		}
	case "each":
		if k := s.inst.keyValue(); k != cty.NilVal {
			return named(ref, at, map[string]cty.Value{"key": k, "value": s.inst.each})
		}
	case "self":
		if s.self != cty.NilVal {
			if s.ev.o.Validating {
				return s.self, 1, AttributeMistake(ref[1:], s.self.Type(), at)
			}
			return s.self, 1, nil
		}
	}
	if s.self != cty.NilVal && s.of != nil {
		if a, used, ok := resourceOf(ref); ok && a == s.of.Resource.code.cfg.Addr {
			v, ds := s.own(t, ref, used, at)
			return v, used, ds
		}
	}
	return s.Module.Resolve(t, ref, at)
}

// own resolves a reference to the resource's own address where self is available: in
// provisioners and connections, but not in conditions. Other instances of the resource are
// unknown, since they need not come first.
func (s *instanceScope) own(t *demand.Task, ref hcl.Traversal, used int, at *source.Range) (cty.Value, diag.List) {
	r, rest := s.of.Resource, ref[used:]
	in, ok := r.instances.Get(t, at)
	if !ok {
		return cty.DynamicVal, demand.Fail()
	}
	ds := r.formMistake(ref, used, at)
	if ds == nil && s.ev.o.Validating {
		ds = r.staticMistake(t, rest, at)
	}
	switch {
	case ds != nil || in.Unknown || in.Deferred != nil:
		return cty.DynamicVal, ds
	case in.Form == One || in.Form == Disabled:
		return s.self, nil
	}
	vals := make([]cty.Value, len(in.All))
	for i, d := range in.All {
		if vals[i] = cty.DynamicVal; d == s.of {
			vals[i] = s.self
		}
	}
	return collection(in.Form, false, vals, func(i int) string { return in.All[i].inst.key.Str }), nil
}

// named resolves ROOT.NAME in a fixed set of names.
func named(ref hcl.Traversal, at *source.Range, vals map[string]cty.Value) (cty.Value, int, diag.List) {
	name, ds := second(ref, at)
	if ds != nil {
		return cty.DynamicVal, 1, ds
	}
	if v, ok := vals[name]; ok {
		return v, 2, nil
	}
	return cty.DynamicVal, 2, diag.Errorf(diag.CodeEvalPathAttribute, at, "Invalid \""+ref.RootName()+"\" attribute", "The %q object does not have an attribute named %q. The supported attributes are %s.", ref.RootName(), name, quoted(slices.Sorted(maps.Keys(vals))))
}

func second(ref hcl.Traversal, at *source.Range) (string, diag.List) {
	if len(ref) > 1 {
		if a, ok := ref[1].(hcl.TraverseAttr); ok {
			return a.Name, nil
		}
	}
	return "", diag.Errorf(diag.CodeEvalReference, at, "Invalid reference", "The %q object cannot be accessed directly. Instead, access one of its attributes.", ref.RootName())
}

func quoted(names []string) string {
	out := ""
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			out += " and "
		case i > 0:
			out += ", "
		}
		out += `"` + n + `"`
	}
	return out
}

// Functions implements lang.Scope.
func (m *Module) Functions(t *demand.Task, provider []string) (map[string]function.Function, diag.List) {
	if len(provider) == 0 {
		return m.ev.o.Functions, nil
	}
	out := maps.Clone(m.ev.o.Functions)
	var ds diag.List
	for _, name := range provider {
		f, more := m.providerFunction(t, name)
		ds = append(ds, more...)
		if !more.HasErrors() {
			out[name] = f
		}
	}
	return out, ds
}

// Resolve implements lang.Scope.
func (m *Module) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	switch root := ref.RootName(); root {
	case "var", "local":
		name, ds := second(ref, at)
		if ds != nil {
			return cty.DynamicVal, 1, ds
		}
		v, ds := m.named(t, root, name, at)
		return v, 2, ds
	case "module":
		return m.resolveCall(t, ref, at)
	case "path":
		return named(ref, at, map[string]cty.Value{"module": cty.StringVal(m.Node.Dir), "root": cty.StringVal(m.ev.o.RootDir), "cwd": m.fact(m.ev.o.Cwd)})
	case "terraform", "tofu":
		if len(ref) > 1 {
			if a, ok := ref[1].(hcl.TraverseAttr); ok && a.Name == "env" {
				return cty.DynamicVal, 2, diag.Errorf(diag.CodeEvalPathAttribute, at, "Invalid \""+root+"\" attribute", "The %s.env attribute was removed. Use %s.workspace instead.", root, root)
			}
		}
		return named(ref, at, map[string]cty.Value{"workspace": m.fact(m.ev.o.Workspace), "applying": cty.BoolVal(m.ev.o.Applying).Mark(value.Ephemeral)})
	case "count":
		return cty.DynamicVal, len(ref), diag.Errorf(diag.CodeEvalReferenceHere, at, "Reference to \"count\" in non-counted context", "The \"count\" object can only be used in \"module\", \"resource\", and \"data\" blocks, and only when the \"count\" argument is set.")
	case "each":
		return cty.DynamicVal, len(ref), diag.Errorf(diag.CodeEvalReferenceHere, at, "Reference to \"each\" in context without for_each", "The \"each\" object can be used only in \"module\" or \"resource\" blocks, and only when the \"for_each\" argument is set.")
	case "self":
		return cty.DynamicVal, 1, diag.Errorf(diag.CodeEvalReferenceHere, at, "Invalid \"self\" reference", "The \"self\" object is not available in this context. This object can be used only in resource provisioner, connection, and postcondition blocks.")
	case "template", "lazy", "arg":
		return cty.DynamicVal, 1, diag.Errorf(diag.CodeEvalUndeclared, at, "Reserved symbol name", "The symbol name %q is reserved for use in a future version. If you are using a provider that already uses this as a resource type name please add the prefix \"resource.\" to force interpretation as a resource type name.", root)
	default:
		return m.resolveResource(t, ref, at)
	}
}

// fact returns a value from the options. During validation it is unknown if it is not set.
func (m *Module) fact(text string) cty.Value {
	if text == "" && m.ev.o.Validating {
		return cty.UnknownVal(cty.String).RefineNotNull()
	}
	return cty.StringVal(text)
}

func (m *Module) named(t *demand.Task, kind, name string, at *source.Range) (cty.Value, diag.List) {
	index, cells, label := m.code.varIndex, m.variables, "input variable"
	if kind == "local" {
		index, cells, label = m.code.localIndex, m.locals, "local value"
	}
	i, ok := index[name]
	if !ok {
		return cty.DynamicVal, diag.Errorf(diag.CodeEvalUndeclared, at, "Reference to undeclared "+label, "%s with the name %q has not been declared.%s", article(label), name, lang.Suggest(name, index))
	}
	v, ok := cells[i].Get(t, at)
	if !ok {
		return v, demand.Fail()
	}
	return v, nil
}

func article(label string) string {
	if label[0] == 'i' {
		return "An " + label
	}
	return "A " + label
}

func (m *Module) resolveCall(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	name, ds := second(ref, at)
	if ds != nil {
		return cty.DynamicVal, 1, ds
	}
	i, ok := m.code.callIndex[name]
	if !ok {
		return cty.DynamicVal, 2, diag.Errorf(diag.CodeEvalUndeclared, at, "Reference to undeclared module", "No module call named %q is declared in %s.%s", name, m.label(), lang.Suggest(name, m.code.callIndex))
	}
	return m.calls[i].resolve(t, ref, at)
}

func (m *Module) label() string {
	if m.Addr == "" {
		return "the root module"
	}
	return string(m.Addr)
}

// resourceOf returns the resource address at the beginning of a reference.
func resourceOf(ref hcl.Traversal) (r addr.Resource, used int, ok bool) {
	used = 2
	switch ref.RootName() {
	case "data":
		r.Mode, used = addr.Data, 3
	case "ephemeral":
		r.Mode, used = addr.Ephemeral, 3
	case "resource":
		used = 3
	}
	if len(ref) < used {
		return r, used, false
	}
	if used == 2 {
		r.Type = ref.RootName()
	} else if a, isAttr := ref[1].(hcl.TraverseAttr); isAttr {
		r.Type = a.Name
	}
	if a, isAttr := ref[used-1].(hcl.TraverseAttr); isAttr {
		r.Name = a.Name
	}
	return r, used, r.Type != "" && r.Name != ""
}

// ResourceOf returns the resource to which a reference leads. ok is false for references to other objects.
func ResourceOf(ref hcl.Traversal) (r addr.Resource, ok bool) {
	r, _, ok = resourceOf(ref)
	return r, ok
}

// resourceOf is the function resourceOf for a module. A reference that begins with list is about
// a list block if the module has such blocks. Otherwise it is about a resource of the type list.
func (m *Module) resourceOf(ref hcl.Traversal) (r addr.Resource, used int, ok bool) {
	if !m.code.lists || ref.RootName() != "list" || len(ref) < 3 {
		return resourceOf(ref)
	}
	r, used, ok = resourceOf(append(hcl.Traversal{hcl.TraverseRoot{Name: "data"}}, ref[1:]...))
	r.Mode = addr.List
	return r, used, ok
}

func (m *Module) resolveResource(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	a, used, ok := m.resourceOf(ref)
	if !ok {
		return cty.DynamicVal, min(used, len(ref)), diag.Errorf(diag.CodeEvalReference, at, "Invalid reference", "A reference to a resource type must be followed by at least one attribute access, specifying the resource name.")
	}
	i, found := m.code.resourceIndex[a]
	if !found {
		return cty.DynamicVal, used, m.undeclared(a, at)
	}
	r := m.resources[i]
	if r.code.ofCheck {
		if node := demand.Current(t); node != nil && !inCheck(node, r.code.cfg.Check) {
			return cty.DynamicVal, used, diag.Errorf(diag.CodeEvalUndeclared, at, "Reference to scoped resource", "The referenced data resource %q is scoped to the check block %q, so it can be used in that block only.", a, r.code.cfg.Check)
		}
	}
	v, ok := r.valueCell.Get(t, at)
	if !ok || r.misses(ref[used:], v.Type()) {
		return v, used, demand.Fail()
	}
	ds := r.formMistake(ref, used, at)
	if ds == nil && m.ev.o.Validating {
		ds = r.staticMistake(t, ref[used:], at)
	}
	if ds != nil {
		return v, used, ds
	}
	return v, used, nil
}

// formMistake returns an error for a reference to an attribute of a counted or keyed resource
// without an index. HCL's own message would not contain advice.
func (r *Resource) formMistake(ref hcl.Traversal, used int, at *source.Range) diag.List {
	if len(ref) <= used {
		return nil
	}
	a, isAttr := ref[used].(hcl.TraverseAttr)
	if !isAttr {
		return nil
	}
	in, ok := r.instances.Peek()
	if !ok || in.Form != Counted && in.Form != Keyed {
		return nil
	}
	if in.Form == Keyed && (in.Deferred != nil || !in.Unknown && in.Get(addr.Str(a.Name)) != nil) {
		return nil // keys of a keyed resource can be written like attributes
	}
	return diag.Errorf(diag.CodeEvalMissingKey, at, "Missing resource instance key", "Because %s has %q set, its attributes must be accessed on specific instances.\n\nFor example, to correlate with indices of a referring resource, use:\n    %s[%s]", r.code.cfg.Addr, formName(in.Form), r.code.cfg.Addr, indexName(in.Form))
}

// staticMistake returns errors in the steps of a reference after the name of a resource that
// are visible from its schema. They apply even if the expression does not evaluate the
// reference.
func (r *Resource) staticMistake(t *demand.Task, rest hcl.Traversal, at *source.Range) diag.List {
	in, ok := r.instances.Peek()
	if !ok || len(rest) == 0 {
		return nil
	}
	if _, isIndex := rest[0].(hcl.TraverseIndex); isIndex {
		if in.Form == One || in.Form == Disabled {
			return diag.Errorf(diag.CodeEvalUnexpectedKey, at, "Unexpected resource instance key", "Because %s does not have \"count\" or \"for_each\" set, references to it must not include an index key. Remove the bracketed index to refer to the single instance of this resource.", r.code.cfg.Addr)
		}
		rest = rest[1:]
	}
	if r.code.listing != nil {
		return nil // its value is not of the type of its schema
	}
	s, ds := r.Schema(t)
	if ds.HasErrors() {
		return nil // reported elsewhere
	}
	return AttributeMistake(rest, s.Block.ImpliedType(), at)
}

// AttributeMistake returns an error if a step of a reference names an attribute that the type
// does not have.
func AttributeMistake(rest hcl.Traversal, ty cty.Type, at *source.Range) diag.List {
	if len(rest) == 0 || ty == cty.DynamicPseudoType {
		return nil
	}
	if a, isAttr := rest[0].(hcl.TraverseAttr); isAttr && ty.IsObjectType() && !ty.HasAttribute(a.Name) {
		return diag.Errorf(diag.CodeLangUnsupportedAttribute, at, "Unsupported attribute", "This object has no argument, nested block, or exported attribute named %q.%s", a.Name, lang.Suggest(a.Name, ty.AttributeTypes()))
	}
	_, diags := rest.TraverseRel(cty.UnknownVal(ty))
	return diag.FromHCL(diags)
}

func inCheck(n *demand.Node, name string) bool {
	switch s := n.What.(type) {
	case *Check:
		return s.code.cfg.Name == name
	case *Desired:
		return s.Resource.code.cfg.Check == name
	}
	return false
}

func (m *Module) undeclared(a addr.Resource, at *source.Range) diag.List {
	other := a
	for _, mode := range []addr.Mode{addr.Managed, addr.Data, addr.Ephemeral, addr.List} {
		other.Mode = mode
		if _, ok := m.code.resourceIndex[other]; ok {
			return diag.Errorf(diag.CodeEvalUndeclared, at, "Reference to undeclared resource", "%s is not declared in %s. Did you mean %s?", describeResource(a), m.label(), other)
		}
	}
	names := map[string]bool{}
	for r := range m.code.resourceIndex {
		if r.Mode == a.Mode && r.Type == a.Type {
			names[r.Name] = true
		}
	}
	hint := lang.Suggest(a.Name, names)
	if len(names) == 0 { // perhaps the type is misspelt
		types := map[string]bool{}
		for r := range m.code.resourceIndex {
			if r.Mode == a.Mode && r.Name == a.Name {
				types[r.Type] = true
			}
		}
		if typ := lang.Nearest(a.Type, types); typ != "" {
			meant := a
			meant.Type = typ
			hint = fmt.Sprintf(" Did you mean %s?", meant)
		}
	}
	return diag.Errorf(diag.CodeEvalUndeclared, at, "Reference to undeclared resource", "%s has not been declared in %s.%s", describeResource(a), m.label(), hint)
}

func describeResource(a addr.Resource) string {
	switch a.Mode {
	case addr.Data:
		return `A data resource "` + a.Type + `" "` + a.Name + `"`
	case addr.Ephemeral:
		return `An ephemeral resource "` + a.Type + `" "` + a.Name + `"`
	case addr.List:
		return `A list block "` + a.Type + `" "` + a.Name + `"`
	default:
		return `A managed resource "` + a.Type + `" "` + a.Name + `"`
	}
}

// touch records reads of the objects in depends_on, without using their values.
func (m *Module) touch(t *demand.Task, refs []refCode) {
	for i := range refs {
		ref, at := refs[i].Traversal, &refs[i].At
		switch ref.RootName() {
		case "module":
			if name, ds := second(ref, at); ds == nil {
				if j, ok := m.code.callIndex[name]; ok {
					m.calls[j].complete.Get(t, at)
				}
			}
		case "var", "local":
			if name, ds := second(ref, at); ds == nil {
				m.named(t, ref.RootName(), name, at)
			}
		default:
			if a, _, ok := resourceOf(ref); ok {
				if r := m.Resource(a); r != nil {
					r.valueCell.Get(t, at)
				}
			}
		}
	}
}

// CheckReferences reports elements of depends_on that refer to nothing.
func (m *Module) CheckReferences() diag.List {
	var ds diag.List
	check := func(refs []refCode) {
		for i := range refs {
			ref, at := refs[i].Traversal, &refs[i].At
			switch ref.RootName() {
			case "module", "var", "local":
				index := m.code.callIndex
				if ref.RootName() == "var" {
					index = m.code.varIndex
				} else if ref.RootName() == "local" {
					index = m.code.localIndex
				}
				name, more := second(ref, at)
				if _, ok := index[name]; !ok && more == nil {
					more = diag.Errorf(diag.CodeEvalUndeclared, at, "Reference to undeclared object", "depends_on names %s.%s, which is not declared in %s.%s", ref.RootName(), name, m.label(), lang.Suggest(name, index))
				}
				ds = append(ds, more...)
			case "path", "terraform", "tofu", "count", "each", "self":
				ds = append(ds, diag.Errorf(diag.CodeConfigDependsOn, at, "Invalid depends_on reference", "References in depends_on must be to a whole object (resource, etc), not to %q.", ref.RootName())...)
			default:
				a, _, ok := resourceOf(ref)
				if !ok {
					ds = append(ds, &diag.Message{Code: diag.CodeConfigDependsOn, At: at, Summary: "Invalid reference", Detail: "A reference to a resource type must be followed by at least one attribute access, specifying the resource name."})
				} else if m.Resource(a) == nil {
					ds = append(ds, m.undeclared(a, at)...)
				}
			}
		}
	}
	for _, r := range m.code.resources {
		check(r.after)
	}
	for _, c := range m.code.calls {
		check(c.after)
	}
	for _, o := range m.code.outputs {
		check(o.after)
	}
	return ds
}
