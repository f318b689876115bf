package diag_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A site is a position in the source that creates a message.
type site struct {
	code    string // "" if the table determines it by the summary
	summary string // a pattern: * represents text that is only known at run time
	at      string // file:line
}

// A maker is a function that creates a message from its arguments.
type maker struct {
	code, summary int    // indexes of the arguments; -1 means none
	fixed         string // the code of all its messages; "" if there is none
}

// reader reads the source. It follows summaries through constants, variables and parameters to
// the positions at which messages are created.
type reader struct {
	fset   *token.FileSet
	files  map[string]map[string]*ast.File // by directory
	consts map[string]map[string]string    // by directory
	makers map[string]maker                // by directory and name
	fields map[string][]ast.Expr           // values of fields named summary, by directory
	sites  map[site]bool
}

var codeShape = regexp.MustCompile(`^[a-z0-9]+/[a-z][a-z0-9-]*$`)

// notMessages are types with a field Summary that are not messages.
var notMessages = map[string]bool{"Function": true, "functionSchema": true, "Box": true, "savedUnit": true}

// skipped are directories without messages to users.
var skipped = regexp.MustCompile(`(^|/)(testdata|examples|bench|randconfig|testkit|plantest|backendtest|storetest|testprovider|frameworkprovider|lint|hclnative/internal|\..+)$`)

func read(t *testing.T) []site {
	t.Helper()
	r := &reader{fset: token.NewFileSet(), files: map[string]map[string]*ast.File{}, consts: map[string]map[string]string{}, fields: map[string][]ast.Expr{}, makers: map[string]maker{
		"diag.Errorf": {code: 0, summary: 2}, "diag.Warnf": {code: 0, summary: 2},
	}, sites: map[site]bool{}}
	root := ".."
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case e.IsDir() && rel != "." && skipped.MatchString(rel):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(r.fset, rel, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		if r.files[dir] == nil {
			r.files[dir], r.consts[dir] = map[string]*ast.File{}, map[string]string{}
		}
		r.files[dir][rel] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, files := range r.files {
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if v, ok := n.(*ast.ValueSpec); ok {
					for i, name := range v.Names {
						if i < len(v.Values) {
							if s, ok := literal(v.Values[i]); ok {
								r.consts[dir][name.Name] = s
							}
						}
					}
				}
				if kv, ok := n.(*ast.KeyValueExpr); ok {
					if id, ok := kv.Key.(*ast.Ident); ok && id.Name == "summary" {
						r.fields[dir] = append(r.fields[dir], kv.Value)
					}
				}
				return true
			})
		}
	}
	for range 2 { // constants may refer to constants of this package
		for dir, files := range r.files {
			for _, f := range files {
				for _, d := range f.Decls {
					g, ok := d.(*ast.GenDecl)
					if !ok || g.Tok != token.CONST && g.Tok != token.VAR {
						continue
					}
					for _, spec := range g.Specs {
						v, ok := spec.(*ast.ValueSpec)
						if !ok {
							continue
						}
						for i, name := range v.Names {
							if i >= len(v.Values) {
								continue
							}
							switch x := v.Values[i].(type) {
							case *ast.SelectorExpr:
								if found := (&scope{r: r, dir: dir, file: f}).values(x); found[0] != "*" {
									r.consts[dir][name.Name] = found[0]
								}
							case *ast.Ident:
								if s, ok := r.consts[dir][x.Name]; ok {
									r.consts[dir][name.Name] = s
								}
							}
						}
					}
				}
			}
		}
	}
	for range 4 { // makers may call makers
		clear(r.sites)
		for dir, files := range r.files {
			for _, f := range files {
				for _, d := range f.Decls {
					r.decl(dir, f, d)
				}
			}
		}
	}
	var out []site
	for s := range r.sites {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b site) int {
		return strings.Compare(a.code+"\x00"+a.summary+"\x00"+a.at, b.code+"\x00"+b.summary+"\x00"+b.at)
	})
	return out
}

