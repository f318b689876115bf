package migrate

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// # From imports to includes
//
// Terragrunt has include blocks and read_terragrunt_config instead of imports. An import
// that merges becomes an include block. An import that does not becomes a local value that
// reads the file.
//
// An included file is evaluated in the directory of the unit, and an imported file in its
// own directory. So functions and relative paths in the file are rewritten to use its own
// directory. Only units can include, and an included file cannot include others. So a unit
// also includes the files that its imports merge, before the imports themselves.
//
// Files are converted together. A unit is kept as it is if it would be rendered
// differently, or contains something that Terragrunt does not have. The files that it uses,
// and the units that use these, are kept too: a file is converted for all of its users or
// for none.

// Includes plans the migration from import blocks to configuration that Terragrunt can
// read, for the unit files at the given paths and the files that they import. Plan.Left
// lists the parts that Terragrunt cannot express. env and others are as in Imports.
func Includes(ctx context.Context, env unit.Env, units, others []string) (*Plan, error) {
	m := newMigration(ctx, env, units, others)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &backStep{m: m, docs: map[string]*backDoc{}, kept: map[string]bool{}}
	w.read()
	for {
		texts, gone := w.edit()
		if len(texts) == 0 || ctx.Err() != nil {
			break
		}
		if !w.judge(m.look(m.merged(texts)), texts, gone) {
			for path, text := range texts {
				m.set(path, text)
			}
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.plan(), nil
}

// backStep is the migration from import blocks.
type backStep struct {
	m    *migration
	docs map[string]*backDoc // by path: units, and all files that they import
	kept map[string]bool     // files that are not edited
}

// A backDoc is a file with import blocks, or an imported file.
type backDoc struct {
	path    string
	unit    bool // a unit, or a file that is only read: it can include other files
	merged  bool // some file merges it
	imports []backImport
	reasons []reason // features that Terragrunt does not have
	same    bool     // Terragrunt reads the unedited file with the same result
}

// A backImport is an import block.
type backImport struct {
	name  string
	block *hclsyntax.Block
	mode  string // shallow, deep, or "" for not merged
	path  string // of the imported file; "" if it cannot be determined from the text
}

// read finds all files that units import, directly or through other files.
func (w *backStep) read() {
	var queue []string
	for _, l := range w.m.before {
		queue = append(queue, l.path)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if w.docs[path] != nil {
			continue
		}
		b := &backDoc{path: path, unit: slices.Contains(w.m.units, path)}
		w.docs[path] = b
		d, err := w.m.parse(path)
		if err != nil {
			if err == errJSON && w.importsJSON(path) {
				b.reasons = append(b.reasons, reason{path, source.Range{}, diag.Reason(err)})
			}
			continue
		}
		b.reasons = w.foreign(d)
		for _, block := range d.blocks("import") {
			i := backImport{name: label(block), block: block, path: w.target(path, d, block)}
			if isTrue(block.Body.Attributes["merge"]) {
				i.mode = "shallow"
			}
			if isTrue(block.Body.Attributes["deep_merge"]) {
				i.mode = "deep"
			}
			if i.path == "" {
				b.reasons = append(b.reasons, reason{path, block.DefRange(), "which file is imported is computed"})
			} else {
				queue = append(queue, i.path)
			}
			b.imports = append(b.imports, i)
		}
	}
	for _, b := range w.docs {
		for _, i := range b.imports {
			if t := w.docs[i.path]; t != nil && i.mode != "" {
				t.merged = true
			}
		}
	}
	for path, b := range w.docs {
		if d, err := w.m.parse(path); err == nil && len(b.imports) == 0 && len(b.reasons) == 0 {
			_, reasons := w.rewrite(d, b)
			b.same = len(reasons) == 0 && len(d.edits) == 0
		}
	}
}

// paths returns the paths of the files, sorted.
func (w *backStep) paths() []string { return slices.Sorted(maps.Keys(w.docs)) }

func (w *backStep) importsJSON(path string) bool {
	for _, l := range w.m.before {
		if l.path == path {
			return slices.ContainsFunc(l.includes, func(in unit.Imported) bool { return !in.Include })
		}
	}
	return true
}

func label(b *hclsyntax.Block) string {
	if len(b.Labels) == 0 {
		return ""
	}
	return b.Labels[0]
}

func isTrue(a *hclsyntax.Attribute) bool {
	if a == nil {
		return false
	}
	v, diags := a.Expr.Value(nil)
	return !diags.HasErrors() && v.IsKnown() && !v.IsNull() && v.Type() == cty.Bool && v.True()
}

// target returns the file that an import block refers to.
func (w *backStep) target(path string, d *document, block *hclsyntax.Block) string {
	for _, l := range w.m.before {
		for _, in := range l.includes {
			if l.path == path && !in.Include && in.Label == label(block) {
				return in.Path
			}
		}
	}
	a := block.Body.Attributes["config_path"]
	if a == nil {
		return ""
	}
	dir := filepath.Dir(path)
	if text, ok := literal(a.Expr); ok {
		return configAt(dir, text)
	}
	c, ok := inner(a.Expr).(*hclsyntax.FunctionCallExpr)
	if !ok || c.Name != "find_in_parent_folders" || len(c.Args) > 1 {
		return ""
	}
	name := unit.DefaultName
	if len(c.Args) == 1 {
		if name, ok = literal(c.Args[0]); !ok {
			return ""
		}
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		if found := configAt(up, name); found != "" {
			return found
		}
		if up == filepath.Dir(up) {
			return ""
		}
	}
}

// configAt returns the file at a path, or "" if there is none.
func configAt(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, unit.DefaultName)
		_, err = os.Stat(path)
	}
	if err != nil {
		return ""
	}
	return path
}

