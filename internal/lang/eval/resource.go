package eval

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Resource is a resource block in a module instance.
type Resource struct {
	Mod       *Module
	code      *resourceCode
	instances demand.Cell[*Instances]
	valueCell demand.Cell[cty.Value]
	after     demand.Cell[struct{}]
}

// Instances are the configured instances of a resource.
type Instances struct {
	Form    Form
	Unknown bool // during validation: one instance represents all
	All     []*Desired
	byKey   map[addr.Key]*Desired

	// Deferred is the reason for which the instances are unknown; nil if they are known. All
	// contains only those that exist in any case.
	Deferred    *Deferral
	Placeholder *Desired // represents the unknown instances, with unknown values for count.index and each; nil if there are none
}

// Get returns the configured instance with a key, or nil.
func (in *Instances) Get(k addr.Key) *Desired {
	if in.byKey == nil {
		for _, d := range in.All {
			if d.inst.key == k {
				return d
			}
		}
	}
	return in.byKey[k]
}

// A Desired is one resource instance of the configuration.
type Desired struct {
	Resource *Resource
	inst     instance
	value    demand.Cell[cty.Value]
}

func newResource(m *Module, code *resourceCode) *Resource {
	r := &Resource{Mod: m, code: code}
	r.instances.Init((*resourceCount)(r), &Instances{Unknown: true}, r.expand)
	r.valueCell.Init(r, cty.DynamicVal, r.value)
	if len(code.after) > 0 || m.call != nil {
		r.after.Init((*resourceDependsOn)(r), struct{}{}, func(t *demand.Task) (struct{}, diag.List) {
			m.touch(t, code.after)
			if m.call != nil {
				m.call.gate.Get(t, nil)
			}
			return struct{}{}, nil
		})
	} else {
		r.after.Ready((*resourceDependsOn)(r), struct{}{})
	}
	return r
}

// resourceCount is the subject of a resource's instances, and resourceDependsOn that of its
// explicit dependencies.
type (
	resourceCount     Resource
	resourceDependsOn Resource
)

func (r *resourceCount) Describe() (string, *source.Range) { return (*Resource)(r).Describe() }
func (r *resourceDependsOn) Describe() (string, *source.Range) {
	return (*Resource)(r).Describe()
}

// Describe returns the address and the source range of the resource.
func (r *Resource) Describe() (string, *source.Range) { return r.Addr().String(), &r.code.cfg.At }

// Describe returns the address and the source range of the instance.
func (d *Desired) Describe() (string, *source.Range) {
	return d.Addr().String(), &d.Resource.code.cfg.At
}

const selfReferential = "Self-referential block"

// SelfReference implements demand.SelfReferencer.
func (r *Resource) SelfReference() string          { return selfReferential }
func (r *resourceCount) SelfReference() string     { return selfReferential }
func (r *resourceDependsOn) SelfReference() string { return selfReferential }
func (d *Desired) SelfReference() string           { return selfReferential }

// Addr returns the resource's address.
func (r *Resource) Addr() addr.AbsResource {
	return addr.AbsResource{Module: r.Mod.Addr, Resource: r.code.cfg.Addr}
}

// Config returns the resource block.
func (r *Resource) Config() *config.Resource { return r.code.cfg }

// Provider returns the source address of the resource's provider.
func (r *Resource) Provider() addr.Provider {
	return r.Mod.Node.Config.Source(r.code.cfg.LocalProvider())
}

// Schema returns the schema of the resource's type.
func (r *Resource) Schema(t *demand.Task) (*schema.Resource, diag.List) {
	p := r.Provider()
	ps, ds := r.Mod.ev.o.Phase.Schema(t, p)
	if ds.HasErrors() {
		return nil, ds.Under(&r.code.cfg.At)
	}
	s := ps.Resource(r.code.cfg.Addr.Mode, r.code.cfg.Addr.Type)
	if s == nil {
		if err := ps.Invalid(r.code.cfg.Addr.Mode, r.code.cfg.Addr.Type); err != nil {
			return nil, diag.Errorf(diag.CodeEvalProviderSchema, &r.code.cfg.At, "Invalid provider schema", "The schema that the provider %s gives for %q cannot be used: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", p.Display(), r.code.cfg.Addr.Type, err)
		}
		kind := map[addr.Mode]string{addr.Managed: "resource type", addr.Data: "data source", addr.Ephemeral: "ephemeral resource", addr.List: "list resource"}[r.code.cfg.Addr.Mode]
		types := map[string]bool{}
		for _, name := range ps.Types[r.code.cfg.Addr.Mode] {
			types[name] = true
		}
		at := r.code.cfg.TypeAt()
		ds := diag.Errorf(diag.CodePlanResourceType, &at, "Invalid "+kind, "The provider %s does not support %s %q.%s", p.Display(), kind, r.code.cfg.Addr.Type, lang.Suggest(r.code.cfg.Addr.Type, types))
		return nil, ds
	}
	return s, nil
}

