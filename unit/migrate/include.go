package migrate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// reason says why something cannot be rewritten, and where.
type reason struct {
	path string
	at   source.Range
	text string
}

// group is files that can only go over together: children and what they include.
type group struct {
	units   []int    // indexes of the units
	parents []string // the files that they include
	reasons []reason
	texts   map[string][]byte
}

// includes rewrites the groups that come out the same.
func (m *migration) includes() {
	groups := m.groups()
	m.included = map[string]bool{}
	for _, g := range groups {
		for _, p := range g.parents {
			m.included[p] = true
		}
	}
	all := map[string][]byte{}
	for _, g := range groups {
		m.rewriteGroup(g)
		if len(g.reasons) == 0 {
			for p, t := range g.texts {
				all[p] = t
			}
		}
	}
	if len(all) == 0 {
		m.leaveGroups(groups)
		return
	}
	after := m.look(m.merged(all))
	for _, g := range groups {
		if len(g.reasons) > 0 {
			continue
		}
		for _, i := range g.units {
			if d := differs(m.before[i], after[i], nil); d != "" {
				g.reasons = append(g.reasons, reason{m.units[i], source.Range{}, d})
			}
		}
		if len(g.reasons) > 0 {
			continue
		}
		for p, t := range g.texts {
			m.set(p, t)
		}
		for _, p := range g.parents {
			delete(m.included, p)
		}
	}
	m.leaveGroups(groups)
}

// leaveGroups lists why groups stay as they are. A file without a reason of its
// own names the one that it hangs together with.
func (m *migration) leaveGroups(groups []*group) {
	for _, g := range groups {
		if len(g.reasons) == 0 {
			continue
		}
		named := map[string]bool{}
		for _, r := range g.reasons {
			m.leave(r.path, r.at, r.text)
			named[r.path] = true
		}
		first := g.reasons[0]
		for _, i := range g.units {
			if !named[m.units[i]] {
				m.leave(m.units[i], source.Range{}, fmt.Sprintf("it hangs together with %s, which stays as it is: %s", first.path, first.text))
			}
		}
	}
}

