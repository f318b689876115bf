package migrate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// reason is why something cannot be rewritten, with its range.
type reason struct {
	path string
	at   source.Range
	text string
}

// includes turns include blocks into imports. Children that cannot be migrated keep their
// include blocks. Files that both kinds of children use are edited so that they mean the
// same to both. It ends when all units are rendered as before.
func (m *migration) includes() {
	w := &includeStep{m: m, kept: map[int]reason{}, index: map[string]int{}, libraries: map[string]bool{}, plain: map[string]bool{}, restless: map[int][]string{}}
	for i, p := range m.units {
		w.index[p] = i
	}
	for _, l := range m.before {
		for _, in := range l.includes {
			if in.Include {
				w.libraries[in.Path] = true
			}
		}
	}
	for i, l := range m.before {
		if !hasInclude(l) {
			w.unresolved(l)
			continue
		}
		w.children = append(w.children, i)
		if !m.asked[l.path] {
			w.keep(i, reason{})
			continue
		}
		if !l.loaded {
			w.keep(i, reason{l.path, source.Range{}, "it cannot be read as it is: " + l.err})
		}
	}
	for len(w.kept) < len(w.children) {
		texts := w.edit()
		if len(texts) == 0 {
			break
		}
		if !w.judge(texts, m.look(m.merged(texts))) {
			for p, t := range texts {
				m.set(p, t)
			}
			break
		}
	}
	m.included = map[string]bool{}
	for _, i := range w.children {
		r, kept := w.kept[i]
		if !kept {
			continue
		}
		if r.text != "" {
			m.leave(r.path, r.at, r.text)
		}
		for _, in := range m.before[i].includes {
			m.included[in.Path] = true
		}
	}
}

func hasInclude(l *look) bool {
	return slices.ContainsFunc(l.includes, func(in unit.Imported) bool { return in.Include })
}

// includeStep is the migration of include blocks.
type includeStep struct {
	m        *migration
	children []int // indexes of the units with include blocks
	index    map[string]int
	kept     map[int]reason // children that keep their include blocks
	// libraries are files that other files include. They are not units, though they may
	// have the name of one.
	libraries map[string]bool
	// plain are included files that are not edited, because units that read them as files
	// would be rendered differently.
	plain    map[string]bool
	restless map[int][]string // by unit: the paths of values that differ between two renderings without an edit
}

// unresolved reports the include blocks of a requested unit whose files do not exist.
func (w *includeStep) unresolved(l *look) {
	if !w.m.asked[l.path] || l.err == "" {
		return
	}
	d, err := w.m.parse(l.path)
	if err != nil {
		return
	}
	if blocks := d.blocks("include"); len(blocks) > 0 {
		w.m.leave(l.path, blocks[0].DefRange(), "it cannot be read as it is: "+l.err)
	}
}

func (w *includeStep) keep(i int, r reason) {
	if _, again := w.kept[i]; !again {
		w.kept[i] = r
	}
}

// edit edits the children to migrate and the files that they include. If a child cannot be
// edited, it is kept, and the edit starts again.
func (w *includeStep) edit() map[string][]byte {
	for {
		before := len(w.kept)
		texts := map[string][]byte{}
		parents := map[string]bool{} // by path: whether a kept child includes it too
		for _, i := range w.children {
			_, kept := w.kept[i]
			if !kept {
				text, reasons := w.editChild(i)
				if len(reasons) > 0 {
					w.keep(i, reasons[0])
					continue
				}
				texts[w.m.units[i]] = text
			}
			for _, in := range w.m.before[i].includes {
				if both, seen := parents[in.Path]; !seen || kept && !both {
					parents[in.Path] = kept
				}
			}
		}
		for path, both := range parents {
			if w.plain[path] {
				continue
			}
			w.editParent(path, both, texts)
		}
		if len(w.kept) == before {
			return texts
		}
	}
}

