package eval

import (
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Call is a module call in a module instance.
type Call struct {
	mod      *Module
	code     *callCode
	Node     *module.Node // the called module; nil if it could not be loaded
	children demand.Cell[*Children]
	whole    demand.Cell[cty.Value]
	complete demand.Cell[struct{}] // depends on everything in the called module
	gate     demand.Cell[struct{}] // everything in the called module depends on it

	unmadeMu sync.Mutex
	unmade   map[string]*demand.Cell[struct{}] // by name: outputs that were read while there is no instance
}

// Children are the instances of a called module.
type Children struct {
	Form    Form
	Unknown bool // during validation: one instance represents all
	All     []*Module
	byKey   map[addr.Key]*Module

	Deferred *Deferral // the reason for which the instances are unknown; nil if they are known
	// Placeholder represents the unknown instances, with unknown values for count.index and
	// each; nil if there are none. Its address has no key. It is not part of All, so that
	// references and checks do not reach it.
	Placeholder *Module
}

// Get returns the instance with a key, or nil.
func (c *Children) Get(k addr.Key) *Module { return c.byKey[k] }

func newCall(m *Module, code *callCode) *Call {
	node := m.Node.Calls[code.cfg.Name]
	m.ev.readInputs(code, node)
	c := &Call{mod: m, code: code, Node: node}
	s := &item{m, "module.", code.cfg.Name, &code.cfg.At}
	c.children.Init(s, &Children{}, c.expand)
	c.whole.Init(s, cty.DynamicVal, c.value)
	c.complete.Init((*completion)(c), struct{}{}, c.finish)
	c.gate.Init(s, struct{}{}, func(t *demand.Task) (struct{}, diag.List) {
		m.touch(t, code.after)
		if m.call != nil {
			m.call.gate.Get(t, nil)
		}
		return struct{}{}, nil
	})
	return c
}

func (ev *Evaluator) readInputs(code *callCode, node *module.Node) {
	ev.compiled.mu.Lock()
	defer ev.compiled.mu.Unlock()
	if code.inputs == nil && node != nil {
		code.read(node.Config)
	}
}

// Name returns the name of the call.
func (c *Call) Name() string { return c.code.cfg.Name }

// Addr returns the address of the call.
func (c *Call) Addr() string { return c.mod.name("module." + c.code.cfg.Name) }

// Config returns the module block.
func (c *Call) Config() *config.Call { return c.code.cfg }

// Children computes the instances. ok is false if that failed.
func (c *Call) Children(t *demand.Task) (*Children, bool) { return c.children.Get(t, nil) }

// Known returns the instances that were computed already.
func (c *Call) Known() []*Module {
	ch, ok := c.children.Peek()
	if !ok {
		return nil
	}
	return ch.All
}

// Empty reports whether the call is already known to have no instances.
func (c *Call) Empty() bool {
	ch, ok := c.children.Peek()
	return ok && len(ch.All) == 0 && ch.Deferred == nil
}

func (c *Call) input(name string) *lang.Expr { return c.code.inputs[name] }

// completion is the subject of the cell that depends on everything in a called module.
type completion Call

func (c *completion) Describe() (string, *source.Range) { return (*Call)(c).Addr(), &c.code.cfg.At }

// Completed returns the call if a node represents a whole called module; otherwise nil.
func Completed(n *demand.Node) *Call {
	c, _ := n.What.(*completion)
	return (*Call)(c)
}

// outputWithoutInstances is the subject of an output of a called module without instances.
type outputWithoutInstances struct {
	call *Call
	name string
}

func (o *outputWithoutInstances) Describe() (string, *source.Range) {
	return o.call.Addr() + "." + o.name, &o.call.code.cfg.At
}

// OutputWithoutInstances returns the called module and the output name if a node represents an
// output of a module without instances; otherwise nil and "".
func OutputWithoutInstances(n *demand.Node) (*module.Node, string) {
	if o, ok := n.What.(*outputWithoutInstances); ok {
		return o.call.Node, o.name
	}
	return nil, ""
}

// readWithoutInstances records that an output was read although the module has no instances.
func (c *Call) readWithoutInstances(t *demand.Task, name string, at *source.Range) {
	c.unmadeMu.Lock()
	cell := c.unmade[name]
	if cell == nil {
		cell = &demand.Cell[struct{}]{}
		cell.Init(&outputWithoutInstances{c, name}, struct{}{}, func(t *demand.Task) (struct{}, diag.List) { return struct{}{}, nil })
		if c.unmade == nil {
			c.unmade = map[string]*demand.Cell[struct{}]{}
		}
		c.unmade[name] = cell
	}
	c.unmadeMu.Unlock()
	cell.Get(t, at)
}

// scope returns the scope in which the inputs of one instance are evaluated.
func (c *Call) scope(inst instance) lang.Scope {
	if c.code.repeat.none() {
		return c.mod
	}
	return &instanceScope{Module: c.mod, inst: inst}
}

func (c *Call) expand(t *demand.Task) (*Children, diag.List) {
	if c.Node == nil {
		return &Children{Unknown: true}, demand.Fail()
	}
	ds := c.tellInputs()
	if c.mod.call != nil {
		c.mod.call.children.Get(t, nil)
	}
	exp, more := c.mod.instancesOf(t, c.code.repeat, "module."+c.code.cfg.Name)
	ds = append(ds, more...)
	out := &Children{Form: exp.form, Unknown: exp.unknown, byKey: make(map[addr.Key]*Module, len(exp.all)), Deferred: exp.deferred}
	if len(exp.all) == 0 && exp.deferred == nil && !c.mod.ev.o.Narrow {
		c.touchInputs(t)
	}
	for _, inst := range exp.all {
		child := c.mod.ev.newModule(c.mod, c, c.Node, c.mod.Addr.Child(c.code.cfg.Name, inst.key), inst)
		out.All = append(out.All, child)
		out.byKey[inst.key] = child
	}
	if exp.placeholder != nil {
		out.Placeholder = c.mod.ev.newModule(c.mod, c, c.Node, c.mod.Addr.Child(c.code.cfg.Name, addr.Key{}), *exp.placeholder)
		out.Placeholder.represents = exp.deferred
	}
	return out, ds
}

// touchInputs records reads of the references in the arguments, for a call without instances
// that would read them.
func (c *Call) touchInputs(t *demand.Task) {
	s := c.AnyScope()
	for _, name := range slices.Sorted(maps.Keys(c.code.inputs)) {
		refs := c.code.inputs[name].Refs()
		for i := range refs {
			_, _, _ = s.Resolve(t, refs[i].Traversal, &refs[i].At)
		}
	}
}

// tellInputs returns the messages about the call's arguments once, to the first caller.
func (c *Call) tellInputs() diag.List {
	if len(c.code.ds) == 0 {
		return nil
	}
	if _, again := c.mod.ev.reported.LoadOrStore(c.code, true); again {
		return nil
	}
	return slices.Clone(c.code.ds)
}

// value returns the value of a reference to the whole module. It waits for everything in the
// module, unlike a reference to a single output.
func (c *Call) value(t *demand.Task) (cty.Value, diag.List) {
	ch, ok := c.children.Get(t, nil)
	if !ok {
		return cty.DynamicVal, demand.Fail()
	}
	c.complete.Get(t, nil)
	failed := false
	objs := make([]cty.Value, len(ch.All))
	for i, child := range ch.All {
		attrs := make(map[string]cty.Value, len(child.outputs))
		for j := range child.outputs {
			v, ok := child.outputs[j].Get(t, nil)
			failed = failed || !ok
			attrs[child.code.outputs[j].cfg.Name] = v
		}
		objs[i] = cty.ObjectVal(attrs)
	}
	var ds diag.List
	if failed {
		ds = demand.Fail()
	}
	if ch.Unknown && ch.Form != One {
		return c.unknown(ch.Form), ds
	}
	return collection(ch.Form, ch.Unknown, objs, func(i int) string { return ch.All[i].inst.key.Str }), ds
}

// unknown returns the value of a repeated call with unknown instances: a list or map of objects
// with the module's outputs, as in OpenTofu.
func (c *Call) unknown(f Form) cty.Value {
	attrs := make(map[string]cty.Type, len(c.Node.Config.Outputs))
	for name, o := range c.Node.Config.Outputs {
		attrs[name] = o.Type.WithoutOptionalAttributesDeep()
	}
	switch f {
	case Counted:
		return cty.UnknownVal(cty.List(cty.Object(attrs)))
	case Keyed:
		return cty.UnknownVal(cty.Map(cty.Object(attrs)))
	default:
		return cty.DynamicVal
	}
}

// collection returns the value of a reference to a repeated block, given the values of its
// instances.
func collection(form Form, unknown bool, vals []cty.Value, key func(int) string) cty.Value {
	switch {
	case unknown && (form != One || len(vals) == 0):
		return cty.DynamicVal
	case form == Disabled:
		return cty.NullVal(cty.DynamicPseudoType)
	case form == One && len(vals) == 1:
		return vals[0]
	case form == Counted:
		return cty.TupleVal(vals)
	case form == Keyed:
		attrs := make(map[string]cty.Value, len(vals))
		for i, v := range vals {
			attrs[key(i)] = v
		}
		return cty.ObjectVal(attrs)
	default:
		return cty.DynamicVal
	}
}

// finish reads everything in the called module, including unused variables, and everything that
// the module waits for. A depends_on or a reference to the whole module waits for all of that,
// even if the module is empty. Data sources of checks are excluded, because checks come after
// everything else: whether they are read depends on whether anything changes.
func (c *Call) finish(t *demand.Task) (struct{}, diag.List) {
	ch, ok := c.children.Get(t, nil)
	if !ok {
		return struct{}{}, demand.Fail()
	}
	c.gate.Get(t, nil)
	if len(ch.All) == 0 && ch.Deferred == nil {
		c.touchInputs(t)
	}
	for _, child := range ch.All {
		for _, r := range child.resources {
			if !r.code.ofCheck {
				r.valueCell.Get(t, nil)
			}
		}
		for _, sub := range child.calls {
			sub.complete.Get(t, nil)
		}
		for i := range child.outputs {
			child.outputs[i].Get(t, nil)
		}
		for i := range child.variables {
			child.variables[i].Get(t, nil)
		}
	}
	return struct{}{}, nil
}

// resolve resolves a reference module.NAME…. If it names one output, only that is computed, so
// that the outputs of a module do not wait for one another.
func (c *Call) resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	rest := ref[2:]
	if len(rest) == 0 {
		return whole(t, &c.whole, at)
	}
	ch, ok := c.children.Get(t, at)
	if !ok {
		return cty.DynamicVal, 2, demand.Fail()
	}
	if len(c.code.after) > 0 { // a reader of an output depends on the depends_on of the call
		c.gate.Get(t, at)
	}
	if ch.Deferred != nil {
		return whole(t, &c.whole, at)
	}
	if len(ch.All) == 0 && !ch.Unknown {
		name, isAttr := rest[0].(hcl.TraverseAttr)
		if len(rest) > 1 && ch.Form != Disabled {
			name, isAttr = rest[1].(hcl.TraverseAttr)
		}
		if isAttr && (ch.Form == Disabled || len(rest) > 1) {
			c.readWithoutInstances(t, name.Name, at)
			return collection(ch.Form, false, nil, nil), 2, nil
		}
	}
	if a, isAttr := rest[0].(hcl.TraverseAttr); isAttr && ch.Form == One && len(ch.All) == 1 {
		v, ds := c.output(t, ch.All[0], a, at)
		if lang.IsAbsent(ds) {
			return v, 2, ds
		}
		return v, 3, ds
	}
	if _, isAttr := rest[0].(hcl.TraverseAttr); isAttr && ch.Form != Disabled {
		return cty.DynamicVal, 2, diag.Errorf(diag.CodeLangUnsupportedAttribute, at, "Unsupported attribute", "Because %s has %q set, its attributes must be accessed on specific instances.\n\nFor example, to correlate with indices of a referring resource, use:\n    module.%s[%s]", c.label(), formName(ch.Form), c.Name(), indexName(ch.Form))
	}
	if len(rest) >= 2 {
		idx, isIdx := rest[0].(hcl.TraverseIndex)
		a, isAttr := rest[1].(hcl.TraverseAttr)
		if isIdx && isAttr {
			if v, ds, done := c.part(t, ch, idx, a, at); done {
				return v, 2, ds
			}
		}
	}
	return whole(t, &c.whole, at)
}

