package migrate

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/source"
)

// A document is one file that is edited in place. Text outside of the edits is unchanged,
// including comments.
type document struct {
	path  string
	text  []byte
	body  *hclsyntax.Body
	tidy  bool // the file was formatted before, so the result is formatted
	edits []edit
}

type edit struct {
	from, to int
	text     string
}

// replace replaces the bytes from from up to to.
func (d *document) replace(from, to int, text string) {
	d.edits = append(d.edits, edit{from, to, text})
}

func (d *document) replaceRange(at source.Range, text string) {
	d.replace(at.Start.Byte, at.End.Byte, text)
}

// source returns the text of a range.
func (d *document) source(at source.Range) string {
	return string(at.SliceBytes(d.text))
}

// removeLine removes an argument, with its line if nothing else is on it.
func (d *document) removeLine(at source.Range) {
	from, to := at.Start.Byte, at.End.Byte
	for from > 0 && (d.text[from-1] == ' ' || d.text[from-1] == '\t') {
		from--
	}
	for to < len(d.text) && (d.text[to] == ' ' || d.text[to] == '\t' || d.text[to] == '\r') {
		to++
	}
	if to < len(d.text) && d.text[to] == '\n' && (from == 0 || d.text[from-1] == '\n') {
		to++
	} else {
		from, to = at.Start.Byte, at.End.Byte
	}
	d.replace(from, to, "")
}

// result returns the text after all edits.
func (d *document) result() []byte {
	slices.SortStableFunc(d.edits, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, e := range d.edits {
		if e.from < at {
			continue // an edit within a replaced range
		}
		out.Write(d.text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(d.text[at:])
	if d.tidy {
		return hclwrite.Format(out.Bytes())
	}
	return out.Bytes()
}

// usesOwnFunctions reports whether the edits add calls of functions that Terragrunt lacks.
func (d *document) usesOwnFunctions() bool {
	return slices.ContainsFunc(d.edits, func(e edit) bool {
		return slices.ContainsFunc([]string{"find_in_parent_folders_from_importing_config", "path_relative_to_import", "path_relative_from_import", "relpath("}, func(name string) bool { return strings.Contains(e.text, name) })
	})
}

// blocks returns the blocks of a type at the top.
func (d *document) blocks(name string) []*hclsyntax.Block {
	var out []*hclsyntax.Block
	for _, b := range d.body.Blocks {
		if b.Type == name {
			out = append(out, b)
		}
	}
	return out
}

// calls returns the function calls in the document, or in a part of it.
func calls(n hclsyntax.Node) []*hclsyntax.FunctionCallExpr {
	w := &walker{}
	_ = hclsyntax.Walk(n, w)
	return w.calls
}

// references returns the references in the document, or in a part of it.
func references(n hclsyntax.Node) []hcl.Traversal {
	w := &walker{}
	_ = hclsyntax.Walk(n, w)
	return w.refs
}

type walker struct {
	calls []*hclsyntax.FunctionCallExpr
	refs  []hcl.Traversal
}

func (w *walker) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch n := n.(type) {
	case *hclsyntax.FunctionCallExpr:
		w.calls = append(w.calls, n)
	case *hclsyntax.ScopeTraversalExpr:
		w.refs = append(w.refs, n.Traversal)
	}
	return nil
}

func (w *walker) Exit(hclsyntax.Node) hcl.Diagnostics { return nil }

// literal returns the text of an expression that is only a quoted string.
func literal(x hclsyntax.Expression) (string, bool) {
	t, ok := x.(*hclsyntax.TemplateExpr)
	if !ok || !t.IsStringLiteral() {
		return "", false
	}
	v, diags := t.Value(nil)
	if diags.HasErrors() {
		return "", false
	}
	return v.AsString(), true
}

// step returns the name of the ith step of a reference.
func step(ref hcl.Traversal, i int) (string, bool) {
	if i >= len(ref) {
		return "", false
	}
	switch s := ref[i].(type) {
	case hcl.TraverseRoot:
		return s.Name, true
	case hcl.TraverseAttr:
		return s.Name, true
	}
	return "", false
}
