package unit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// resolved is how far a reference could be followed.
type resolved struct {
	n       node
	used    int    // steps that lead to n; the rest is left to HCL
	missing string // why the next step leads nowhere; "" if it was not tried
	names   []string
}

// resolve follows a reference as far as configurations have parts.
func (c *calc) resolve(e *ev, ref hcl.Traversal) resolved {
	root := c.root(e, ref)
	if root == nil {
		return resolved{}
	}
	return c.descend(root, ref, 1)
}

// descend follows the steps of a reference from a node on.
func (c *calc) descend(n node, ref hcl.Traversal, from int) resolved {
	for i := from; i < len(ref); i++ {
		key, ok := stepName(ref[i])
		if !ok || c.stuck() {
			return resolved{n: n, used: i}
		}
		o := n.open(c)
		if c.stuck() {
			return resolved{n: o, used: i}
		}
		if _, plain := o.(valueNode); plain {
			c.readsOutput(n, o, ref, i)
			return resolved{n: o, used: i} // HCL knows what to do with values
		}
		next := o.child(c, key)
		if c.stuck() {
			return resolved{n: o, used: i}
		}
		c.readsOutput(n, next, ref, i)
		if next == nil {
			names, _ := o.keys(c)
			why := fmt.Sprintf("This object does not have an attribute named %q.", key)
			if w, ok := o.(interface{ lacks(key string) string }); ok {
				if text := w.lacks(key); text != "" {
					why = text
				}
			}
			if _, config := o.(*configNode); config && (key == "import" || key == "include") {
				return resolved{n: o, used: i, missing: why, names: names}
			}
			if near := nearest(key, names); near != "" {
				why += fmt.Sprintf(" Did you mean %q?", near)
			} else if _, listed := o.(lister); listed && len(names) > 0 {
				names = slices.Sorted(slices.Values(names))
				why += " Known here: " + strings.Join(names, ", ") + "."
			}
			return resolved{n: o, used: i, missing: why, names: names}
		}
		n = next
	}
	return resolved{n: n, used: len(ref)}
}

// lister marks nodes whose members are few and worth listing in an error.
type lister interface{ listed() }

// rootNode is the first step of a reference.
type rootNode struct {
	*group
	what string // what the members are, for errors
	hint string
	miss func(key string) string
}

func (n *rootNode) open(*calc) node { return n }
func (n *rootNode) listed()         {}

func (n *rootNode) lacks(key string) string {
	if n.miss != nil {
		if text := n.miss(key); text != "" {
			return text
		}
	}
	return fmt.Sprintf("There is no %s named %q in this file.%s", n.what, key, n.hint)
}

// root is what the first step of a reference means, or nil if it has no meaning.
func (c *calc) root(e *ev, ref hcl.Traversal) node {
	if ref.RootName() == "each" && e.each != cty.NilVal {
		return valueNode{v: e.each}
	}
	e = e.env()
	switch ref.RootName() {
	case "local":
		return c.localsNode(e)
	case "import":
		return c.importsNode(e)
	case "include":
		return c.includesNode(e)
	case "dependency":
		return c.dependencies(e)
	case "feature":
		return c.features(e)
	case "values":
		return c.valuesNode(e)
	case "module":
		return c.modulesNode(e)
	case "unit", "stack":
		return c.stackNode(e, ref.RootName())
	}
	return nil
}

// locals are the local values of a file.
type locals struct{ e *ev }

func (n *locals) open(*calc) node             { return n }
func (n *locals) value(c *calc) cty.Value     { return objectOf(c, n) }
func (n *locals) where() (*ev, *source.Range) { return n.e, nil }
func (n *locals) listed()                     {}

func (n *locals) child(_ *calc, key string) node {
	if a := n.e.f.root.first("locals").attr(key); a != nil {
		return &xprNode{e: n.e, x: a.x, at: &a.at}
	}
	return nil
}

func (n *locals) keys(*calc) ([]string, bool) {
	var names []string
	if b := n.e.f.root.first("locals"); b != nil {
		for _, a := range b.attrs {
			names = append(names, a.name)
		}
	}
	return names, true
}

func (n *locals) lacks(key string) string {
	return fmt.Sprintf("There is no local value named %q in this file.", key)
}

func (c *calc) localsNode(e *ev) node { return &locals{e} }

