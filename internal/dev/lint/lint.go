// Package lint checks rules that the compiler does not: only some packages have effects,
// there is no package-level state, contexts come from the caller, every goroutine has an
// owner, every package has a comment, comments begin with names, and names and comments use
// the field's words. Its test checks the module: go test ./internal/dev/lint.
//
// Main types: Finding and Package. The one rule: exceptions are in the tables of rules.go,
// each with its reason.
package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Finding is a violation of a rule.
type Finding struct {
	File string // with slashes, relative to the root of the module
	Line int
	Text string
}

func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// A Package contains the Go files of a directory, except tests and generated files.
type Package struct {
	Name  string // the directory, relative to the root of the module
	Files []*File
}

// A File is a parsed file.
type File struct {
	Path    string
	AST     *ast.File
	fset    *token.FileSet
	imports map[string]string // name in the file → import path
}

// CheckPackage applies the rules to one package.
func CheckPackage(p *Package) []Finding {
	c := &checker{p: p}
	c.comment()
	c.variables()
	for _, f := range p.Files {
		c.f = f
		c.effects()
		c.contexts()
		c.goroutines()
		c.unfinished()
		c.texts()
		c.words()
		c.docNames()
	}
	slices.SortFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return c.found
}

type checker struct {
	p     *Package
	f     *File
	found []Finding
}

func (c *checker) report(pos token.Pos, format string, args ...any) {
	c.found = append(c.found, Finding{c.f.Path, c.f.fset.Position(pos).Line, fmt.Sprintf(format, args...)})
}

// Read parses the module in a directory. It skips directories named testdata, directories
// that begin with a dot or underscore, and nested modules.
func Read(root string) ([]*Package, error) {
	var out []*Package
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, name, d.Name())
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := Parse(fset, filepath.ToSlash(rel), src)
		if err != nil || f == nil {
			return err
		}
		dir := path.Dir(f.Path)
		i := slices.IndexFunc(out, func(p *Package) bool { return p.Name == dir })
		if i < 0 {
			i, out = len(out), append(out, &Package{Name: dir})
		}
		out[i].Files = append(out[i].Files, f)
		return nil
	})
	return out, err
}

func enter(root, name, base string) error {
	if name == root {
		return nil
	}
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// Parse parses one file. It returns nil for a generated file.
func Parse(fset *token.FileSet, name string, src []byte) (*File, error) {
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	f := &File{Path: name, AST: tree, fset: fset, imports: map[string]string{}}
	for _, imp := range tree.Imports {
		p := strings.Trim(imp.Path.Value, `"`)
		as := path.Base(p)
		if imp.Name != nil {
			as = imp.Name.Name
		}
		f.imports[as] = p
	}
	return f, nil
}

// qualified returns a selector of an imported package with the package's path, such as
// "os.Getenv", or "".
func (f *File) qualified(x ast.Expr) string {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	p, ok := f.imports[id.Name]
	if !ok {
		return ""
	}
	return p + "." + sel.Sel.Name
}