func literal(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			s, err := strconv.Unquote(x.Value)
			return s, err == nil
		}
	case *ast.BinaryExpr:
		a, ok := literal(x.X)
		b, ok2 := literal(x.Y)
		return a + b, ok && ok2
	}
	return "", false
}

func (r *reader) decl(dir string, f *ast.File, d ast.Decl) {
	fn, _ := d.(*ast.FuncDecl)
	ctx := &scope{r: r, dir: dir, file: f, params: map[string]int{}}
	if fn != nil {
		ctx.name = fn.Name.Name
		ctx.body = fn.Body
		n := 0
		for _, p := range fn.Type.Params.List {
			for _, name := range p.Names {
				ctx.params[name.Name] = n
				n++
			}
		}
	}
	var coded *site // the message to which a following `ds[0].Code = ` refers
	ast.Inspect(d, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			if len(x.Lhs) == 1 && len(x.Rhs) == 1 {
				if s, ok := x.Lhs[0].(*ast.SelectorExpr); ok && s.Sel.Name == "Code" {
					for _, c := range ctx.values(x.Rhs[0]) {
						if id, ok := x.Rhs[0].(*ast.Ident); ok {
							if i, ok := ctx.params[id.Name]; ok {
								key := dir + "." + ctx.name
								if m, ok := r.makers[key]; ok && m.code < 0 {
									r.makers[key] = maker{code: i, summary: m.summary}
								}
								break
							}
						}
						if codeShape.MatchString(c) {
							if m, ok := r.makers[dir+"."+ctx.name]; ok && coded == nil {
								m.fixed = c
								r.makers[dir+"."+ctx.name] = m
							} else if coded != nil && coded.code == "" {
								delete(r.sites, *coded)
								r.sites[site{c, coded.summary, coded.at}] = true
							} else {
								r.sites[site{c, "*", ctx.at(x)}] = true
							}
						}
					}
				}
			}
		case *ast.CallExpr:
			if m, ok := ctx.maker(x); ok && m.summary < len(x.Args) {
				codes := []string{m.fixed}
				if m.code >= 0 && m.code < len(x.Args) {
					codes = ctx.values(x.Args[m.code])
				}
				coded = ctx.add(x, codes, x.Args[m.summary], codeArg(x, m))
			}
		case *ast.CompositeLit:
			switch t := x.Type.(type) {
			case *ast.SelectorExpr:
				if notMessages[t.Sel.Name] {
					return true
				}
			case *ast.Ident:
				if notMessages[t.Name] {
					return true
				}
			}
			var summary, code ast.Expr
			for _, e := range x.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					id, ok := kv.Key.(*ast.Ident)
					if ok && id.Name == "Description" { // for a function
						return true
					}
					if ok && id.Name == "Summary" {
						summary = kv.Value
					} else if ok && id.Name == "Code" {
						code = kv.Value
					}
				}
			}
			if summary != nil {
				codes := []string{""}
				if code != nil {
					codes = ctx.values(code)
				}
				coded = ctx.add(x, codes, summary, code)
			}
		}
		return true
	})
}

func codeArg(x *ast.CallExpr, m maker) ast.Expr {
	if m.code >= 0 && m.code < len(x.Args) {
		return x.Args[m.code]
	}
	return nil
}

// A scope is one function.
type scope struct {
	r      *reader
	dir    string
	file   *ast.File
	name   string
	params map[string]int
	body   *ast.BlockStmt
}