func (c *calc) importsNode(e *ev) node {
	n := &rootNode{group: newGroup(e, nil), what: "import"}
	h := c.imports(e)
	if e.role == includeRole {
		n.hint = " An included file cannot import others."
	}
	for _, i := range h.imports {
		at := i.at
		n.put(i.name, &configNode{e: i.e, style: importStyle, at: &at})
	}
	return n
}

func (c *calc) includesNode(e *ev) node {
	n := &rootNode{group: newGroup(e, nil), what: "include"}
	h := c.head(e)
	for _, i := range h.includes {
		at := i.at
		cn := &configNode{e: i.e, style: includeStyle, at: &at}
		if !i.expose {
			continue
		}
		if i.bare && len(h.includes) == 1 {
			return cn
		}
		n.put(i.label, cn)
	}
	n.miss = func(key string) string {
		for _, i := range h.includes {
			if i.label == key && !i.expose {
				return fmt.Sprintf("The include block %q at %s does not say expose = true, so what the file holds cannot be read.", key, i.at)
			}
		}
		return ""
	}
	return n
}

func (c *calc) valuesNode(e *ev) node {
	v := e.vals()
	if v == nil {
		return &rootNode{group: newGroup(e, nil), what: "value", hint: " There is no " + ValuesName + " beside it."}
	}
	c.readFile(v.f.path)
	c.add(v.f.ds)
	n := &rootNode{group: newGroup(v, nil), what: "value"}
	if v.f.root != nil {
		for _, a := range v.f.root.attrs {
			n.put(a.name, &xprNode{e: v, x: a.x, at: &a.at})
		}
	}
	return n
}

// scopeTree collects resolved references by their steps, to hand them to HCL.
type scopeTree struct {
	names []string
	subs  []*scopeTree
	v     cty.Value
	leaf  bool
}

func (n *scopeTree) put(ref hcl.Traversal, v cty.Value, leaf bool) {
	for _, step := range ref {
		name, _ := stepName(step)
		i := slices.Index(n.names, name)
		if i < 0 {
			i = len(n.names)
			n.names = append(n.names, name)
			n.subs = append(n.subs, new(scopeTree))
		}
		n = n.subs[i]
	}
	if leaf {
		n.v, n.leaf = v, true
	}
}

func (n *scopeTree) values() map[string]cty.Value {
	out := make(map[string]cty.Value, len(n.names))
	for i, name := range n.names {
		sub := n.subs[i]
		if sub.leaf {
			out[name] = sub.v
		} else {
			out[name] = cty.ObjectVal(sub.values())
		}
	}
	return out
}

// raw computes an expression: in its cell, or directly where it has none.
func (c *calc) raw(e *ev, x *xpr) cty.Value {
	switch x.kind {
	case constant:
		return x.v
	case object:
		return c.rawObject(e, x)
	case tuple:
		vals := make([]cty.Value, len(x.args))
		for i, a := range x.args {
			vals[i] = c.eval(e, a)
			if c.needsLeaf {
				return cty.DynamicVal
			}
		}
		return cty.TupleVal(vals)
	case reference:
		return c.rawReference(e, x)
	case mergeCall, deepCall:
		return c.rawMerge(e, x)
	case readCall:
		if n := c.readConfig(e, x); n != nil {
			return n.value(c)
		}
		return cty.DynamicVal
	case relative:
		base := (&xprNode{e: e, x: x.args[0]}).open(c)
		if c.stuck() {
			return cty.DynamicVal
		}
		r := c.descend(base, x.ref, 0)
		return c.rest(r, x.ref, x)
	default:
		return c.rawOpaque(e, x)
	}
}

func (c *calc) rawObject(e *ev, x *xpr) cty.Value {
	vals := make(map[string]cty.Value, len(x.items))
	var marks []cty.ValueMarks
	for i := range x.items {
		it := &x.items[i]
		k := it.key
		if it.keyX != nil {
			v, m := c.eval(e, it.keyX).Unmark()
			if c.needsLeaf {
				return cty.DynamicVal
			}
			marks = append(marks, m)
			at := it.keyX.at()
			kv := c.convert(v, cty.String, "key", at)
			switch {
			case c.failed || !kv.IsKnown():
				return cty.DynamicVal
			case kv.IsNull():
				return c.errorf(&at, "unit/null-key", "Null value as key", "Can't use a null value as a key.")
			}
			k = kv.AsString()
		}
		vals[k] = c.eval(e, it.x)
		if c.needsLeaf {
			return cty.DynamicVal
		}
	}
	return cty.ObjectVal(vals).WithMarks(marks...)
}

