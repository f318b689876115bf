package origin

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
)

// longestLine is the maximum number of bytes shown of a source line.
const longestLine = 160

// A listing formats source lines and hides secret text in them.
type listing struct {
	in       *reader
	fed      *feeds
	settings map[string][]setting     // arguments on the way whose lines are shown, by file
	layers   map[string]*source.Layer // layers of unit files on the way
}

// place returns the place of a range, with the line on which the range starts. hide contains ranges whose
// text is hidden, in addition to secrets in the expressions on the way.
func (r *listing) place(at source.Range, hide []source.Range) *SourceLine {
	p := &SourceLine{File: at.Filename, Line: at.Start.Line, Column: at.Start.Column}
	if r.in.ends != nil {
		return p
	}
	if l, ok := r.layers[at.Filename]; ok {
		r.layered(p, l)
	} else {
		r.layered(p, r.in.e.Set.LayerOf(at))
	}
	f := r.in.file(at.Filename)
	if f == nil || f.Bytes == nil || !f.Shows(at.Start.Line, at.Start.Line) {
		return p
	}
	for _, s := range r.settings[at.Filename] {
		hide = append(hide[:len(hide):len(hide)], r.onLine(s.cursor, s.args, at)...)
	}
	if r.fed.texts != nil {
		hide = append(hide[:len(hide):len(hide)], r.fed.texts.at...)
	}
	line, start := f.Line(at.Start.Line), f.LineStart(at.Start.Line)
	hidden := inFile(hide, at.Filename)
	from := min(max(at.Start.Byte-start, 0), len(line))
	to := max(min(at.End.Byte-start, len(line)), from)
	if strings.HasSuffix(at.Filename, ".json") && strings.ContainsRune(line, '\\') {
		from, to = escaped(line, from, to)
		for i := range hidden { // inFile returned a copy
			a, b := escaped(line, hidden[i].Start.Byte-start, hidden[i].End.Byte-start)
			hidden[i].Start.Byte, hidden[i].End.Byte = start+a, start+b
		}
		hidden = inFile(hidden, at.Filename)
	}
	shown := lineOf{line, start, hidden}
	p.Part = shorten(shown.masked(from, to))
	p.Source = p.Part
	if !strings.HasSuffix(at.Filename, ".json") { // in JSON, a line may be the whole file
		p.Source = shorten(shown.masked(0, len(line)))
	}
	return p
}

// escaped widens a range of a line of JSON to the whole string that it begins in, if that contains
// an escape sequence: the parser counts a sequence as one byte, so that ranges in the string
// that follow one are not exact.
func escaped(line string, from, to int) (begin, end int) {
	for i := 0; i < len(line); i++ {
		if line[i] != '"' {
			continue
		}
		open, escapes := i, false
		for i++; i < len(line) && line[i] != '"'; i++ {
			if line[i] == '\\' {
				escapes = true
				i++
			}
		}
		if escapes && from >= open && from <= i {
			return open, max(to, min(i+1, len(line)))
		}
	}
	return from, to
}

// file returns a file of the module or of the unit, or nil.
func (r *reader) file(name string) *source.File {
	if f := r.e.Set.File(name); f != nil {
		return f
	}
	if r.e.UnitSet != nil {
		return r.e.UnitSet.File(name)
	}
	return nil
}

// header returns the place of a block's header. Its line does not include content of the block that is
// on the same line.
func (r *listing) header(at source.Range) *SourceLine {
	p := r.place(at, nil)
	if r.in.ends != nil {
		return p
	}
	f := r.in.file(at.Filename)
	if f == nil || f.Bytes == nil || !f.Shows(at.Start.Line, at.Start.Line) {
		return p
	}
	line, start := f.Line(at.Start.Line), f.LineStart(at.Start.Line)
	if strings.HasSuffix(at.Filename, ".json") {
		p.Source = shorten(property(line[:min(max(at.Start.Byte-start, 0), len(line))]) + p.Source)
		p.Part = p.Source
		return p
	}
	to := min(max(at.End.Byte-start, 0), len(line))
	p.Source = strings.TrimSpace(line[:to])
	switch rest := strings.TrimSpace(line[to:]); {
	case rest == "{" || rest == "{}":
		p.Source += " " + rest
	case strings.HasPrefix(rest, "{"):
		p.Source += " {…"
	}
	p.Source = shorten(p.Source)
	p.Part = p.Source
	return p
}

