package planjson

import (
	"cmp"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// planned writes the values after the plan is applied.
func (w *planWriter) planned() {
	w.begin('{')
	w.plannedOutputs()
	w.name("root_module")
	var cs []*plan.Change
	for _, c := range plan.Shown(w.Plan.Changes) {
		forgotten := c.Op == plan.Forget // the object continues to exist and is listed without values, as in OpenTofu
		if c.Deposed == "" && c.Op != plan.Delete && (forgotten || c.After.IsKnown() && !c.After.IsNull()) {
			cs = append(cs, c)
		}
	}
	texts := make(map[*plan.Change]string, len(cs)) // OpenTofu sorts these resources by the text of their addresses
	for _, c := range cs {
		texts[c] = c.Addr.String()
	}
	slices.SortStableFunc(cs, func(a, b *plan.Change) int {
		return cmp.Or(a.Addr.Module.Compare(b.Addr.Module), strings.Compare(texts[a], texts[b]))
	})
	writeModules(&w.writer, cs, func(c *plan.Change) addr.ModuleInstance { return c.Addr.Module }, w.plannedResource)
	w.end('}')
}

func (w *planWriter) plannedOutputs() {
	var outputs []*plan.OutputChange
	for _, o := range w.Plan.Outputs {
		if o.Op != plan.Delete && !o.Left {
			outputs = append(outputs, o)
		}
	}
	if len(outputs) == 0 {
		return
	}
	slices.SortFunc(outputs, func(a, b *plan.OutputChange) int { return strings.Compare(a.Name, b.Name) })
	w.name("outputs")
	w.begin('{')
	for _, o := range outputs {
		w.name(o.Name)
		w.begin('{')
		w.name("sensitive")
		w.bool(o.AfterSensitive)
		if v := orNull(o.After); v.IsWhollyKnown() {
			if v.IsNull() && o.Op == plan.NoOp {
				v = cty.NullVal(cty.DynamicPseudoType)
			}
			ty, err := typeJSON(v.Type())
			w.fail(err)
			w.name("type")
			w.raw(ty)
			w.name("value")
			w.value(v)
		}
		w.end('}')
	}
	w.end('}')
}

func (w *planWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *planWriter) plannedResource(c *plan.Change) {
	s := w.block(c.Provider, c.Addr)
	w.begin('{')
	w.names(c.Addr, false, "")
	w.name("provider_name")
	w.str(c.Provider.Provider.String())
	w.name("schema_version")
	var block *schema.Block
	if s != nil {
		block = s.Block
		w.int(s.Version)
	} else {
		w.int(0)
	}
	if c.Op == plan.Forget {
		w.name("sensitive_values")
		w.bool(false)
		w.end('}')
		return
	}
	if hasKnown(c.After) {
		w.name("values")
		w.value(c.After)
	}
	w.name("sensitive_values")
	paths := sensitive(c.AfterSensitive, c.After, block)
	if len(c.Undeclared) > 0 {
		paths = value.NewPathSet(without(c.AfterSensitive, c.Undeclared))
	}
	w.objectTree(c.After, paths, isMarked, "{}")
	if known(c.AfterIdentity) {
		w.name("identity")
		w.value(c.AfterIdentity)
		w.name("identity_schema_version")
		w.int(s.IdentityVersion)
	}
	w.end('}')
}

// hasKnown reports whether an object has an attribute that is at least partly known. Other
// attributes are omitted.
func hasKnown(v cty.Value) bool {
	v, _ = v.Unmark()
	if !v.Type().IsObjectType() || !v.IsKnown() || v.IsNull() {
		return true
	}
	for name := range v.Type().AttributeTypes() {
		if a, _ := v.GetAttr(name).Unmark(); a.IsKnown() {
			return true
		}
	}
	return false
}

// without returns paths without those in some, which must be in the same order.
func without(all, some []cty.Path) []cty.Path {
	return slices.DeleteFunc(slices.Clone(all), func(path cty.Path) bool {
		if len(some) == 0 || !some[0].Equals(path) {
			return false
		}
		some = some[1:]
		return true
	})
}

// writeModules writes items as a tree of modules. The items must be sorted by module. Child
// modules are sorted by the text of their addresses, as in OpenTofu.
func writeModules[T any](w *writer, items []T, moduleOf func(T) addr.ModuleInstance, one func(T)) {
	root := &moduleNode[T]{}
	nodes := map[addr.ModuleInstance]*moduleNode[T]{"": root}
	var get func(m addr.ModuleInstance) *moduleNode[T]
	get = func(m addr.ModuleInstance) *moduleNode[T] {
		if n := nodes[m]; n != nil {
			return n
		}
		n := &moduleNode[T]{addr: m}
		nodes[m] = n
		parent, _, _ := m.Parent()
		up := get(parent)
		up.kids = append(up.kids, n)
		return n
	}
	for _, item := range items {
		n := get(moduleOf(item))
		n.items = append(n.items, item)
	}
	root.write(w, one)
}

type moduleNode[T any] struct {
	addr  addr.ModuleInstance
	items []T
	kids  []*moduleNode[T]
}

func (n *moduleNode[T]) write(w *writer, one func(T)) {
	w.begin('{')
	if len(n.items) > 0 {
		w.name("resources")
		w.begin('[')
		for _, item := range n.items {
			one(item)
			w.piece()
		}
		w.end(']')
	}
	w.field("address", string(n.addr))
	if len(n.kids) > 0 {
		slices.SortFunc(n.kids, func(a, b *moduleNode[T]) int { return strings.Compare(string(a.addr), string(b.addr)) })
		w.name("child_modules")
		w.begin('[')
		for _, k := range n.kids {
			k.write(w, one)
		}
		w.end(']')
	}
	w.end('}')
}