// foreign returns the features in a file that Terragrunt does not have, except imports.
func (w *backStep) foreign(d *document) (out []reason) {
	no := func(at source.Range, format string, args ...any) {
		out = append(out, reason{d.path, at, fmt.Sprintf(format, args...)})
	}
	for _, b := range d.blocks("module") {
		no(b.DefRange(), "Terragrunt has no module blocks: each module needs a directory with a unit file of its own")
	}
	for name, a := range d.body.Attributes {
		switch name {
		case "terraform", "dependency", "feature", "exclude", "errors", "engine":
			no(a.SrcRange, "Terragrunt takes %s as a block only", name)
		}
	}
	for _, c := range calls(d.body) {
		switch c.Name {
		case "relpath", "deep_merge":
			no(c.Range(), "Terragrunt has no function %s, or has it as an experiment only", c.Name)
		}
	}
	for _, b := range d.blocks("locals") {
		for _, ref := range references(b.Body) {
			if root, _ := step(ref, 0); root == "dependency" || root == "module" {
				no(ref.SourceRange(), "local values cannot refer to outputs of dependencies in Terragrunt")
			}
		}
	}
	slices.SortFunc(out, func(a, b reason) int { return a.at.Start.Byte - b.at.Start.Byte })
	return out
}

// edit edits all files that are not kept. It returns the texts, and for each unit the local
// values that were added.
func (w *backStep) edit() (texts map[string][]byte, gone map[string][]string) {
	for w.spread() {
	}
	texts, gone = map[string][]byte{}, map[string][]string{}
	for _, path := range w.paths() {
		b := w.docs[path]
		if w.kept[path] || b.same || !w.concerned(b) {
			continue
		}
		d, err := w.m.parse(path)
		if err != nil {
			continue
		}
		names, reasons := w.rewrite(d, b)
		if len(reasons) > 0 {
			b.reasons = append(b.reasons, reasons...)
			return w.edit()
		}
		texts[path], gone[path] = d.result(), names
	}
	return texts, gone
}

// concerned reports whether a file must be edited: it imports files, or is imported.
func (w *backStep) concerned(b *backDoc) bool {
	if len(b.imports) > 0 || b.merged {
		return true
	}
	for _, o := range w.docs {
		if slices.ContainsFunc(o.imports, func(i backImport) bool { return i.path == b.path }) {
			return true
		}
	}
	return false
}

// spread keeps the files that a kept file imports, and the files that import it. It reports
// whether it kept more files.
func (w *backStep) spread() bool {
	more := false
	keep := func(path, text string) {
		if !w.kept[path] && w.docs[path] != nil {
			w.kept[path], more = true, true
			if w.m.asked[path] && text != "" && w.concerned(w.docs[path]) {
				w.m.leave(path, source.Range{}, text)
			}
		}
	}
	for _, path := range w.paths() {
		b := w.docs[path]
		if len(b.reasons) > 0 && !w.kept[path] && (w.concerned(b) || w.m.asked[path]) {
			w.kept[path], more = true, true
			for _, r := range b.reasons {
				w.m.leave(r.path, r.at, r.text)
			}
		}
		if b.unit && !w.m.asked[path] && w.concerned(b) {
			keep(path, "")
		}
	}
	for _, path := range w.paths() {
		for _, i := range w.docs[path].imports {
			switch t := w.docs[i.path]; {
			case t == nil || t.same:
			case w.kept[path]:
				keep(i.path, "")
			case w.kept[i.path]:
				keep(path, fmt.Sprintf("it imports %s, which stays as it is", i.path))
			}
		}
	}
	return more
}

