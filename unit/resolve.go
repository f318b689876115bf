package unit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// resolved is the result of following a reference.
type resolved struct {
	n       node
	used    int    // the number of steps that lead to n; HCL applies the others
	missing string // why the next step failed; "" if it was not tried
	names   []string
}

// resolve follows a reference as far as there are nodes.
func (c *evaluator) resolve(e *evaluation, ref hcl.Traversal) resolved {
	root := c.root(e, ref.RootName())
	if root == nil {
		return resolved{}
	}
	return c.descend(root, ref, 1)
}

// descend follows the steps of a reference from a node.
func (c *evaluator) descend(n node, ref hcl.Traversal, from int) resolved {
	for i := from; i < len(ref); i++ {
		key, ok := stepName(c, n, ref[i])
		if !ok || c.stuck() {
			return resolved{n: n, used: i}
		}
		o := n.open(c)
		if c.stuck() {
			return resolved{n: o, used: i}
		}
		if _, plain := o.(valueNode); plain {
			c.readsOutput(n, o, ref, i)
			return resolved{n: o, used: i} // HCL applies the remaining steps to the value
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
			if _, config := o.(*configNode); config && unreachable(key) {
				return resolved{n: o, used: i, missing: why, names: names}
			}
			if near := syntax.Nearest(key, names); near != "" {
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

// lister is a node whose members are few enough to list in an error.
type lister interface{ listed() }

// rootNode is the first step of a reference.
type rootNode struct {
	*group
	what string // a noun for the members, for errors
	hint string
	miss func(key string) string
}

func (n *rootNode) open(*evaluator) node { return n }
func (n *rootNode) listed()              {}

func (n *rootNode) lacks(key string) string {
	if n.miss != nil {
		if text := n.miss(key); text != "" {
			return text
		}
	}
	return fmt.Sprintf("There is no %s named %q in this file.%s", n.what, key, n.hint)
}

// A root is a name that begins references in unit and stack files.
type root struct {
	name string
	node func(c *evaluator, e *evaluation) node
	kind explanation.Kind // of the parts that the root leads to
	// crosses is the kind of the step into another file. "" means that the root stays in
	// its file.
	crosses explanation.Kind
	// early means that import and include blocks may read the root. They are evaluated
	// before the rest of the file.
	early bool
	// only is the kind of file that has the root. The zero value means all files.
	only fileKind
}

type fileKind uint8

const (
	allFiles fileKind = iota
	environmentFiles
	stackFiles
)

// roots is the table of names that begin references. It does not contain the names each and
// count, which only the instances of blocks have.
func roots() [9]root { // a function, because a variable would have an initialization cycle
	return [...]root{
		{name: "local", node: func(_ *evaluator, e *evaluation) node { return &locals{e} }, kind: explanation.Local},
		{name: "import", node: (*evaluator).importsNode, kind: explanation.Argument, crosses: explanation.Import},
		{name: "include", node: (*evaluator).includesNode, kind: explanation.Argument, crosses: explanation.Include},
		{name: "dependency", node: (*evaluator).dependencies, kind: explanation.Argument},
		{name: "feature", node: (*evaluator).features, kind: explanation.Feature},
		{name: "values", node: (*evaluator).valuesNode, kind: explanation.Values, early: true},
		{name: "module", node: (*evaluator).modulesNode, kind: explanation.Argument, only: environmentFiles},
		{name: "unit", node: func(c *evaluator, e *evaluation) node { return c.stackNode(e, "unit") }, kind: explanation.Argument, only: stackFiles},
		{name: "stack", node: func(c *evaluator, e *evaluation) node { return c.stackNode(e, "stack") }, kind: explanation.Argument, only: stackFiles},
	}
}

// rootNamed returns the root of that name. ok is false if there is none.
func rootNamed(name string) (r root, ok bool) {
	for _, r := range roots() {
		if r.name == name {
			return r, true
		}
	}
	return root{}, false
}

// root returns the node of the first step of a reference, or nil if the name is unknown.
func (c *evaluator) root(e *evaluation, name string) node {
	switch {
	case name == "each" && e.of.each != cty.NilVal:
		return valueNode{e.of.each, e.wholeFile(), e.of.eachAt}
	case name == "count" && e.of.count != cty.NilVal:
		return valueNode{e.of.count, e.wholeFile(), e.of.eachAt}
	}
	if r, ok := rootNamed(name); ok {
		return r.node(c, e.env())
	}
	return nil
}

// locals are the local values of a file.
type locals struct{ e *evaluation }

func (n *locals) open(*evaluator) node                { return n }
func (n *locals) value(c *evaluator) cty.Value        { return objectOf(c, n) }
func (n *locals) where() (*evaluation, *source.Range) { return n.e, nil }
func (n *locals) listed()                             {}

func (n *locals) child(c *evaluator, key string) node {
	if a := n.e.file().Root.First("locals").Attr(key); a != nil {
		return &exprNode{e: n.e, x: a.Expr, at: &a.At}
	}
	if n.e.changes.Locals() {
		c.note() // it may exist in the other version
	}
	return nil
}

func (n *locals) keys(c *evaluator) ([]string, bool) {
	if n.e.changes.Locals() {
		c.note()
	}
	var names []string
	if b := n.e.file().Root.First("locals"); b != nil {
		for _, a := range b.Attrs {
			names = append(names, a.Name)
		}
	}
	return names, true
}

func (n *locals) lacks(key string) string {
	return fmt.Sprintf("There is no local value named %q in this file.", key)
}

func (c *evaluator) importsNode(e *evaluation) node {
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

func (c *evaluator) includesNode(e *evaluation) node {
	n := &rootNode{group: newGroup(e, nil), what: "include"}
	h := c.fileImports(e)
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

func (c *evaluator) valuesNode(e *evaluation) node {
	v := e.vals()
	if v == nil && c.l.env.UnknownValues && e.role != valuesRole {
		return valueNode{cty.DynamicVal, e, &e.file().Root.At}
	}
	if v == nil {
		return &rootNode{group: newGroup(e, nil), what: "value", hint: " There is no " + syntax.ValuesName + " beside it."}
	}
	c.readFile(v.file().Path)
	c.add(v.file().Diags)
	n := &rootNode{group: newGroup(v, nil), what: "value"}
	if v.file().Root != nil {
		for _, a := range v.file().Root.Attrs {
			n.put(a.Name, &exprNode{e: v, x: a.Expr, at: &a.At})
		}
	}
	return n
}
