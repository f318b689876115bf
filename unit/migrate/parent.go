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

// rewriteParent edits an included file so that it means the same as an imported one:
// functions that returned the directory of its child return that of the leaf unit. If both
// is set, some children still include the file, and it must mean the same to them.
//
// labels are the labels by which files include it. The text does not show whether a
// computed path is relative to the leaf unit's directory, or whether a command reads its
// working directory. These are not edited, and rendering decides.
func rewriteParent(d *document, both bool, labels []string) (out []reason) {
	no := func(at source.Range, format string, args ...any) {
		out = append(out, reason{d.path, at, fmt.Sprintf(format, args...)})
	}
	if len(d.blocks("include")) > 0 {
		return nil // it is also a child, and reported as one
	}
	for _, ref := range references(d.body) {
		if root, _ := step(ref, 0); root == "values" {
			no(ref.SourceRange(), "the included file reads the values of the unit that includes it")
		}
	}
	for _, c := range calls(d.body) {
		rewriteParentCall(d, c, both, labels, no)
	}
	for _, b := range d.body.Blocks {
		switch b.Type {
		case "dependency":
			leafPath(d, b.Body.Attributes["config_path"])
		case "dependencies":
			leafPaths(d, b.Body.Attributes["paths"])
		case "terraform":
			if a := b.Body.Attributes["source"]; a != nil {
				if s, ok := d.written(a.Expr); ok && unit.LocalSource(s) {
					leafPath(d, a)
				}
			}
		}
	}
	return out
}

const leafDir = "${get_original_terragrunt_dir()}/"

// rewriteParentCall edits one call in an included file.
func rewriteParentCall(d *document, c *hclsyntax.FunctionCallExpr, both bool, labels []string, no func(source.Range, string, ...any)) {
	rename := func(name string) { d.replaceRange(c.NameRange, name) }
	bare := len(c.Args) == 0
	if len(c.Args) == 1 && (strings.Contains(c.Name, "include") || c.Name == "get_parent_terragrunt_dir") {
		if label, ok := literal(c.Args[0]); ok && len(labels) == 1 && labels[0] == label { // the label refers to this file itself
			bare = true
			rename = func(name string) { d.replaceRange(c.Range(), name+"()") }
		}
	}
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
		switch {
		case !both:
			rename("get_terragrunt_dir")
		case len(c.Args) > 0: // both evaluate the function to the file's own directory
			rename(c.Name)
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
	case "read_terragrunt_config", "read_tfvars_file", "sops_decrypt_file", "mark_as_read":
		if len(c.Args) > 0 {
			leafArg(d, c.Args[0])
		}
	case "mark_glob_as_read":
		if len(c.Args) > 0 {
			leafArg(d, c.Args[len(c.Args)-1])
		}
	case "relpath":
		for _, a := range c.Args {
			leafArg(d, a)
		}
	}
}

// leafArg makes a relative path relative to the leaf's directory.
func leafArg(d *document, x hclsyntax.Expression) { baseArg(d, x, leafDir) }

// baseArg makes a relative path relative to dir, which ends with a slash.
func baseArg(d *document, x hclsyntax.Expression, dir string) {
	if s, ok := literal(x); ok {
		if !filepath.IsAbs(s) {
			at := x.Range()
			d.replace(at.Start.Byte+1, at.Start.Byte+1, dir)
		}
		return
	}
	if s, ok := d.written(x); ok && strings.HasPrefix(s, ".") {
		d.replaceRange(x.Range(), `"`+dir+`${`+d.source(inner(x).Range())+`}"`)
		return
	}
	if t, ok := x.(*hclsyntax.TemplateExpr); ok && len(t.Parts) > 0 {
		if l, ok := t.Parts[0].(*hclsyntax.LiteralValueExpr); ok {
			if v, _ := l.Value(nil); v.Type() == cty.String && !filepath.IsAbs(v.AsString()) && d.text[x.Range().Start.Byte] == '"' {
				d.replace(x.Range().Start.Byte+1, x.Range().Start.Byte+1, dir)
			}
		}
	}
}

func leafPath(d *document, a *hclsyntax.Attribute) {
	if a != nil {
		leafArg(d, a.Expr)
	}
}

func leafPaths(d *document, a *hclsyntax.Attribute) {
	if a == nil {
		return
	}
	if list, ok := a.Expr.(*hclsyntax.TupleConsExpr); ok {
		for _, x := range list.Exprs {
			leafArg(d, x)
		}
	}
}

// inner returns the expression in a template that contains nothing else.
func inner(x hclsyntax.Expression) hclsyntax.Expression {
	if w, ok := x.(*hclsyntax.TemplateWrapExpr); ok {
		return w.Wrapped
	}
	return x
}

// written returns the text of an expression that is a literal, or a local value that is
// one.
func (d *document) written(x hclsyntax.Expression) (string, bool) {
	ref, ok := inner(x).(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return literal(x)
	}
	if root, _ := step(ref.Traversal, 0); root != "local" || len(ref.Traversal) != 2 {
		return "", false
	}
	name, _ := step(ref.Traversal, 1)
	for _, b := range d.blocks("locals") {
		if a := b.Body.Attributes[name]; a != nil {
			return literal(a.Expr)
		}
	}
	return "", false
}