// judge keeps the units that are rendered differently, and reports whether there are any.
func (w *backStep) judge(after []*look, texts map[string][]byte, gone map[string][]string) bool {
	found := false
	for i, b := range w.m.before {
		d := differs(b, after[i], gone[b.path], nil)
		if d == "" {
			continue
		}
		if _, edited := texts[b.path]; edited {
			w.kept[b.path], found = true, true
			w.m.leave(b.path, source.Range{}, d)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(texts)) {
			if b.uses(path) {
				w.kept[path], found = true, true
				w.m.leave(path, source.Range{}, b.path+" uses it: "+d)
			}
		}
	}
	return found
}

// ownDir evaluates to the directory of an included file, also if the file is read.
const ownDir = "${get_parent_terragrunt_dir()}/"

// rewrite edits one file. It returns the local values that were added.
func (w *backStep) rewrite(d *document, b *backDoc) (added []string, out []reason) {
	no := func(at source.Range, format string, args ...any) {
		out = append(out, reason{d.path, at, fmt.Sprintf(format, args...)})
	}
	if b.merged && b.unit {
		no(source.Range{}, "it is a unit that others merge")
		return nil, out
	}
	locals, names := w.localNames(d), map[string]string{} // by import: the beginning of references to it
	var reads strings.Builder
	used := map[string]bool{}
	for _, ref := range references(d.body) {
		if root, _ := step(ref, 0); root == "import" {
			name, _ := step(ref, 1)
			used[name] = true
			if len(ref) < 3 {
				no(ref.SourceRange(), "it uses an imported file as a whole")
			}
		}
	}
	for _, i := range b.imports {
		blockRange := hcl.RangeBetween(i.block.TypeRange, i.block.CloseBraceRange)
		if i.mode != "" && !b.merged {
			d.replaceRange(blockRange, w.chain(b, i)+includeText(i.name, pathText(d, i), i.mode, used[i.name]))
			names[i.name] = "include." + i.name
			continue
		}
		if i.mode == "" || used[i.name] {
			local := locals(i.name)
			names[i.name] = "local." + local
			added = append(added, local)
			reads.WriteString("  " + local + " = read_terragrunt_config(" + w.readPath(d, b, i) + ")\n")
		}
		removeBlock(d, blockRange)
	}
	if reads.Len() > 0 {
		if blocks := d.blocks("locals"); len(blocks) > 0 {
			at := blocks[0].OpenBraceRange.End.Byte
			if blocks[0].CloseBraceRange.Start.Line == blocks[0].OpenBraceRange.Start.Line && len(blocks[0].Body.Attributes) > 0 {
				no(blocks[0].DefRange(), "its locals stand on one line: write each on a line of its own")
			}
			d.replace(at, at, "\n"+strings.TrimSuffix(reads.String(), "\n"))
		} else {
			at := 0
			if len(b.imports) > 0 {
				at = b.imports[0].block.TypeRange.Start.Byte
			}
			d.edits = append([]edit{{at, at, "locals {\n" + reads.String() + "}\n\n"}}, d.edits...)
		}
	}
	for _, ref := range references(d.body) {
		if root, _ := step(ref, 0); root != "import" {
			continue
		}
		name, _ := step(ref, 1)
		i := slices.IndexFunc(b.imports, func(i backImport) bool { return i.name == name })
		if i < 0 || len(ref) < 3 {
			continue
		}
		if part, _ := step(ref, 2); part == "terragrunt_dir" && len(ref) == 3 {
			if names[name] == "include."+name {
				d.replaceRange(ref.SourceRange(), fmt.Sprintf("get_parent_terragrunt_dir(%q)", name))
			} else {
				no(ref.SourceRange(), "the directory of a file that is read is not known in Terragrunt")
			}
			continue
		}
		d.replaceRange(hcl.RangeBetween(ref[0].SourceRange(), ref[1].SourceRange()), names[name])
	}
	for _, c := range calls(d.body) {
		w.rewriteCall(d, b, c, no)
	}
	if b.merged {
		w.rewritePaths(d)
		for _, ref := range references(d.body) {
			if root, _ := step(ref, 0); root == "values" {
				no(ref.SourceRange(), "an included file reads the values of the unit that includes it")
			}
		}
	}
	return added, out
}

// localNames returns a function that chooses names of local values for imports: the name of
// the import, unless a local value has that name.
func (w *backStep) localNames(d *document) func(name string) string {
	taken := map[string]bool{}
	for _, l := range d.blocks("locals") {
		for name := range l.Body.Attributes {
			taken[name] = true
		}
	}
	return func(name string) string {
		for taken[name] {
			name += "_file"
		}
		taken[name] = true
		return name
	}
}

// removeBlock removes a block with its lines and an empty line after it.
func removeBlock(d *document, at source.Range) {
	d.removeLine(at)
	if last := &d.edits[len(d.edits)-1]; last.to > 0 && d.text[last.to-1] == '\n' && last.to < len(d.text) && d.text[last.to] == '\n' {
		last.to++
	}
}

