package index

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/unit"
)

// A PathRole is the meaning of a path in a file.
type PathRole uint8

// The meanings of paths.
const (
	ModuleSource PathRole = iota // the source of a module call or of a test run: local if it begins with ./ or ../
	UnitSource                   // the source of a unit, an environment's module or a part of a stack, with // and a query
	UnitPath                     // a unit: its file, or its directory
	FilePath                     // a file
	LocalPath                    // a local value, which other paths of the file use
)

// A PathRef is an expression of a file that names another file or directory.
type PathRef struct {
	Role PathRole
	Expr hclsyntax.Expression
	Name string // of a LocalPath
}

// readers are the functions of unit files and modules whose first argument is a path of a file.
var readers = []string{
	"file", "filebase64", "filebase64sha256", "filebase64sha512", "fileexists", "filemd5", "filesha1", "filesha256", "filesha512",
	"templatefile", "read_terragrunt_config", "read_tfvars_file", "sops_decrypt_file",
}

// PathRefs returns the expressions of a file that name other files or directories: local values first,
// then in the order of their positions.
func PathRefs(kind Kind, body *hclsyntax.Body) []PathRef {
	var out []PathRef
	add := func(role PathRole, b *hclsyntax.Body, names ...string) {
		for _, n := range names {
			if a := b.Attributes[n]; a != nil {
				out = append(out, PathRef{Role: role, Expr: a.Expr})
			}
		}
	}
	list := func(role PathRole, b *hclsyntax.Body, name string) {
		if a := b.Attributes[name]; a != nil {
			if x, ok := a.Expr.(*hclsyntax.TupleConsExpr); ok {
				for _, e := range x.Exprs {
					out = append(out, PathRef{Role: role, Expr: e})
				}
			}
		}
	}
	for _, b := range body.Blocks {
		switch kind {
		case Module, JSON, Test:
			switch b.Type {
			case "module":
				add(ModuleSource, b.Body, "source")
			case "mock_provider":
				add(ModuleSource, b.Body, "source")
			case "run":
				for _, m := range b.Body.Blocks {
					if m.Type == "module" {
						add(ModuleSource, m.Body, "source")
					}
				}
			}
		case Unit, Stack:
			switch b.Type {
			case "locals":
				for _, a := range b.Body.Attributes {
					out = append(out, PathRef{Role: LocalPath, Expr: a.Expr, Name: a.Name})
				}
			case "dependency", "import":
				add(UnitPath, b.Body, "config_path")
			case "dependencies":
				list(UnitPath, b.Body, "paths")
			case "include":
				add(FilePath, b.Body, "path")
			case "module", "unit", "stack":
				add(UnitSource, b.Body, "source")
			case "terraform":
				add(UnitSource, b.Body, "source")
				for _, n := range b.Body.Blocks {
					list(FilePath, n.Body, "required_var_files")
					list(FilePath, n.Body, "optional_var_files")
				}
			}
		}
	}
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && len(call.Args) > 0 && slices.Contains(readers, call.Name) {
			role := FilePath
			if call.Name == "read_terragrunt_config" {
				role = UnitPath
			}
			out = append(out, PathRef{Role: role, Expr: call.Args[0]})
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b PathRef) int {
		if (a.Role == LocalPath) != (b.Role == LocalPath) {
			if a.Role == LocalPath {
				return -1
			}
			return 1
		}
		return a.Expr.Range().Start.Byte - b.Expr.Range().Start.Byte
	})
	return out
}

// FindCalls returns the calls of find_in_parent_folders in a file, with the name that each looks for. A
// name that is not constant is "".
func FindCalls(body *hclsyntax.Body) (calls []*hclsyntax.FunctionCallExpr, names []string) {
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "find_in_parent_folders" {
			name := unit.DefaultName
			if len(call.Args) > 0 {
				name = (&walker{}).constant(call.Args[0])
			}
			calls, names = append(calls, call), append(names, name)
		}
		return nil
	})
	return calls, names
}

// Literal returns the range of the constant text in a path, and the expressions before it. ok is false
// if the path does not end with constant text that begins with a slash, or is constant as a whole.
func Literal(x hclsyntax.Expression) (text hcl.Range, before *hclsyntax.TemplateExpr, ok bool) {
	t, ok := x.(*hclsyntax.TemplateExpr)
	if !ok || len(t.Parts) == 0 {
		return text, nil, false
	}
	last, ok := t.Parts[len(t.Parts)-1].(*hclsyntax.LiteralValueExpr)
	if !ok || !isString(last.Val) {
		return text, nil, false
	}
	if len(t.Parts) == 1 {
		return last.SrcRange, nil, true
	}
	if s := last.Val.AsString(); s == "" || s[0] != '/' {
		return text, nil, false
	}
	return last.SrcRange, &hclsyntax.TemplateExpr{Parts: t.Parts[:len(t.Parts)-1], SrcRange: t.SrcRange}, true
}