// Instances computes the configured instances. ok is false if that failed.
func (r *Resource) Instances(t *demand.Task) (*Instances, bool) { return r.instances.Get(t, nil) }

// Value computes the value of a reference to the resource.
func (r *Resource) Value(t *demand.Task) (cty.Value, bool) { return r.valueCell.Get(t, nil) }

// ValueNode returns the node of the whole resource.
func (r *Resource) ValueNode() *demand.Node { return &r.valueCell.Node }

// DependsOn computes the explicit dependencies of the resource and returns their node.
func (r *Resource) DependsOn(t *demand.Task) *demand.Node {
	r.after.Get(t, nil)
	return &r.after.Node
}

// HasDependsOn reports whether the resource may have explicit dependencies.
func (r *Resource) HasDependsOn() bool { return len(r.code.after) > 0 || r.Mod.call != nil }

func (r *Resource) expand(t *demand.Task) (*Instances, diag.List) {
	exp, ds := r.Mod.instancesOf(t, r.code.repeat, r.code.cfg.Addr.String())
	out := &Instances{Form: exp.form, Unknown: exp.unknown, All: make([]*Desired, len(exp.all)), Deferred: exp.deferred}
	if len(exp.all) == 0 && exp.deferred == nil {
		r.touchBody(t)
	}
	slab := make([]Desired, len(exp.all))
	if len(exp.all) > 4 {
		out.byKey = make(map[addr.Key]*Desired, len(exp.all))
	}
	for i, inst := range exp.all {
		d := &slab[i]
		d.Resource, d.inst = r, inst
		if r.Mod.represents != nil { // it is not planned
			d.value.Ready(d, cty.DynamicVal)
		} else {
			d.value.Init(d, cty.DynamicVal, func(t *demand.Task) (cty.Value, diag.List) { return d.compute(t) })
		}
		out.All[i] = d
		if out.byKey != nil {
			out.byKey[inst.key] = d
		}
	}
	if exp.placeholder != nil {
		d := &Desired{Resource: r, inst: *exp.placeholder}
		d.value.Ready(d, cty.DynamicVal)
		out.Placeholder = d
	}
	return out, ds
}

// Existing returns a stand-in for an instance that exists in the state, for a resource whose
// instances are unknown. Its value and each.value are unknown.
func (r *Resource) Existing(k addr.Key) *Desired {
	d := &Desired{Resource: r, inst: instance{key: k, each: cty.DynamicVal}}
	d.value.Ready(d, cty.DynamicVal)
	return d
}

func (d *Desired) compute(t *demand.Task) (cty.Value, diag.List) {
	d.Resource.instances.Get(t, nil) // an instance depends on the repetition of its block and its module
	if call := d.Resource.Mod.call; call != nil {
		call.children.Get(t, nil)
	}
	if d.Resource.HasDependsOn() {
		d.Resource.after.Get(t, nil)
	}
	for i := range d.Resource.code.provision { // errors are reported where the references are evaluated
		ref := &d.Resource.code.provision[i]
		_, _, _ = d.Resource.Mod.Resolve(t, ref.Traversal, &ref.At)
	}
	v, ds := d.Resource.Mod.ev.o.Phase.Value(t, d)
	if ds.HasErrors() {
		return v, ds
	}
	return d.markDeprecated(t, v), ds
}

func (r *Resource) value(t *demand.Task) (cty.Value, diag.List) {
	in, ok := r.instances.Get(t, nil)
	if !ok {
		return cty.DynamicVal, demand.Fail()
	}
	if o := &r.Mod.ev.o; o.Exists != nil || o.Kept != nil {
		return r.valueOfThose(t, in)
	}
	if in.Form == Disabled {
		return r.null(t), nil
	}
	vals := make([]cty.Value, len(in.All))
	failed := false
	for i, d := range in.All {
		v, ok := d.value.Get(t, nil)
		failed = failed || !ok
		vals[i] = v
	}
	var ds diag.List
	if failed {
		ds = demand.Fail()
	}
	return collection(in.Form, in.Unknown, vals, func(i int) string { return in.All[i].inst.key.Str }), ds
}