// part resolves module.NAME[KEY].OUTPUT. The result is a collection in which only this output
// of this instance is computed, so that the reader does not wait for others. If the instances
// are unknown, it is the output of the instance that represents all.
func (c *Call) part(t *demand.Task, ch *Children, idx hcl.TraverseIndex, a hcl.TraverseAttr, at *source.Range) (cty.Value, diag.List, bool) {
	k, err := addr.KeyFromValue(idx.Key)
	if err != nil || ch.Form != Counted && ch.Form != Keyed {
		return cty.DynamicVal, nil, false
	}
	_, declared := c.Node.Config.Outputs[a.Name]
	if ch.Unknown {
		if !declared || len(ch.All) != 1 {
			return cty.DynamicVal, nil, false
		}
		_, ds := c.output(t, ch.All[0], a, at)
		return c.unknown(ch.Form), ds, true
	}
	child := ch.byKey[k]
	var v cty.Value
	var ds diag.List
	switch {
	case child != nil:
		v, ds = c.output(t, child, a, at)
	case declared:
		c.readWithoutInstances(t, a.Name, at)
	default:
		return cty.DynamicVal, nil, false
	}
	vals := make([]cty.Value, len(ch.All))
	for i, m := range ch.All {
		vals[i] = cty.EmptyObjectVal
		if child != nil && m == child && !lang.IsAbsent(ds) {
			vals[i] = cty.ObjectVal(map[string]cty.Value{a.Name: v})
		}
	}
	return collection(ch.Form, false, vals, func(i int) string { return ch.All[i].inst.key.Str }), ds, true
}

func (c *Call) output(t *demand.Task, child *Module, a hcl.TraverseAttr, at *source.Range) (cty.Value, diag.List) {
	i, found := child.code.outputIndex[a.Name]
	if !found {
		return cty.EmptyObjectVal, lang.Absent(at, "Unsupported attribute", "This object does not have an attribute named %q: %s declares no output of that name.%s", a.Name, c.label(), lang.Suggest(a.Name, child.code.outputIndex))
	}
	v, ok := child.outputs[i].Get(t, at)
	if !ok {
		return v, demand.Fail()
	}
	return v, nil
}

func (c *Call) label() string { return "module." + c.Name() }

func formName(f Form) string {
	if f == Keyed {
		return "for_each"
	}
	return "count"
}

func indexName(f Form) string {
	if f == Keyed {
		return "each.key"
	}
	return "count.index"
}

// whole reads the cell of a whole block.
func whole(t *demand.Task, c *demand.Cell[cty.Value], at *source.Range) (cty.Value, int, diag.List) {
	v, ok := c.Get(t, at)
	if !ok {
		return v, 2, demand.Fail()
	}
	return v, 2, nil
}