// property returns the name of a JSON property with its colon. before is the text of the line before the
// value. property returns "" if the name is not on that line.
func property(before string) string {
	name, ok := strings.CutSuffix(strings.TrimRight(before, " \t["), ":")
	name = strings.TrimRight(name, " \t")
	if !ok || !strings.HasSuffix(name, `"`) {
		return ""
	}
	i := strings.LastIndexByte(name[:len(name)-1], '"')
	if i < 0 {
		return ""
	}
	return name[i:] + ": "
}

// setting is the whole expression of an argument on the way. args is the guard of the argument, with its
// path in the block; nil means none.
type setting struct {
	cursor
	args *guarded
}

// shows records that lines of an expression will be shown, so that place hides secrets in them.
func (r *listing) shows(c cursor, args *guarded) {
	file := c.x.Range().Filename
	r.settings[file] = append(r.settings[file], setting{c, args})
}

type guarded struct {
	guard guard
	path  []step
}

// onLine returns the ranges of the secret parts of an expression, except references. It returns nil if
// the expression is not on the line on which at starts.
func (r *listing) onLine(c cursor, args *guarded, at source.Range) (out []source.Range) {
	own := c.x.Range()
	if own.Filename != at.Filename || at.Start.Line < own.Start.Line || at.Start.Line > own.End.Line {
		return nil
	}
	if r.fed.all(spotOf(c)) && !isReference(c.x) {
		return secretText(c.x)
	}
	parts := func(xs ...hcl.Expression) {
		for _, x := range xs {
			out = append(out, r.onLine(cursor{f: c.f, x: x}, args, at)...)
		}
	}
	switch x := unwrap(c.x).(type) {
	case *hclsyntax.FunctionCallExpr:
		if baseName(x.Name) == "sensitive" {
			return sensitiveArguments(x)
		}
		for _, a := range x.Args {
			parts(a)
		}
		return out
	case *hclsyntax.ConditionalExpr:
		parts(x.Condition, x.TrueResult, x.FalseResult)
		return out
	case *hclsyntax.ForExpr:
		if v, _ := r.in.eval(c.f, x); secretAt(v, nil) {
			out = madeTexts(x.ValExpr) // the secret may come from any iteration
		}
		return append(out, sensitiveArguments(x)...)
	}
	if items, diags := hcl.ExprMap(c.x); !diags.HasErrors() {
		for _, kv := range items {
			out = append(out, r.onLine(cursor{f: c.f, x: kv.Value}, args.below(r.in.keyOf(c.f, kv.Key)), at)...)
		}
		return out
	}
	if items, diags := hcl.ExprList(c.x); !diags.HasErrors() {
		for i, x := range items {
			out = append(out, r.onLine(cursor{f: c.f, x: x}, args.below(indexStep(i)), at)...)
		}
		return out
	}
	if isReference(c.x) {
		return nil
	}
	v, _ := r.in.eval(c.f, c.x)
	if secretAt(v, nil) || args != nil && args.guard.secret(args.path) {
		return []source.Range{own}
	}
	return sensitiveArguments(c.x)
}

// madeTexts returns the ranges, inside object and list constructors, of the expressions that compute a
// value from references.
func madeTexts(x hcl.Expression) (out []source.Range) {
	if items, diags := hcl.ExprMap(x); !diags.HasErrors() {
		for _, kv := range items {
			out = append(out, madeTexts(kv.Value)...)
		}
		return out
	}
	if items, diags := hcl.ExprList(x); !diags.HasErrors() {
		for _, x := range items {
			out = append(out, madeTexts(x)...)
		}
		return out
	}
	if isReference(x) || len(x.Variables()) == 0 {
		return nil
	}
	return []source.Range{x.Range()}
}

// keyOf returns the key of an item as a step. Its name is "" if the key is unknown.
func (r *reader) keyOf(f *frame, x hcl.Expression) step {
	v, ds := r.eval(f, x)
	if v = unmark(v); ds.HasErrors() || !v.IsKnown() || v.IsNull() || !v.Type().IsPrimitiveType() {
		return nameStep("")
	}
	return keyStep(v)
}

// below returns the guard with its path extended by a step.
func (g *guarded) below(s step) *guarded {
	if g == nil {
		return nil
	}
	return &guarded{g.guard, join(g.path, []step{s})}
}

// inFile returns the ranges in one file, sorted by their start.
func inFile(all []source.Range, name string) []source.Range {
	out := slices.DeleteFunc(slices.Clone(all), func(h source.Range) bool { return h.Filename != name })
	slices.SortFunc(out, func(a, b source.Range) int { return a.Start.Byte - b.Start.Byte })
	return out
}