// null returns the value of a reference to a resource that is not enabled.
func (r *Resource) null(t *demand.Task) cty.Value {
	if s, ds := r.Schema(t); !ds.HasErrors() {
		return cty.NullVal(s.Block.ImpliedType())
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// NotWanted is an instance that is not in the configuration, but included in references to the
// whole resource.
type NotWanted struct {
	Key   addr.Key
	Value cty.Value
	OK    bool // false if computing the value failed
}

// valueOfThose returns the value of the existing instances. As in OpenTofu 1.12.6, a counted
// resource has elements up to the last instance, with unknown values in gaps.
func (r *Resource) valueOfThose(t *demand.Task, in *Instances) (cty.Value, diag.List) {
	var there []NotWanted
	for _, d := range in.All {
		if here := r.Mod.ev.o.Exists; here == nil || here(t, d) {
			v, ok := d.value.Get(t, nil)
			there = append(there, NotWanted{d.inst.key, v, ok})
		}
	}
	form := in.Form
	if kept := r.Mod.ev.o.Kept; kept != nil {
		for _, k := range kept(t, r, in) {
			if form.takes(k.Key) {
				there = append(there, k)
			}
		}
		slices.SortFunc(there, func(a, b NotWanted) int { return a.Key.Compare(b.Key) })
	}
	if form == Disabled || form == One && r.Config().Repeat.Enabled != nil && r.Mod.ev.o.Kept != nil && !in.Unknown {
		if len(there) == 0 {
			return r.null(t), nil
		}
		form = One
	}
	failed := len(there) == 0 && form == One && len(in.All) > 0
	var vals []cty.Value
	for _, k := range there {
		for form == Counted && len(vals) < k.Key.Int {
			vals = append(vals, cty.DynamicVal)
		}
		failed = failed || !k.OK
		vals = append(vals, k.Value)
	}
	var ds diag.List
	if failed {
		ds = demand.Fail()
	}
	return collection(form, in.Unknown, vals, func(i int) string { return there[i].Key.Str }), ds
}

// misses reports whether a reference names a configured instance that is missing in the value
// of the whole resource, because it does not exist.
func (r *Resource) misses(rest hcl.Traversal, whole cty.Type) bool {
	in, ok := r.instances.Peek()
	if r.Mod.ev.o.Exists == nil || len(rest) == 0 || !ok {
		return false
	}
	var k addr.Key
	switch step := rest[0].(type) {
	case hcl.TraverseIndex:
		var err error
		if k, err = addr.KeyFromValue(step.Key); err != nil {
			return false
		}
	case hcl.TraverseAttr:
		k = addr.Str(step.Name)
	}
	switch {
	case in.Get(k) == nil:
		return false
	case in.Form == Keyed:
		return whole.IsObjectType() && !whole.HasAttribute(k.Str)
	case in.Form == Counted:
		return whole.IsTupleType() && k.Int >= whole.Length()
	default:
		return false
	}
}

// Addr returns the instance's address. That of a placeholder has no key.
func (d *Desired) Addr() addr.Instance { return d.Resource.Addr().Instance(d.inst.key) }

// Key returns the instance's key.
func (d *Desired) Key() addr.Key { return d.inst.key }

// Value computes the instance. ok is false if that failed.
func (d *Desired) Value(t *demand.Task, at *source.Range) (cty.Value, bool) {
	return d.value.Get(t, at)
}

// Node returns the instance's node, to inspect its reads.
func (d *Desired) Node() *demand.Node { return &d.value.Node }

// Repeats reports whether a node determines the instances of the block of d, or those of a module
// that contains it.
func (d *Desired) Repeats(n *demand.Node) bool {
	if n == &d.Resource.instances.Node {
		return true
	}
	for m := d.Resource.Mod; m.call != nil; m = m.parent {
		if n == &m.call.children.Node {
			return true
		}
	}
	return false
}

// Scope returns the scope of the instance's configuration. self is its value for
// postconditions, provisioners and connections, or cty.NilVal.
func (d *Desired) Scope(self cty.Value) lang.Scope {
	if d.Resource.code.repeat.none() && self == cty.NilVal {
		return d.Resource.Mod
	}
	return &instanceScope{Module: d.Resource.Mod, inst: d.inst, self: self, of: d}
}

// Config evaluates the instance's own arguments to a value of the schema's type, including
// marks.
func (d *Desired) Config(t *demand.Task, s *schema.Resource) (cty.Value, diag.List) {
	vals, ds := d.ConfigValues(t, s)
	if vals == nil {
		return cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	return cty.ObjectVal(vals), ds
}

// ConfigValues is Config with the attributes of the value. It returns nil if the block does not fit the schema.
func (d *Desired) ConfigValues(t *demand.Task, s *schema.Resource) (map[string]cty.Value, diag.List) {
	b, ds := d.Resource.Body(s)
	if ds.HasErrors() || d.Resource.Mod.ev.bodyFailed(d.Resource.code, s.Block) {
		return nil, append(ds, demand.Fail()...)
	}
	vals, more := b.Values(t, d.Scope(cty.NilVal))
	if vals == nil { // no attributes
		vals = map[string]cty.Value{}
	}
	return vals, append(ds, more...)
}

// Body returns the resource's body decoded with its schema. Only the first call returns
// messages.
func (r *Resource) Body(s *schema.Resource) (*lang.Body, diag.List) {
	return r.Mod.ev.compileBody(r.code, r.code.cfg.Body, s.Block)
}

// Preconditions evaluates the preconditions of the instance.
func (d *Desired) Preconditions(t *demand.Task) ([]Outcome, diag.List) {
	return d.rules(t, d.Resource.code.pre, cty.NilVal, "Resource precondition")
}

// Postconditions evaluates the postconditions of the instance with self.
func (d *Desired) Postconditions(t *demand.Task, self cty.Value) ([]Outcome, diag.List) {
	return d.rules(t, d.Resource.code.post, self, "Resource postcondition")
}

// Conditions records the references in the block of an instance with conditions as dependencies
// of the instance. It returns the node of these reads; nil if there are no conditions.
func (d *Desired) Conditions(t *demand.Task) *demand.Node {
	code := d.Resource.code
	if !d.Resource.HasRules() {
		return nil
	}
	s := d.Scope(cty.DynamicVal)
	cell := demand.NewCell(demand.Subject((*resourceDependsOn)(d.Resource)), struct{}{}, func(t *demand.Task) (struct{}, diag.List) {
		for _, r := range slices.Concat(code.pre, code.post) {
			for _, x := range []*lang.Expr{r.cond, r.msg} {
				if x == nil {
					continue
				}
				refs := x.Refs()
				for i := range refs { // errors are reported where the references are evaluated
					_, _, _ = s.Resolve(t, refs[i].Traversal, &refs[i].At)
				}
			}
		}
		d.Resource.instances.Get(t, nil)
		d.Resource.touchBody(t)
		return struct{}{}, nil
	})
	cell.Get(t, nil)
	return &cell.Node
}

// touchBody records reads of the references in the arguments, for a resource without instances
// that would read them. A reader of the resource depends on them anyway.
func (r *Resource) touchBody(t *demand.Task) {
	s := r.AnyScope()
	refs := r.code.bodyRefs()
	for i := range refs {
		_, _, _ = s.Resolve(t, refs[i].Traversal, &refs[i].At)
	}
}

// CountNode returns the node that determines the instances.
func (r *Resource) CountNode() *demand.Node { return &r.instances.Node }

// HasRules reports whether the block has preconditions or postconditions.
func (r *Resource) HasRules() bool { return len(r.code.pre)+len(r.code.post) > 0 }

func (d *Desired) rules(t *demand.Task, rules []*ruleCode, self cty.Value, kind string) ([]Outcome, diag.List) {
	if len(rules) == 0 {
		return nil, nil
	}
	return d.Resource.Mod.ev.Rules(t, d.Scope(self), kind, rules, d.Addr().String())
}

// CodePreventDestroy is the code of the error that the value of prevent_destroy is invalid.
const CodePreventDestroy = diag.CodeEvalPreventDestroy

// PreventDestroy evaluates lifecycle.prevent_destroy. It returns false if it is not set.
func (r *Resource) PreventDestroy(t *demand.Task) (bool, *source.Range, diag.List) {
	x := r.code.prevent
	if x == nil {
		return false, nil, nil
	}
	at := x.Range()
	v, ds := lang.Eval(t, r.Mod, x, cty.Bool)
	if ds.HasErrors() {
		return false, &at, ds
	}
	if v.IsMarked() || !v.IsKnown() || v.IsNull() {
		unclear := diag.Errorf(CodePreventDestroy, &at, "Invalid prevent_destroy argument", "The value of prevent_destroy must be true or false, known while planning and neither sensitive nor ephemeral.")
		return false, &at, append(ds, unclear...)
	}
	return v.True(), &at, ds
}

// Triggers returns the expressions of lifecycle.replace_triggered_by.
func (d *Desired) Triggers() []*lang.Expr { return d.Resource.code.triggers }

// InstanceValues returns the values of count.index and each.key in an instance.
func (d *Desired) InstanceValues() (count, eachKey cty.Value) {
	return d.inst.index(), d.inst.keyValue()
}

func (i instance) index() cty.Value {
	if i.count != cty.NilVal {
		return i.count
	}
	if i.key.Kind == addr.IntKey {
		return i.key.Value()
	}
	return cty.NilVal
}

func (i instance) keyValue() cty.Value {
	if i.eachKey != cty.NilVal {
		return i.eachKey
	}
	if i.key.Kind == addr.StringKey {
		return i.key.Value()
	}
	return cty.NilVal
}

func (d *Desired) String() string { return fmt.Sprint(d.Addr()) }

// Nodes returns the nodes that determine the resource: its repetition, its explicit
// dependencies, and its instances if they are known.
func (r *Resource) Nodes() []*demand.Node {
	out := []*demand.Node{&r.instances.Node, &r.after.Node}
	if in, ok := r.instances.Peek(); ok {
		for _, d := range in.All {
			out = append(out, &d.value.Node)
		}
	}
	return out
}
