package lint

import (
	"go/ast"
	"go/token"
	"strings"
)

// texts holds that nothing is decided by the text of a message: its code says what it is.
// What is given to functions that look into strings counts, and what is compared; two
// messages may be compared with each other, and any with nothing.
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

// looks are the functions that look into a string or for one.
var looks = map[string]bool{
	"strings.Contains": true, "strings.HasPrefix": true, "strings.HasSuffix": true, "strings.EqualFold": true, "strings.Index": true,
	"strings.CutPrefix": true, "strings.CutSuffix": true, "strings.Cut": true, "slices.Contains": true,
}

// compared reports an expression that is the text of a message. with is what it is
// compared with, nil for something else than another expression.
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

// textOf is Summary or Detail, if the expression is that of something.
func textOf(x ast.Expr) string {
	if s, ok := x.(*ast.SelectorExpr); ok && (s.Sel.Name == "Summary" || s.Sel.Name == "Detail") {
		return s.Sel.Name
	}
	return ""
}