func (c *scope) at(n ast.Node) string {
	p := c.r.fset.Position(n.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// maker reports whether a call creates a message.
func (c *scope) maker(x *ast.CallExpr) (maker, bool) {
	switch f := x.Fun.(type) {
	case *ast.Ident:
		m, ok := c.r.makers[c.dir+"."+f.Name]
		return m, ok
	case *ast.SelectorExpr:
		if id, ok := f.X.(*ast.Ident); ok {
			for _, imp := range c.file.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				name := path[strings.LastIndexByte(path, '/')+1:]
				if imp.Name != nil {
					name = imp.Name.Name
				}
				if name == id.Name {
					if m, ok := c.r.makers[name+"."+f.Sel.Name]; ok {
						return m, true
					}
					m, ok := c.r.makers[strings.TrimPrefix(path, "github.com/terrace-iac/terrace/")+"."+f.Sel.Name]
					return m, ok
				}
			}
		}
		m, ok := c.r.makers[c.dir+"."+f.Sel.Name]
		return m, ok
	}
	return maker{}, false
}

// add records the message, or that this function is a maker.
func (c *scope) add(n ast.Node, codes []string, summary, code ast.Expr) *site {
	if id, ok := summary.(*ast.Ident); ok {
		if i, ok := c.params[id.Name]; ok {
			m := maker{code: -1, summary: i}
			if cid, ok := code.(*ast.Ident); ok {
				if k, ok := c.params[cid.Name]; ok {
					m.code = k
				}
			}
			old, known := c.r.makers[c.dir+"."+c.name]
			m.fixed = old.fixed
			if codeShape.MatchString(codes[0]) {
				m.fixed = codes[0]
			}
			if c.name != "" {
				if known && m.code < 0 && old.code >= 0 {
					m.code = old.code
				}
				c.r.makers[c.dir+"."+c.name] = m
			}
			return nil
		}
	}
	var last *site
	for _, s := range c.values(summary) {
		if s == "" { // a default is used instead
			continue
		}
		for _, code := range codes {
			if code == "*" {
				code = ""
			}
			last = &site{code, s, c.at(n)}
			c.r.sites[*last] = true
		}
	}
	return last
}

// values returns the patterns that an expression can have.
func (c *scope) values(x ast.Expr) []string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if s, ok := literal(x); ok {
			return []string{s}
		}
	case *ast.ParenExpr:
		return c.values(x.X)
	case *ast.BinaryExpr:
		var out []string
		for _, a := range c.values(x.X) {
			for _, b := range c.values(x.Y) {
				out = append(out, strings.ReplaceAll(a+b, "**", "*"))
			}
		}
		return out
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); ok {
			for _, imp := range c.file.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				if path[strings.LastIndexByte(path, '/')+1:] == id.Name {
					if s, ok := c.r.consts[strings.TrimPrefix(path, "github.com/terrace-iac/terrace/")][x.Sel.Name]; ok {
						return []string{s}
					}
				}
			}
		}
		if x.Sel.Name == "summary" {
			var out []string
			for _, v := range c.r.fields[c.dir] {
				if s, ok := literal(v); ok {
					out = append(out, s)
				}
			}
			if out != nil {
				return out
			}
		}
	case *ast.CallExpr:
		if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sprintf" && len(x.Args) > 0 {
			if f, ok := literal(x.Args[0]); ok {
				return []string{regexp.MustCompile(`%[-+# 0-9.\[\]]*[a-zA-Z]`).ReplaceAllString(f, "*")}
			}
		}
		if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Or" { // cmp.Or
			var out []string
			for _, a := range x.Args {
				out = append(out, c.values(a)...)
			}
			return out
		}
	case *ast.Ident:
		if c.params == nil {
			break
		}
		if out := c.assigned(x.Name); out != nil {
			return out
		}
		if s, ok := c.r.consts[c.dir][x.Name]; ok {
			return []string{s}
		}
	}
	return []string{"*"}
}

// assigned returns the values that are assigned to a local variable.
func (c *scope) assigned(name string) []string {
	if c.body == nil {
		return nil
	}
	var out []string
	ast.Inspect(c.body, func(n ast.Node) bool {
		switch a := n.(type) {
		case *ast.AssignStmt:
			if len(a.Lhs) == len(a.Rhs) {
				for i, l := range a.Lhs {
					if id, ok := l.(*ast.Ident); ok && id.Name == name {
						if self, ok := a.Rhs[i].(*ast.Ident); ok && self.Name == name {
							continue
						}
						if a.Tok == token.ADD_ASSIGN {
							continue
						}
						out = append(out, c.values(a.Rhs[i])...)
					}
				}
			}
		case *ast.ValueSpec:
			for i, id := range a.Names {
				if id.Name == name && i < len(a.Values) {
					out = append(out, c.values(a.Values[i])...)
				}
			}
		}
		return true
	})
	return out
}