func (w *includeStep) editChild(i int) ([]byte, []reason) {
	d, err := w.m.parse(w.m.units[i])
	if err != nil {
		return nil, []reason{{w.m.units[i], source.Range{}, diag.Reason(err)}}
	}
	reasons := rewriteChild(d, w.m.before[i].includes)
	return d.result(), reasons
}

// editParent edits an included file, unless only kept children use it.
func (w *includeStep) editParent(path string, both bool, texts map[string][]byte) {
	var users []int
	for _, i := range w.children {
		if _, kept := w.kept[i]; !kept && slices.ContainsFunc(w.m.before[i].includes, func(in unit.Imported) bool { return in.Path == path }) {
			users = append(users, i)
		}
	}
	if len(users) == 0 {
		return
	}
	d, err := w.m.parse(path)
	var reasons []reason
	if err != nil {
		reasons = []reason{{path, source.Range{}, diag.Reason(err)}}
	} else {
		reasons = rewriteParent(d, both, w.labels(path))
		if other := w.portableFor(path); other != "" && len(reasons) == 0 && d.usesOwnFunctions() {
			reasons = []reason{{path, source.Range{}, fmt.Sprintf("%s includes it and stays as it is, and Terragrunt lacks functions that the file would then call", other)}}
		}
	}
	if len(reasons) == 0 {
		texts[path] = d.result()
		return
	}
	for _, r := range reasons {
		w.m.leave(r.path, r.at, r.text)
	}
	for _, i := range users {
		w.keep(i, reason{w.m.units[i], source.Range{}, fmt.Sprintf("it includes %s, which stays as it is: %s", path, reasons[0].text)})
	}
}

// portableFor returns the path of a unit that includes a file and is not requested, if the file must be
// valid for Terragrunt. "" means that there is none.
func (w *includeStep) portableFor(path string) string {
	if !w.m.portable {
		return ""
	}
	for _, i := range w.children {
		if b := w.m.before[i]; !w.m.asked[b.path] && slices.ContainsFunc(b.includes, func(in unit.Imported) bool { return in.Path == path }) {
			return b.path
		}
	}
	return ""
}

// labels returns the distinct labels by which units include a file.
func (w *includeStep) labels(path string) (out []string) {
	for _, i := range w.children {
		for _, in := range w.m.before[i].includes {
			if in.Path == path && !slices.Contains(out, in.Label) {
				out = append(out, in.Label)
			}
		}
	}
	return out
}

// changed describes how a unit is rendered differently, or returns "". Values that differ
// between two renderings without an edit do not count.
func (w *includeStep) changed(i int, after *look) string {
	b := w.m.before[i]
	d := differs(b, after, nil, nil)
	if d == "" || b.err != "" {
		return d
	}
	restless, asked := w.restless[i]
	if !asked {
		l := unit.NewLoader(w.m.overlay(w.m.texts))
		again := lookAt(l, l.Task(w.m.ctx), b.path)
		for name, part := range b.parts {
			restless = append(restless, differences(name, part, again.parts[name])...)
		}
		w.restless[i] = restless
	}
	return differs(b, after, nil, restless)
}

// spare finds files that were edited for the units that include them, and that make a unit
// that reads them as files render differently. It reports whether there are any.
func (w *includeStep) spare(i int, texts map[string][]byte) bool {
	b := w.m.before[i]
	as := func(without ...string) bool { // whether the unit is rendered as before without these edits
		some := w.m.merged(texts)
		for _, path := range without {
			delete(some, path)
		}
		for path := range w.plain {
			delete(some, path)
		}
		l := unit.NewLoader(w.m.overlay(some))
		return w.changed(i, lookAt(l, l.Task(w.m.ctx), b.path)) == ""
	}
	var read []string
	for path := range texts {
		included := slices.ContainsFunc(b.includes, func(in unit.Imported) bool { return in.Path == path })
		if path != b.path && !included && !w.plain[path] && slices.Contains(b.files, path) {
			read = append(read, path)
		}
	}
	slices.Sort(read)
	if len(read) == 0 && len(w.plain) == 0 {
		return false
	}
	if as() {
		return true // found for an earlier unit
	}
	for _, path := range read {
		if as(path) {
			w.plain[path] = true
			return true
		}
	}
	if len(read) > 1 && as(read...) {
		for _, path := range read {
			w.plain[path] = true
		}
		return true
	}
	return false
}

