package lint

import (
	"go/ast"
	"go/token"
	"strings"
)

// variables checks that package-level variables are tables and sentinels: initialized by a
// literal or a cheap function, and never assigned to.
func (c *checker) variables() {
	if apart[c.p.Name] {
		return
	}
	names := map[string]bool{}
	for _, f := range c.p.Files {
		c.f = f
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					c.report(d.Pos(), "an init function: do it on demand, where it is needed")
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					c.declared(d, names)
				}
			}
		}
	}
	for _, f := range c.p.Files {
		c.f = f
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				c.assigned(fn, names)
			}
		}
	}
}

func (c *checker) declared(d *ast.GenDecl, names map[string]bool) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		for i, id := range v.Names {
			if id.Name == "_" || state[c.p.Name+"."+id.Name] != "" {
				continue
			}
			names[id.Name] = true
			switch {
			case len(v.Values) == 0:
				c.report(id.Pos(), "%s is a package-level variable without a value, so it is there to be changed: pass it in", id.Name)
			case len(v.Values) == len(v.Names):
				c.initializer(id.Name, v.Values[i])
			default:
				c.report(id.Pos(), "%s comes from a call at start-up: make it on demand", id.Name)
			}
		}
	}
}

// initializer reports work at program start.
func (c *checker) initializer(name string, x ast.Expr) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // runs later, if at all
		case *ast.CallExpr:
			if c.cheap(name, n) {
				return true
			}
			if lit, ok := n.Fun.(*ast.FuncLit); ok && len(lit.Body.List) <= 8 {
				return false // a function that fills a table
			}
			c.report(n.Pos(), "%s calls something at start-up: use sync.OnceValue, or a literal", name)
			return false
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				c.report(n.Pos(), "%s receives at start-up", name)
			}
		}
		return true
	})
}

func (c *checker) cheap(name string, call *ast.CallExpr) bool {
	fun := call.Fun
	if ix, ok := fun.(*ast.IndexExpr); ok {
		fun = ix.X
	}
	switch q := c.f.qualified(fun); {
	case makers[q] || makers[q[:strings.LastIndex(q, ".")+1]]:
		return true
	case strings.HasPrefix(q, "reflect.TypeFor"):
		return true
	case q != "":
		return strings.HasPrefix(strings.ToLower(name), "err") // a sentinel of a special type
	}
	switch fun := fun.(type) {
	case *ast.SelectorExpr: // a method of the result of a maker
		inner, ok := fun.X.(*ast.CallExpr)
		return ok && c.cheap(name, inner)
	case *ast.ArrayType, *ast.MapType, *ast.InterfaceType, *ast.FuncType, *ast.ParenExpr:
		return true // a conversion
	case *ast.Ident:
		switch fun.Name {
		case "len", "cap", "min", "max", "string", "byte", "rune", "int", "int64", "uint64", "float64":
			return true
		}
	}
	return false
}

// assigned reports assignments to package-level variables. It compares names, so a local
// variable of the same name excuses the whole function.
func (c *checker) assigned(fn *ast.FuncDecl, names map[string]bool) {
	local := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, x := range n.Lhs {
					if id, ok := x.(*ast.Ident); ok {
						local[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			for _, x := range []ast.Expr{n.Key, n.Value} {
				if id, ok := x.(*ast.Ident); ok {
					local[id.Name] = true
				}
			}
		case *ast.Field:
			for _, id := range n.Names {
				local[id.Name] = true
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				local[id.Name] = true
			}
		}
		return true
	})
	check := func(x ast.Expr) {
		if id := base(x); id != nil && names[id.Name] && !local[id.Name] {
			c.report(x.Pos(), "%s is changed, but it stands at package level: pass it in", id.Name)
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, x := range n.Lhs {
					check(x)
				}
			}
		case *ast.IncDecStmt:
			check(n.X)
		}
		return true
	})
}

// base returns the variable that an assignment to x changes: v for v, v[i], v.f and *v.
func base(x ast.Expr) *ast.Ident {
	for {
		switch y := x.(type) {
		case *ast.Ident:
			return y
		case *ast.IndexExpr:
			x = y.X
		case *ast.SelectorExpr:
			x = y.X
		case *ast.StarExpr:
			x = y.X
		case *ast.ParenExpr:
			x = y.X
		default:
			return nil
		}
	}
}
