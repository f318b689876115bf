package index

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// # Paths of unit files
//
// The index computes the paths of dependencies, imports, includes and sources without evaluating the
// unit. It knows literals, functions that return directories of the file, and local values that
// consist of both. Other paths are not in the index.

func isString(v cty.Value) bool {
	return v != cty.NilVal && v.Type() == cty.String && v.IsWhollyKnown() && !v.IsNull() && !v.IsMarked()
}

func quote(s string) string { return strconv.Quote(s) }

// path returns the value of an expression for a path, or "".
func (w *walker) path(x hclsyntax.Expression, body *hclsyntax.Body) string {
	return Paths{Dir: filepath.Dir(w.Path), Find: w.find, Module: w.Kind.OfModule() || w.Kind == Test, Part: w.Kind == Unit && !IsDefault(w.Path)}.Value(x, body)
}

// read returns the path of the file that an expression reads as a unit file, or "".
func (w *walker) read(x hclsyntax.Expression, body *hclsyntax.Body) string {
	call := readCall(x)
	if call == nil {
		return ""
	}
	return w.path(call.Args[0], body)
}

// readCall returns the expression as a call that reads a unit file, or nil.
func readCall(x hclsyntax.Expression) *hclsyntax.FunctionCallExpr {
	if wrap, ok := x.(*hclsyntax.TemplateWrapExpr); ok { // in JSON syntax
		x = wrap.Wrapped
	}
	call, ok := x.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "read_terragrunt_config" || len(call.Args) == 0 {
		return nil
	}
	return call
}

// finds returns the name of the file that an expression reads where find_in_parent_folders finds it, or "".
func (w *walker) finds(x hclsyntax.Expression) string {
	if wrap, ok := x.(*hclsyntax.TemplateWrapExpr); ok { // in JSON syntax
		x = wrap.Wrapped
	}
	read, ok := x.(*hclsyntax.FunctionCallExpr)
	if !ok || read.Name != "read_terragrunt_config" || len(read.Args) == 0 || IsDefault(w.Path) {
		return ""
	}
	find, ok := read.Args[0].(*hclsyntax.FunctionCallExpr)
	if !ok || find.Name != "find_in_parent_folders" || len(find.Args) == 0 {
		return ""
	}
	return w.constant(find.Args[0])
}

// Paths computes the paths that expressions of a file name.
type Paths struct {
	Dir string // of the file
	// Find returns the path of a file in the parents of a directory, or "".
	Find func(dir, name string) string
	// Local replaces the value of a local value, if ok is true. nil replaces none.
	Local func(name, value string) (string, bool)
	// Module makes path.module known, which is Dir.
	Module bool
	// Part means that units may include the file: the directory of the unit file is not known, and the paths
	// are relative to it.
	Part bool
}

// IsDefault reports whether a file has the default name of unit files.
func IsDefault(path string) bool {
	base := filepath.Base(path)
	return base == unit.DefaultName || base == unit.DefaultJSONName
}

// maxPathDepth is the number of local values that a path may use one through the other.
const maxPathDepth = 3

// Value returns the value of an expression in a file with a body, or "" if it is not known.
func (p Paths) Value(x hclsyntax.Expression, body *hclsyntax.Body) string {
	return p.value(x, body, 0)
}

func (p Paths) value(x hclsyntax.Expression, body *hclsyntax.Body, depth int) string {
	ctx := &hcl.EvalContext{Functions: p.functions(), Variables: map[string]cty.Value{}}
	if p.Module {
		ctx.Functions = nil
		ctx.Variables["path"] = cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(filepath.ToSlash(p.Dir))})
	}
	if refs := x.Variables(); len(refs) > 0 {
		if depth > maxPathDepth {
			return ""
		}
		locals := map[string]cty.Value{}
		for _, t := range refs {
			n, ok := attr(t, 1)
			if p.Module && ok && t.RootName() == "path" && n == "module" && len(t) == 2 {
				continue
			}
			if !ok || t.RootName() != "local" || len(t) != 2 {
				return ""
			}
			s := ""
			for _, b := range body.Blocks {
				if a := b.Body.Attributes[n]; b.Type == "locals" && a != nil {
					s = p.value(a.Expr, body, depth+1)
				}
			}
			if p.Local != nil {
				if other, ok := p.Local(n, s); ok {
					s = other
				}
			}
			if s == "" {
				return ""
			}
			locals[n] = cty.StringVal(s)
		}
		if len(locals) > 0 {
			ctx.Variables["local"] = cty.ObjectVal(locals)
		}
	}
	v, diags := x.Value(ctx)
	if diags.HasErrors() || !isString(v) {
		return ""
	}
	return v.AsString()
}

// find returns the path of a file in the parents of a directory, or "". Searched gets its name.
func (w *walker) find(dir, name string) string {
	w.Searched = append(w.Searched, filepath.Base(name))
	at := filepath.Dir(dir)
	if base := filepath.Base(w.Path); base != unit.DefaultName && base != unit.DefaultJSONName && w.exists(filepath.Join(dir, name)) && name != base {
		at = dir // an included file searches from the directories of the units below it
	}
	for ; ; at = filepath.Dir(at) {
		if w.exists(filepath.Join(at, name)) {
			return filepath.Join(at, name)
		}
		if filepath.Dir(at) == at {
			return ""
		}
	}
}

// functions returns the functions of paths for a file in a directory.
func (p Paths) functions() map[string]function.Function {
	dir := p.Dir
	text := func(f func(args []string) string) function.Function {
		return function.New(&function.Spec{
			VarParam: &function.Parameter{Type: cty.String}, Type: function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				var words []string
				for _, a := range args {
					words = append(words, a.AsString())
				}
				if s := f(words); s != "" {
					return cty.StringVal(filepath.ToSlash(s)), nil
				}
				return cty.UnknownVal(cty.String), nil
			},
		})
	}
	here := text(func([]string) string {
		if p.Part {
			return "."
		}
		return dir
	})
	return map[string]function.Function{
		"get_terragrunt_dir": here, "get_original_terragrunt_dir": here,
		"get_repo_root": text(func([]string) string {
			return strings.TrimSuffix(sys.Nearest(dir, ".git"), string(filepath.Separator)+".git")
		}),
		"dirname": text(func(a []string) string {
			path := strings.Join(a, "")
			if path == "." || strings.HasSuffix(path, "..") {
				return filepath.Join(path, "..")
			}
			return filepath.Dir(path)
		}),
		"find_in_parent_folders": text(func(a []string) string {
			name := unit.DefaultName
			if len(a) > 0 {
				name = a[0]
			}
			return p.Find(dir, name)
		}),
	}
}
