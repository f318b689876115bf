package migrate

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
)

// reads turns local values that are only calls of read_terragrunt_config into imports, file
// by file.
func (m *migration) reads() {
	var files []string
	for _, l := range m.before {
		if !m.asked[l.path] {
			continue
		}
		files = append(files, l.path)
		for _, f := range l.files {
			if strings.HasSuffix(f, ".hcl") {
				files = append(files, f)
			}
		}
	}
	slices.Sort(files)
	texts, gone := map[string][]byte{}, map[string][]string{}
	for _, path := range slices.Compact(files) {
		d, err := m.parse(path)
		if err != nil || m.included[path] {
			continue // not a unit file, or in JSON, or a file that cannot contain imports
		}
		names, reasons := rewriteReads(d)
		for _, r := range reasons {
			m.leave(r.path, r.at, r.text)
		}
		if len(names) > 0 {
			texts[path], gone[path] = d.result(), names
		}
	}
	for len(texts) > 0 {
		after := m.look(m.merged(texts))
		bad := m.blame(after, texts, gone)
		if len(bad) == 0 {
			break
		}
		for path, why := range bad {
			m.leave(path, source.Range{}, why)
			delete(texts, path)
			delete(gone, path)
		}
	}
	for path, text := range texts {
		m.set(path, text)
	}
}

// blame returns the edited files without which every unit is rendered as before, with the
// reason. For a unit that differs, these are its own file if it was edited, or else all
// edited files that it uses.
func (m *migration) blame(after []*look, texts map[string][]byte, gone map[string][]string) map[string]string {
	bad := map[string]string{}
	for i, b := range m.before {
		d := differs(b, after[i], gone[b.path], nil)
		if d == "" {
			continue
		}
		if _, edited := texts[b.path]; edited {
			bad[b.path] = d
			continue
		}
		for path := range texts {
			if b.uses(path) {
				bad[path] = b.path + " uses it: " + d
			}
		}
	}
	return bad
}

// rewriteReads edits one file. It returns the local values that became imports.
func rewriteReads(d *document) (names []string, out []reason) {
	blocks := d.blocks("locals")
	if len(blocks) != 1 {
		return nil, nil
	}
	locals := blocks[0]
	var found []*hclsyntax.Attribute
	for _, a := range locals.Body.Attributes {
		if c, ok := a.Expr.(*hclsyntax.FunctionCallExpr); ok && c.Name == "read_terragrunt_config" {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	if len(found) == 0 {
		return nil, nil
	}
	if len(d.blocks("include")) > 0 {
		return nil, []reason{{d.path, found[0].SrcRange, "the file still includes another, and imports do not go with that"}}
	}
	var block strings.Builder
	for _, a := range found {
		if why := unreadable(d, a); why != "" {
			out = append(out, reason{d.path, a.SrcRange, why})
			continue
		}
		names = append(names, a.Name)
		c := a.Expr.(*hclsyntax.FunctionCallExpr)
		block.WriteString("import \"" + a.Name + "\" {\n  config_path = " + d.source(c.Args[0].Range()) + "\n}\n\n")
	}
	if len(names) == 0 {
		return nil, out
	}
	rewriteLocals(d, locals, names, block.String())
	for _, ref := range references(d.body) {
		if root, _ := step(ref, 0); root == "local" {
			if name, _ := step(ref, 1); slices.Contains(names, name) {
				d.replaceRange(ref[0].SourceRange(), "import")
			}
		}
	}
	return names, out
}

// rewriteLocals inserts the imports before the locals block and removes the values from it.
// It removes the block if that becomes empty.
func rewriteLocals(d *document, locals *hclsyntax.Block, names []string, imports string) {
	if len(names) == len(locals.Body.Attributes) && !commented(d, locals) {
		at := hcl.RangeBetween(locals.TypeRange, locals.CloseBraceRange)
		d.replaceRange(at, strings.TrimRight(imports, "\n"))
		return
	}
	d.replace(locals.TypeRange.Start.Byte, locals.TypeRange.Start.Byte, imports)
	for _, name := range names {
		d.removeLine(locals.Body.Attributes[name].SrcRange)
	}
}

// commented reports whether a block contains comments, which must be kept.
func commented(d *document, b *hclsyntax.Block) bool {
	tokens, _ := hclsyntax.LexConfig(d.text[b.OpenBraceRange.Start.Byte:b.CloseBraceRange.End.Byte], d.path, hcl.InitialPos)
	return slices.ContainsFunc(tokens, func(t hclsyntax.Token) bool { return t.Type == hclsyntax.TokenComment })
}

// unreadable returns the reason why a local value cannot become an import, or "".
func unreadable(d *document, a *hclsyntax.Attribute) string {
	c := a.Expr.(*hclsyntax.FunctionCallExpr)
	if len(c.Args) != 1 || c.ExpandFinal {
		return "read_terragrunt_config has a default here, and an import must find its file"
	}
	for _, ref := range references(c.Args[0]) {
		if root, _ := step(ref, 0); root != "values" {
			return "the path refers to " + root + ", and imports are read before that"
		}
	}
	for _, b := range d.blocks("import") {
		if len(b.Labels) > 0 && b.Labels[0] == a.Name {
			return "there is an import of that name already"
		}
	}
	for _, ref := range references(d.body) {
		root, _ := step(ref, 0)
		if name, _ := step(ref, 1); root != "local" || name != a.Name {
			continue
		}
		if _, ok := step(ref, 2); !ok {
			return "what was read is used as a whole"
		}
	}
	return ""
}
