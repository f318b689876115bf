package lint

import (
	"go/ast"
	"go/token"
	"strings"
)

// texts checks that no code depends on the text of a message instead of its code. It checks
// arguments of functions that search strings, and comparisons. Comparing the texts of two
// messages with each other, or a text with "", is allowed.
func (c *checker) texts() {
	if apart[c.p.Name] {
		return
	}
	for _, d := range c.f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || readers[c.p.Name+" "+fn.Name.Name] != "" {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					c.compared(n.X, n.Y)
					c.compared(n.Y, n.X)
				}
			case *ast.SwitchStmt:
				if n.Tag != nil {
					c.compared(n.Tag, nil)
				}
			case *ast.CallExpr:
				if name := c.f.qualified(n.Fun); looks[name] {
					for _, a := range n.Args {
						c.compared(a, nil)
					}
				}
			}
			return true
		})
	}
}

// looks are the functions that search a string.
var looks = map[string]bool{
	"strings.Contains": true, "strings.HasPrefix": true, "strings.HasSuffix": true, "strings.EqualFold": true, "strings.Index": true,
	"strings.CutPrefix": true, "strings.CutSuffix": true, "strings.Cut": true, "slices.Contains": true,
}

// compared reports an expression that is the text of a message. with is the expression that
// it is compared with, or nil.
func (c *checker) compared(x, with ast.Expr) {
	name := textOf(x)
	if name == "" || textOf(with) == name {
		return
	}
	if lit, ok := with.(*ast.BasicLit); ok && strings.Trim(lit.Value, "\"`") == "" {
		return
	}
	c.report(x.Pos(), "the %s of a message decides something: use its code", name)
}

// textOf returns Summary or Detail, if the expression selects one of them.
func textOf(x ast.Expr) string {
	if s, ok := x.(*ast.SelectorExpr); ok && (s.Sel.Name == "Summary" || s.Sel.Name == "Detail") {
		return s.Sel.Name
	}
	return ""
}
