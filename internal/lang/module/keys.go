package module

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// providerKeys checks that for_each of provider blocks is known before planning, because the
// set of providers must be known then. Each message is returned once, even if a module is
// called several times.
func providerKeys(root *Node) diag.List {
	var ds diag.List
	reported := map[source.Range]bool{}
	root.Walk(func(n *Node) {
		for _, key := range slices.Sorted(maps.Keys(n.Config.Providers)) {
			p := n.Config.Providers[key]
			if p.ForEach == nil {
				continue
			}
			at := p.ForEach.Expr.Range()
			s := &staticReads{seen: map[staticName]bool{}}
			s.expr(n, p.ForEach.Expr)
			for _, m := range s.ds {
				if reported[*m.At] {
					continue
				}
				reported[*m.At] = true
				if !within(*m.At, at) {
					m.Notes = append(m.Notes, diag.Note{Text: "needed for for_each of the provider configuration " + key, At: &at})
				}
				ds = append(ds, m)
			}
		}
	})
	return ds
}

// constInputs checks that calls give variables with const = true values that are known before
// planning. Each message is returned once, even if a module is called several times.
func constInputs(root *Node) diag.List {
	var ds diag.List
	reported := map[source.Range]bool{}
	root.Walk(func(n *Node) {
		if n.Parent == nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(n.Config.Variables)) {
			v := n.Config.Variables[name]
			if v.Const == nil || !*v.Const {
				continue
			}
			x := callInput(n.Call, name)
			if x == nil {
				continue
			}
			at := x.Range()
			s := &staticReads{seen: map[staticName]bool{}}
			s.expr(n.Parent, x)
			for _, m := range s.ds {
				if reported[*m.At] {
					continue
				}
				reported[*m.At] = true
				m.Notes = append(m.Notes, diag.Note{Text: "the variable that it is given to is declared here, with const = true", At: &v.At})
				if !within(*m.At, at) {
					m.Notes = append(m.Notes, diag.Note{Text: "needed for the argument " + name + " of " + string(n.Path), At: &at})
				}
				ds = append(ds, m)
			}
		}
	})
	return ds
}

// within reports whether one range contains another.
func within(at, in source.Range) bool {
	return at.Filename == in.Filename && at.Start.Byte >= in.Start.Byte && at.End.Byte <= in.End.Byte
}

// staticReads follows the references of an expression that must be known early, and records
// those that lead to something that is not.
type staticReads struct {
	seen map[staticName]bool
	ds   diag.List
}

// staticName is a variable or local value of a module.
type staticName struct {
	node       *Node
	kind, name string
}

func (s *staticReads) expr(n *Node, x hcl.Expression) {
	for _, ref := range x.Variables() {
		s.follow(n, ref)
	}
}

func (s *staticReads) follow(n *Node, ref hcl.Traversal) {
	if len(ref) < 2 {
		return // an incomplete reference is reported where it is evaluated
	}
	a, _ := ref[1].(hcl.TraverseAttr)
	id := staticName{n, ref.RootName(), a.Name}
	if s.seen[id] {
		return
	}
	s.seen[id] = true
	switch id.kind {
	case "path", "terraform", "tofu", "each", "count", "self":
		return
	case "local":
		if l := n.Config.Locals[id.name]; l != nil && l.Value != nil {
			s.expr(n, l.Value.Expr)
		}
		return
	case "var":
		s.variable(n, id.name, ref)
		return
	}
	at := ref.SourceRange()
	if id.kind == "module" {
		s.ds = append(s.ds, noOutput(&at, id.name)...)
		return
	}
	s.ds = append(s.ds, notStatic(&at, id.kind, id.name)...)
}

func (s *staticReads) variable(n *Node, name string, ref hcl.Traversal) {
	v := n.Config.Variables[name]
	if v == nil {
		return
	}
	if v.Const != nil && !*v.Const {
		at := ref.SourceRange()
		s.ds = append(s.ds, notConst(&at, name)...)
		return
	}
	if n.Parent == nil {
		return
	}
	if x := callInput(n.Call, name); x != nil {
		s.expr(n.Parent, x)
	}
}

func noOutput(at *source.Range, call string) diag.List {
	return diag.Errorf(diag.CodeModuleStaticOutput, at, "Module output not supported in static context", "Unable to use module.%s here: outputs of modules are not known before anything is planned.", call)
}

func notStatic(at *source.Range, root, name string) diag.List {
	return diag.Errorf(diag.CodeModuleNotStatic, at, "Dynamic value in static context", "Unable to use %s.%s here: this value is needed before anything is planned, so only variables, locals, path.* and terraform.workspace can be used.", root, name)
}

func notConst(at *source.Range, name string) diag.List {
	return diag.Errorf(diag.CodeModuleNotStatic, at, "Dynamic value in static context", "The variable %q is declared with const = false, so it cannot be used here.", name)
}
