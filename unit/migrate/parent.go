package migrate

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// rewriteParent makes an included file mean as an imported one what it meant
// before: the leaf unit's folder where it meant its child's.
// With both, some go on including it, and it must mean the same to them.
func rewriteParent(d *document, both bool) (out []reason) {
	no := func(at source.Range, format string, args ...any) {
		out = append(out, reason{d.path, at, fmt.Sprintf(format, args...)})
	}
	if len(d.blocks("include")) > 0 {
		return nil // it is a child too, and told so there
	}
	for _, ref := range references(d.body) {
		if root, _ := step(ref, 0); root == "values" {
			no(ref.SourceRange(), "the included file reads the values of the unit that includes it")
		}
	}
	for _, c := range calls(d.body) {
		rewriteParentCall(d, c, both, no)
	}
	for _, b := range d.body.Blocks {
		switch b.Type {
		case "dependency":
			leafPath(d, b.Body.Attributes["config_path"], no)
		case "dependencies":
			leafPaths(d, b.Body.Attributes["paths"], no)
		case "terraform":
			if a := b.Body.Attributes["source"]; a != nil {
				if s, ok := literal(a.Expr); ok && unit.LocalSource(s) {
					leafPath(d, a, no)
				}
			}
		}
	}
	return out
}

const leafDir = "${get_original_terragrunt_dir()}/"

// rewriteParentCall edits one call in an included file.
func rewriteParentCall(d *document, c *hclsyntax.FunctionCallExpr, both bool, no func(source.Range, string, ...any)) {
	rename := func(name string) { d.replaceRange(c.NameRange, name) }
	bare := len(c.Args) == 0
	switch c.Name {
	case "path_relative_to_include", "path_relative_from_include":
		if !bare {
			no(c.Range(), "the included file calls %s with a label of its child", c.Name)
			return
		}
		rename(strings.Replace(c.Name, "include", "import", 1))
	case "get_parent_terragrunt_dir":
		if !bare {
			no(c.Range(), "the included file calls %s with a label of its child", c.Name)
			return
		}
		if !both { // that function means the file's own folder to both
			rename("get_terragrunt_dir")
		}
	case "get_terragrunt_dir":
		rename("get_original_terragrunt_dir")
	case "find_in_parent_folders":
		rename("find_in_parent_folders_from_importing_config")
		if bare {
			d.replaceRange(hcl.RangeBetween(c.OpenParenRange, c.CloseParenRange), `("`+unit.DefaultName+`")`)
		}
	case "get_path_from_repo_root":
		d.replaceRange(c.Range(), "relpath(get_repo_root(), get_original_terragrunt_dir())")
	case "get_path_to_repo_root":
		d.replaceRange(c.Range(), "relpath(get_original_terragrunt_dir(), get_repo_root())")
	case "run_cmd":
		no(c.Range(), "the included file runs a command in the folder of the unit that includes it")
	case "read_terragrunt_config", "read_tfvars_file", "sops_decrypt_file", "mark_as_read":
		if len(c.Args) > 0 {
			leafArg(d, c.Args[0], no)
		}
	case "mark_glob_as_read", "relpath":
		no(c.Range(), "the included file calls %s, which counts from the folder of the unit that includes it", c.Name)
	}
}

// leafArg makes a relative path count from the leaf's folder.
func leafArg(d *document, x hclsyntax.Expression, no func(source.Range, string, ...any)) {
	if s, ok := literal(x); ok {
		if !filepath.IsAbs(s) {
			at := x.Range()
			d.replace(at.Start.Byte+1, at.Start.Byte+1, leafDir)
		}
		return
	}
	if t, ok := x.(*hclsyntax.TemplateExpr); ok && len(t.Parts) > 0 {
		if l, ok := t.Parts[0].(*hclsyntax.LiteralValueExpr); ok {
			if v, _ := l.Value(nil); v.Type() == cty.String && !filepath.IsAbs(v.AsString()) && d.text[x.Range().Start.Byte] == '"' {
				d.replace(x.Range().Start.Byte+1, x.Range().Start.Byte+1, leafDir)
				return
			}
		}
	}
	if !d.beginsAbsolute(x, 0) {
		no(x.Range(), "it is not clear whether the path %s in the included file counts from the folder of the unit that includes it", d.source(x.Range()))
	}
}

func leafPath(d *document, a *hclsyntax.Attribute, no func(source.Range, string, ...any)) {
	if a != nil {
		leafArg(d, a.Expr, no)
	}
}

func leafPaths(d *document, a *hclsyntax.Attribute, no func(source.Range, string, ...any)) {
	if a == nil {
		return
	}
	list, ok := a.Expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		no(a.Expr.Range(), "it is not clear whether the paths in the included file count from the folder of the unit that includes it")
		return
	}
	for _, x := range list.Exprs {
		leafArg(d, x, no)
	}
}

// beginsAbsolute tells expressions that give an absolute path: calls that do,
// templates that begin with one, and local values that are one.
func (d *document) beginsAbsolute(x hclsyntax.Expression, depth int) bool {
	if depth > 10 {
		return false
	}
	switch x := x.(type) {
	case *hclsyntax.FunctionCallExpr:
		switch x.Name {
		case "find_in_parent_folders":
			return len(x.Args) < 2 || d.beginsAbsolute(x.Args[1], depth+1) || hasFallbackOnly(x)
		case "get_terragrunt_dir", "get_parent_terragrunt_dir", "get_repo_root", "get_original_terragrunt_dir", "abspath":
			return true
		case "dirname", "format":
			return len(x.Args) > 0 && d.beginsAbsolute(x.Args[0], depth+1)
		}
	case *hclsyntax.TemplateExpr:
		if len(x.Parts) == 0 {
			return false
		}
		if l, ok := x.Parts[0].(*hclsyntax.LiteralValueExpr); ok {
			v, _ := l.Value(nil)
			return v.Type() == cty.String && filepath.IsAbs(v.AsString())
		}
		return d.beginsAbsolute(x.Parts[0], depth+1)
	case *hclsyntax.TemplateWrapExpr:
		return d.beginsAbsolute(x.Wrapped, depth+1)
	case *hclsyntax.ParenthesesExpr:
		return d.beginsAbsolute(x.Expression, depth+1)
	case *hclsyntax.ScopeTraversalExpr:
		if root, _ := step(x.Traversal, 0); root != "local" || len(x.Traversal) != 2 {
			return false
		}
		name, _ := step(x.Traversal, 1)
		for _, b := range d.blocks("locals") {
			if a := b.Body.Attributes[name]; a != nil {
				return d.beginsAbsolute(a.Expr, depth+1)
			}
		}
	}
	return false
}

// hasFallbackOnly tells calls whose fallback names no file at all, as people
// write it to get the default of read_terragrunt_config.
func hasFallbackOnly(x *hclsyntax.FunctionCallExpr) bool {
	s, ok := literal(x.Args[1])
	return ok && !strings.ContainsAny(s, "/.")
}