// judge keeps the children that are rendered differently, and reports whether there are
// any. For shared files, only units that can be rendered count.
func (w *includeStep) judge(texts map[string][]byte, after []*look) bool {
	plain := len(w.plain)
	for i := range w.m.before {
		if w.changed(i, after[i]) != "" {
			w.spare(i, texts)
		}
	}
	if len(w.plain) > plain {
		return true
	}
	found := false
	for i, b := range w.m.before {
		d := w.changed(i, after[i])
		if d == "" {
			continue
		}
		if _, kept := w.kept[i]; !kept && hasInclude(b) {
			w.keep(i, reason{w.m.units[i], source.Range{}, d})
			found = true
			continue
		}
		if b.err != "" || w.libraries[b.path] { // such a unit is no evidence about shared files
			continue
		}
		for _, j := range w.children { // files that it uses were edited for other units
			if _, kept := w.kept[j]; !kept && slices.ContainsFunc(w.m.before[j].includes, func(in unit.Imported) bool { return b.uses(in.Path) }) {
				w.keep(j, reason{w.m.units[j], source.Range{}, fmt.Sprintf("%s uses the same files, and %s", w.m.units[i], d)})
				found = true
			}
		}
	}
	return found
}

// rewriteChild turns the include blocks of a file into import blocks.
func rewriteChild(d *document, includes []unit.Imported) (out []reason) {
	blocks := d.blocks("include")
	if len(blocks) == 0 {
		return nil // an included file that is also a unit
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
		rewriteHeadCalls(d, b)
		rewriteBlock(d, b, name)
	}
	for _, ref := range references(d.body) {
		if root, _ := step(ref, 0); root == "include" {
			rewriteRef(d, ref, names, no)
		}
	}
	for _, c := range calls(d.body) {
		if !slices.ContainsFunc(blocks, func(b *hclsyntax.Block) bool { return within(c, b) }) {
			rewriteChildCall(d, c, names, no)
		}
	}
	return out
}

func within(c *hclsyntax.FunctionCallExpr, b *hclsyntax.Block) bool {
	return b.OpenBraceRange.Start.Byte < c.Range().Start.Byte && c.Range().End.Byte <= b.CloseBraceRange.Start.Byte
}

// rewriteHeadCalls edits the calls in an include block. There, all of them return the
// directory of the file itself, because the included file is not known yet.
func rewriteHeadCalls(d *document, b *hclsyntax.Block) {
	for _, c := range calls(b.Body) {
		switch c.Name {
		case "path_relative_to_include", "path_relative_from_include", "get_parent_terragrunt_dir":
			d.replaceRange(c.Range(), "get_terragrunt_dir()")
		}
	}
}

// bareName returns the name for an include block without label: the stem of the included
// file, unless that is the default name.
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
		if open := b.OpenBraceRange.End; open.Line == b.CloseBraceRange.Start.Line {
			d.replace(open.Byte, p.NameRange.Start.Byte, "\n  ")
		}
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
	if b.CloseBraceRange.Start.Line > b.OpenBraceRange.Start.Line {
		d.replace(line, line, "  "+how+"\n")
		return
	}
	from := end // a block on one line with only path
	if p := b.Body.Attributes["path"]; p != nil {
		from = p.SrcRange.End.Byte
	}
	d.replace(from, end, "\n  "+how+"\n")
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

// rewriteChildCall edits calls of functions about include blocks.
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