func includeText(name, path, mode string, expose bool) string {
	text := "include \"" + name + "\" {\n  path = " + path + "\n"
	if expose {
		text += "  expose = true\n"
	}
	return text + "  merge_strategy = \"" + mode + "\"\n}"
}

// chain returns include blocks for the files that an imported file merges.
func (w *backStep) chain(b *backDoc, i backImport) string {
	var out strings.Builder
	seen := map[string]bool{}
	var visit func(path, name string)
	visit = func(path, name string) {
		t := w.docs[path]
		if t == nil || seen[path] {
			return
		}
		seen[path] = true
		for _, in := range t.imports {
			if in.mode != "" {
				visit(in.path, name+"_"+in.name)
				rel, err := filepath.Rel(filepath.Dir(b.path), in.path)
				if err != nil {
					rel = in.path
				}
				out.WriteString(includeText(name+"_"+in.name, `"`+filepath.ToSlash(rel)+`"`, in.mode, false) + "\n\n")
			}
		}
	}
	visit(i.path, i.name)
	return out.String()
}

// pathText returns the path of an import for an include block. The path must be that of a
// file.
func pathText(d *document, i backImport) string {
	a := i.block.Body.Attributes["config_path"]
	text := d.source(a.Expr.Range())
	if s, ok := literal(a.Expr); ok && filepath.Base(s) != filepath.Base(i.path) {
		return `"` + strings.TrimSuffix(filepath.ToSlash(s), "/") + "/" + filepath.Base(i.path) + `"`
	}
	return text
}

// readPath returns the path of an import for read_terragrunt_config.
func (w *backStep) readPath(d *document, b *backDoc, i backImport) string {
	text := pathText(d, i)
	if s, ok := strings.CutPrefix(text, `"`); ok && b.merged && !filepath.IsAbs(s) && !strings.HasPrefix(s, "${") {
		return `"` + ownDir + s
	}
	return text
}

// rewriteCall edits calls of functions about imports. In a merged file it also edits
// functions that return the file's own directory.
func (w *backStep) rewriteCall(d *document, b *backDoc, c *hclsyntax.FunctionCallExpr, no func(source.Range, string, ...any)) {
	rename := func(name string) { d.replaceRange(c.NameRange, name) }
	switch c.Name {
	case "path_relative_to_import", "path_relative_from_import":
		if len(c.Args) > 0 {
			name, _ := literal(c.Args[0])
			i := slices.IndexFunc(b.imports, func(i backImport) bool { return i.name == name })
			if b.merged || i < 0 || b.imports[i].mode == "" {
				no(c.Range(), "%s with a name has no counterpart for this file", c.Name)
				return
			}
		} else if !b.merged && (len(b.imports) != 1 || b.imports[0].mode == "") {
			no(c.Range(), "%s has no counterpart in a file that is not merged", c.Name)
			return
		}
		rename(strings.Replace(c.Name, "import", "include", 1))
	case "find_in_parent_folders_from_importing_config":
		if !b.merged && !b.unit {
			no(c.Range(), "%s has no counterpart in a file that is not merged", c.Name)
			return
		}
		rename("find_in_parent_folders")
	}
	if !b.merged {
		return
	}
	switch c.Name {
	case "get_terragrunt_dir":
		rename("get_parent_terragrunt_dir")
	case "read_terragrunt_config", "read_tfvars_file", "sops_decrypt_file", "mark_as_read", "file", "templatefile", "filebase64", "filesha256", "filemd5", "fileexists":
		if len(c.Args) > 0 {
			baseArg(d, c.Args[0], ownDir)
		}
	case "mark_glob_as_read":
		if len(c.Args) > 0 {
			baseArg(d, c.Args[len(c.Args)-1], ownDir)
		}
	}
}

// rewritePaths makes the relative paths in a merged file relative to the file's own
// directory.
func (w *backStep) rewritePaths(d *document) {
	for _, b := range d.body.Blocks {
		switch b.Type {
		case "dependency":
			if a := b.Body.Attributes["config_path"]; a != nil {
				baseArg(d, a.Expr, ownDir)
			}
		case "dependencies":
			if a := b.Body.Attributes["paths"]; a != nil {
				if list, ok := a.Expr.(*hclsyntax.TupleConsExpr); ok {
					for _, x := range list.Exprs {
						baseArg(d, x, ownDir)
					}
				}
			}
		case "terraform":
			if a := b.Body.Attributes["source"]; a != nil {
				if s, ok := d.written(a.Expr); ok && unit.LocalSource(s) {
					baseArg(d, a.Expr, ownDir)
				}
			}
		}
	}
}