// rawReference is the value of a plain reference.
func (c *calc) rawReference(e *ev, x *xpr) cty.Value {
	if c.deep++; c.deep > maxFollow {
		c.add(e.cycleAt(x).ds)
		return cty.DynamicVal
	}
	defer func() { c.deep-- }()
	r := c.resolve(e, x.ref)
	if c.stuck() {
		return cty.DynamicVal
	}
	if r.n == nil {
		at := x.at()
		return c.errorf(&at, "unit/unknown-variable", "Unknown variable", "%s", unknownRoot(x.ref.RootName()))
	}
	return c.rest(r, x.ref, x)
}

// rest takes the steps of a reference that HCL knows better.
func (c *calc) rest(r resolved, ref hcl.Traversal, x *xpr) cty.Value {
	if r.missing != "" {
		at := ref[r.used].SourceRange()
		if c.tolerates(r, &at) {
			return cty.DynamicVal
		}
		return c.errorf(&at, "unit/unsupported-attribute", "Unsupported attribute", "%s", r.missing)
	}
	v := r.n.value(c)
	if c.stuck() || r.used == len(ref) {
		return v
	}
	v, diags := ref[r.used:].TraverseRel(v)
	for _, d := range diags {
		d.Expression, d.EvalContext = nil, nil
	}
	if ds := diag.FromHCL(diags); len(ds) > 0 {
		at := x.at()
		c.add(ds.Under(&at))
	}
	return v
}

// rawOpaque lets HCL compute what only it knows, with the values of the
// references found first.
func (c *calc) rawOpaque(e *ev, x *xpr) cty.Value {
	var tree scopeTree
	var missing []resolved
	var missRefs []hcl.Traversal
	for _, ref := range x.refs {
		r := c.resolve(e, ref)
		if c.stuck() {
			return cty.DynamicVal
		}
		if r.n == nil {
			continue // HCL tells that the name is unknown, unless try() catches it
		}
		if r.missing != "" {
			tree.put(ref[:r.used], cty.NilVal, false)
			missing, missRefs = append(missing, r), append(missRefs, ref)
			continue
		}
		v := r.n.value(c)
		if c.stuck() {
			return cty.DynamicVal
		}
		tree.put(ref[:r.used], v, true)
	}
	ctx := c.l.functions(e.f, x.tables)
	ctx = ctx.NewChild()
	ctx.Variables = tree.values()
	if len(x.calls) > 0 {
		ctx.Functions = c.contextFunctions(e, x)
	}
	v, diags := x.Expression.Value(ctx)
	if c.needsLeaf {
		return cty.DynamicVal
	}
	if len(diags) > 0 {
		diags = c.explainMissing(diags, missing, missRefs)
		if !diags.HasErrors() && v == cty.NilVal {
			v = cty.DynamicVal
		}
		c.add(diag.FromHCL(diags))
	}
	return v
}

// tolerates makes a warning of an output that is missing, where outputs need
// not exist.
func (c *calc) tolerates(r resolved, at *source.Range) bool {
	if _, ok := r.n.(*outputsView); !ok || !c.l.env.Tolerant {
		return false
	}
	ds := diag.Warnf(at, "Missing output", "%s", r.missing)
	ds[0].Code = "unit/missing-output"
	c.add(ds)
	c.needsOut = c.needsOut || !c.full
	return true
}

// explainMissing makes HCL's errors about our own names tell more, and takes
// away those that are tolerated.
func (c *calc) explainMissing(diags hcl.Diagnostics, missing []resolved, refs []hcl.Traversal) hcl.Diagnostics {
	var out hcl.Diagnostics
next:
	for _, d := range diags {
		out = append(out, d)
		if d.Subject == nil {
			continue
		}
		if d.Summary == "Unknown variable" {
			for _, root := range [...]string{"local", "import", "include", "dependency", "feature", "values", "module"} {
				if strings.Contains(d.Detail, quote(root)) {
					d.Detail = unknownRoot(root)
				}
			}
			continue
		}
		for i, r := range missing {
			step := refs[i][r.used].SourceRange()
			if d.Subject.Overlaps(step) || d.Subject.Overlaps(refs[i].SourceRange()) {
				d.Detail = r.missing
				if c.tolerates(r, d.Subject) {
					out = out[:len(out)-1]
				}
				continue next
			}
		}
	}
	return out
}

func unknownRoot(name string) string {
	if name == "var" {
		return "There is no variable named \"var\" in unit files. Use local values, inputs or values."
	}
	return fmt.Sprintf("There is no variable named %q.", name)
}