// groups joins the units that include the same files.
func (m *migration) groups() []*group {
	owner := map[string]int{} // by file: a unit that includes it
	up := make([]int, len(m.units))
	for i := range up {
		up[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		for up[i] != i {
			up[i] = up[up[i]]
			i = up[i]
		}
		return i
	}
	index := map[string]int{}
	for i, p := range m.units {
		index[p] = i
	}
	for i, l := range m.before {
		for _, in := range l.includes {
			if !in.Include {
				continue
			}
			if j, ok := owner[in.Path]; ok {
				up[find(i)] = find(j)
			}
			owner[in.Path] = i
			if j, ok := index[in.Path]; ok { // an included file that is a unit itself
				up[find(i)] = find(j)
			}
		}
	}
	byRoot := map[int]*group{}
	var out []*group
	for i, l := range m.before {
		root := find(i)
		g := byRoot[root]
		if g == nil {
			g = &group{texts: map[string][]byte{}}
			byRoot[root] = g
			out = append(out, g)
		}
		g.units = append(g.units, i)
		for _, in := range l.includes {
			if in.Include && !slices.Contains(g.parents, in.Path) {
				g.parents = append(g.parents, in.Path)
			}
		}
	}
	return slices.DeleteFunc(out, func(g *group) bool { return len(g.parents) == 0 })
}

// rewriteGroup edits all files of a group, or finds out why that cannot be.
func (m *migration) rewriteGroup(g *group) {
	docs := map[string]*document{}
	open := func(path string) *document {
		if d := docs[path]; d != nil {
			return d
		}
		d, err := m.parse(path)
		if err != nil {
			g.reasons = append(g.reasons, reason{path, source.Range{}, err.Error()})
			return nil
		}
		docs[path] = d
		return d
	}
	for _, i := range g.units {
		if !m.before[i].loaded {
			g.reasons = append(g.reasons, reason{m.units[i], source.Range{}, "it cannot be read as it is: " + m.before[i].err})
			continue
		}
		if d := open(m.units[i]); d != nil {
			g.reasons = append(g.reasons, rewriteChild(d, m.before[i].includes)...)
		}
	}
	for _, p := range g.parents {
		if d := open(p); d != nil {
			g.reasons = append(g.reasons, rewriteParent(d)...)
		}
	}
	for p, d := range docs {
		g.texts[p] = d.result()
	}
}

// rewriteChild turns the include blocks of a file into import blocks.
func rewriteChild(d *document, includes []unit.Imported) (out []reason) {
	blocks := d.blocks("include")
	if len(blocks) == 0 {
		return nil // an included file that is a unit too
	}
	no := func(at source.Range, format string, args ...any) {
		out = append(out, reason{d.path, at, fmt.Sprintf(format, args...)})
	}
	names := map[string]string{} // by label
	for _, b := range blocks {
		label, name := "", ""
		if len(b.Labels) > 0 {
			label, name = b.Labels[0], b.Labels[0]
		} else {
			name = bareName(blocks, includes)
		}
		if !hclsyntax.ValidIdentifier(name) {
			no(b.DefRange(), "the label %q is no identifier, as the name of an import must be", name)
			continue
		}
		names[label] = name
		rewriteBlock(d, b, name)
	}
	for _, ref := range references(d.body) {
		if root, _ := step(ref, 0); root == "include" {
			rewriteRef(d, ref, names, no)
		}
	}
	for _, c := range calls(d.body) {
		rewriteChildCall(d, c, names, no)
	}
	return out
}

// bareName is what an include block without label is called from now on: as the
// file that it includes, unless that is called as all are.
func bareName(blocks []*hclsyntax.Block, includes []unit.Imported) string {
	name := "root"
	for _, in := range includes {
		if in.Label == "" {
			stem, _, _ := strings.Cut(filepath.Base(in.Path), ".")
			if stem != "terragrunt" && hclsyntax.ValidIdentifier(stem) {
				name = stem
			}
		}
	}
	for slices.ContainsFunc(blocks, func(b *hclsyntax.Block) bool { return len(b.Labels) > 0 && b.Labels[0] == name }) {
		name += "_"
	}
	return name
}

// rewriteBlock edits one include block.
func rewriteBlock(d *document, b *hclsyntax.Block, name string) {
	d.replaceRange(b.TypeRange, "import")
	if len(b.Labels) == 0 {
		d.replace(b.TypeRange.End.Byte, b.TypeRange.End.Byte, " \""+name+"\"")
	}
	how := "merge = true"
	if s := b.Body.Attributes["merge_strategy"]; s != nil {
		switch text, _ := literal(s.Expr); text {
		case "deep":
			how = "deep_merge = true"
		case "no_merge":
			how = ""
		}
		if how != "" {
			d.replaceRange(s.SrcRange, how)
			how = ""
		} else {
			d.removeLine(s.SrcRange)
		}
	}
	if p := b.Body.Attributes["path"]; p != nil {
		d.replaceRange(p.NameRange, "config_path")
	}
	if x := b.Body.Attributes["expose"]; x != nil {
		if how != "" {
			d.replaceRange(x.SrcRange, how)
			how = ""
		} else {
			d.removeLine(x.SrcRange)
		}
	}
	if how == "" {
		return
	}
	end := b.CloseBraceRange.Start.Byte
	line := strings.LastIndexByte(string(d.text[:end]), '\n') + 1
	if line > b.OpenBraceRange.Start.Byte {
		d.replace(line, line, "  "+how+"\n")
		return
	}
	d.replace(b.OpenBraceRange.End.Byte, b.OpenBraceRange.End.Byte, "\n") // a block on one line
	d.replace(end, end, "\n"+how+"\n")
}

// rewriteRef edits a reference to an exposed include.
func rewriteRef(d *document, ref hcl.Traversal, names map[string]string, no func(source.Range, string, ...any)) {
	at := ref[0].SourceRange()
	if bare, ok := names[""]; ok && len(names) == 1 {
		if len(ref) < 2 {
			no(at, "it uses an included file as a whole")
			return
		}
		d.replaceRange(at, "import."+bare)
		return
	}
	label, ok := step(ref, 1)
	if !ok || names[label] == "" {
		no(at, "it is not clear which included file is meant")
		return
	}
	if len(ref) < 3 {
		no(at, "it uses an included file as a whole")
		return
	}
	d.replaceRange(at, "import")
}

// rewriteChildCall edits the calls that belong to include blocks.
func rewriteChildCall(d *document, c *hclsyntax.FunctionCallExpr, names map[string]string, no func(source.Range, string, ...any)) {
	label := ""
	if len(c.Args) > 0 {
		text, ok := literal(c.Args[0])
		switch c.Name {
		case "path_relative_to_include", "path_relative_from_include", "get_parent_terragrunt_dir":
			if !ok {
				no(c.Range(), "the label in the call of %s is computed", c.Name)
				return
			}
		}
		label = text
	} else if len(names) == 1 {
		for l := range names {
			label = l
		}
	}
	switch c.Name {
	case "path_relative_to_include":
		d.replaceRange(c.Range(), fmt.Sprintf("path_relative_to_import(%q)", names[label]))
	case "path_relative_from_include":
		d.replaceRange(c.Range(), fmt.Sprintf("path_relative_from_import(%q)", names[label]))
	case "get_parent_terragrunt_dir":
		if names[label] == "" {
			no(c.Range(), "it is not clear which included file is meant")
			return
		}
		d.replaceRange(c.Range(), "import."+names[label]+".terragrunt_dir")
	}
}

// rewriteParent makes an included file mean as an imported one what it meant
// before: the leaf unit's folder where it meant its child's.
func rewriteParent(d *document) (out []reason) {
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
		rewriteParentCall(d, c, no)
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
func rewriteParentCall(d *document, c *hclsyntax.FunctionCallExpr, no func(source.Range, string, ...any)) {
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
		rename("get_terragrunt_dir")
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