// lineOf is a line of a file, with the ranges to hide in that file.
type lineOf struct {
	text  string
	start int            // offset in the file, in bytes
	hide  []source.Range // sorted by their start
}

// masked returns the bytes [from, to) of the line, with a placeholder in place of each hidden range.
func (l lineOf) masked(from, to int) string {
	var b strings.Builder
	done := from
	for _, h := range l.hide {
		lo, hi := max(h.Start.Byte-l.start, done), min(h.End.Byte-l.start, to)
		if lo >= hi {
			continue
		}
		b.WriteString(l.text[done:lo])
		b.WriteString(value.SecretText)
		done = hi
	}
	b.WriteString(l.text[done:to])
	return strings.TrimSpace(b.String())
}

func shorten(s string) string {
	if len(s) <= longestLine {
		return s
	}
	cut := longestLine
	for cut > 0 && s[cut]&0xc0 == 0x80 { // do not split a UTF-8 sequence
		cut--
	}
	return s[:cut] + "…"
}

// written returns the ranges of all parts of an expression that are not references. It descends into
// objects, lists, conditional expressions and arguments of functions.
func written(x hcl.Expression) (out []source.Range) {
	if isReference(x) {
		return nil
	}
	parts := func(xs ...hclsyntax.Expression) []source.Range {
		for _, x := range xs {
			out = append(out, written(x)...)
		}
		return out
	}
	switch x := unwrap(x).(type) {
	case *hclsyntax.FunctionCallExpr:
		if len(x.Args) > 0 && slices.Contains(readers, baseName(x.Name)) {
			return append(writtenInNames(x.Args[0]), parts(x.Args[1:]...)...)
		}
		return parts(x.Args...)
	case *hclsyntax.ConditionalExpr:
		return parts(x.Condition, x.TrueResult, x.FalseResult)
	case *hclsyntax.TupleConsExpr:
		return parts(x.Exprs...)
	case *hclsyntax.ObjectConsExpr:
		for _, it := range x.Items {
			out = append(out, written(it.ValueExpr)...)
		}
		return out
	}
	return []source.Range{x.Range()}
}

// readers contains the functions that read the file which their first argument names.
var readers = []string{"file", "filebase64", "templatefile", "read_tfvars_file", "read_terragrunt_config", "sops_decrypt_file"}

// writtenInNames is like written, for an expression that computes file names. It does not return literal
// names and calls that only find directories, because these are shown.
func writtenInNames(x hcl.Expression) (out []source.Range) {
	parts := func(xs []hclsyntax.Expression) []source.Range {
		for _, x := range xs {
			out = append(out, writtenInNames(x)...)
		}
		return out
	}
	switch x := unwrap(x).(type) {
	case *hclsyntax.LiteralValueExpr:
		return nil
	case *hclsyntax.TemplateExpr:
		return parts(x.Parts)
	case *hclsyntax.TupleConsExpr:
		return parts(x.Exprs)
	case *hclsyntax.FunctionCallExpr:
		switch name := baseName(x.Name); name {
		case "find_in_parent_folders", "dirname", "abspath", "pathexpand":
			return parts(x.Args)
		}
	}
	return written(x)
}

// secretText returns the ranges to hide in a secret expression: the whole expression, or everything except
// the file name if the expression reads the secret from a file.
func secretText(x hcl.Expression) []source.Range {
	if readsFile(x) {
		return written(x)
	}
	return []source.Range{x.Range()}
}

// readsFile reports whether an expression is the content of a file, possibly converted by functions.
func readsFile(x any) bool {
	call, ok := unwrap(x).(*hclsyntax.FunctionCallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	return slices.Contains(readers, baseName(call.Name)) || len(call.Args) == 1 && readsFile(call.Args[0])
}

// isReference reports whether an expression only refers to a value, so that its text reveals nothing
// about that value.
func isReference(x any) bool {
	switch x := unwrap(x).(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return true
	case *hclsyntax.RelativeTraversalExpr:
		return isReference(x.Source)
	case *hclsyntax.IndexExpr:
		return isReference(x.Collection)
	case *hclsyntax.SplatExpr:
		return isReference(x.Source)
	}
	return false
}

// sensitiveArguments returns the ranges of the arguments of sensitive() in an expression, except
// references.
func sensitiveArguments(x any) []source.Range {
	node, ok := unwrap(x).(hclsyntax.Node)
	if !ok {
		return nil
	}
	var out []source.Range
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && baseName(call.Name) == "sensitive" {
			for _, a := range call.Args {
				if !isReference(a) {
					out = append(out, a.Range())
				}
			}
		}
		return nil
	})
	return out
}
