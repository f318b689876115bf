package unit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Given implements explanation.InputSource: it finds the extra_arguments block that names a
// variable file, passes -var or sets an environment variable. If there are several, the
// last one is used.
func (x *explained) Given(by source.Layer, name string) (explanation.Way, bool) {
	c := x.evaluator()
	tf := x.u.field(c, "terraform")
	if tf == nil {
		return explanation.Way{}, false
	}
	blocks := tf.open(c).child(c, "extra_arguments")
	if blocks == nil {
		return explanation.Way{}, false
	}
	labels, _ := blocks.open(c).keys(c)
	for _, label := range slices.Backward(labels) {
		d := &decoder{c: x.evaluator(), n: blocks.open(c).child(c, label), spec: syntax.Language().Unit.Block("terraform").Block("extra_arguments"), name: label}
		if d.n == nil || !slices.Contains(d.words("commands"), c.l.env.Request.Command) {
			continue
		}
		w := &walker{x: x, c: c, label: "terraform.extra_arguments." + label, kind: explanation.ExtraArguments}
		if by.Kind == source.Environment {
			variable := "TF_VAR_" + name
			if _, sets := d.textMap("env_vars")[variable]; !sets {
				continue
			}
			return w.walk(d.n, hcl.Traversal{hcl.TraverseAttr{Name: "env_vars"}, hcl.TraverseIndex{Key: cty.StringVal(variable)}})
		}
		if by.Kind == source.Flag {
			i := setsVariable(d.words("arguments"), name)
			if i < 0 {
				continue
			}
			way, ok := w.walk(d.n, hcl.Traversal{hcl.TraverseAttr{Name: "arguments"}})
			if ok && len(way.Stops) > 0 {
				stop := &way.Stops[0]
				stop.Text = fmt.Sprintf("extra_arguments %q gives -var", label)
				if items, diags := hcl.ExprList(stop.Expr); !diags.HasErrors() && len(items) == len(d.words("arguments")) {
					stop.At = items[i].Range()
				}
				stop.Bare, stop.Expr = true, nil // the line of the arguments may contain a secret
				way.Next = nil
			}
			return way, ok
		}
		for _, arg := range [...]string{"optional_var_files", "required_var_files", "arguments"} {
			i := slices.IndexFunc(d.words(arg), func(word string) bool { return x.Names(word, name) })
			if i < 0 {
				continue
			}
			way, ok := w.walk(d.n, hcl.Traversal{hcl.TraverseAttr{Name: arg}})
			if ok && len(way.Stops) > 0 {
				way.Stops[0].Text = fmt.Sprintf("extra_arguments %q names the variable file", label)
				way.Stops[0].Names = arg != "arguments" // the arguments may contain values as well
				way.Next = nil
			}
			return way, ok
		}
	}
	return explanation.Way{}, false
}

// setsVariable returns the index of the last word that sets a variable with -var, or -1.
func setsVariable(words []string, name string) int {
	for i, word := range slices.Backward(words) {
		bare := strings.TrimLeft(word, "-")
		if bare != word && strings.HasPrefix(bare, "var="+name+"=") || i > 0 && isVarFlag(words[i-1]) && strings.HasPrefix(word, name+"=") {
			return i
		}
	}
	return -1
}

func isVarFlag(word string) bool { return word == "-var" || word == "--var" }

// Names reports whether a word of extra_arguments refers to a file. Relative paths are
// resolved from the directory the module runs in, which may be a copy of the unit's.
func (x *explained) Names(word, file string) bool {
	word = strings.TrimLeft(word, "-")
	word = strings.TrimPrefix(word, "var-file=")
	if word == "" {
		return false
	}
	if filepath.IsAbs(word) {
		return filepath.Clean(word) == filepath.Clean(file) || filepath.IsAbs(file) && x.u.l.disk.Identity(word) == x.u.l.disk.Identity(file)
	}
	rel := strings.TrimLeft(filepath.ToSlash(filepath.Clean(word)), "./")
	file = filepath.ToSlash(file)
	return file == rel || strings.HasSuffix(file, "/"+rel)
}

// Generated implements explanation.InputSource: it finds the generate or remote_state block that
// writes a line of a file.
func (x *explained) Generated(line explanation.GeneratedLine) (explanation.Way, bool) {
	name := line.File
	c := x.evaluator()
	if n := x.u.field(c, "generate"); n != nil {
		labels, _ := n.open(c).keys(c)
		for _, label := range slices.Backward(labels) {
			b := n.open(c).child(c, label)
			if b == nil || !x.writes(c, b, name) {
				continue
			}
			w := &walker{x: x, c: c, label: "generate." + label, kind: explanation.Generate}
			way, ok := w.walk(b, hcl.Traversal{hcl.TraverseAttr{Name: "contents"}})
			if ok && len(way.Stops) > 0 {
				way.Stops[0].Text = fmt.Sprintf("generate %q writes %s", label, name)
				x.written(&way, line)
			}
			return way, ok
		}
	}
	rs := x.u.field(c, "remote_state")
	if rs == nil {
		return explanation.Way{}, false
	}
	if g := rs.open(c).child(c, "generate"); g == nil || !x.writes(c, g, name) {
		return explanation.Way{}, false
	}
	w := &walker{x: x, c: c, label: "remote_state", kind: explanation.Argument}
	arg, _, isArg := strings.Cut(strings.TrimSpace(line.Text), "=")
	if arg = strings.TrimSpace(arg); isArg && hclsyntax.ValidIdentifier(arg) {
		if way, ok := w.walk(rs, hcl.Traversal{hcl.TraverseAttr{Name: "config"}, hcl.TraverseAttr{Name: arg}}); ok {
			return way, true
		}
	}
	return w.walk(rs, nil)
}

// writes reports whether a block writes to the file.
func (x *explained) writes(c *evaluator, b node, name string) bool {
	path := c.textOf(b, "path")
	return path != "" && filepath.ToSlash(filepath.Clean(path)) == filepath.ToSlash(filepath.Clean(name))
}

// A templateLine is a line of text that a template produces.
type templateLine struct {
	text  string       // without white space
	at    source.Range // line of the template, as the range of its first part
	parts []templatePart
}

// A templatePart is an interpolation in a line, with its range in the text.
type templatePart struct {
	x        hclsyntax.Expression
	from, to int
}

// written narrows the contents of a generated file down to the line of text that produces
// the given line. It continues in an interpolation only if the requested expression contains
// it: the line may also contain other arguments or a comment.
func (x *explained) written(way *explanation.Way, line explanation.GeneratedLine) {
	if way.Next == nil || len(way.Next.Path) > 0 {
		return
	}
	tmpl, ok := way.Next.Expr.(*hclsyntax.TemplateExpr)
	if !ok {
		return
	}
	text, earlier := withoutSpace(line.Text), line.Earlier
	for _, l := range x.templateLines(way.Next.In, tmpl) {
		if l.at.Filename == "" || l.text == "" || l.text != text {
			continue
		}
		if earlier--; earlier >= 0 {
			continue
		}
		f := x.u.l.set.File(l.at.Filename)
		if f == nil {
			return
		}
		stop := &way.Stops[0]
		start := f.LineStart(l.at.Start.Line)
		source := f.Line(l.at.Start.Line)
		from := len(source) - len(strings.TrimLeft(source, " \t"))
		stop.At.Filename = l.at.Filename
		stop.At.Start = hcl.Pos{Line: l.at.Start.Line, Column: from + 1, Byte: start + from}
		stop.At.End = hcl.Pos{Line: l.at.Start.Line, Column: len(source) + 1, Byte: start + len(source)}
		asked := templatePart{from: 0, to: len(text)}
		if line.To > 0 {
			asked.from = len(withoutSpace(line.Text[:line.From]))
			asked.to = asked.from + len(withoutSpace(line.Text[line.From:line.To]))
		}
		parts := slices.DeleteFunc(l.parts, func(p templatePart) bool { return p.to <= asked.from || p.from >= asked.to })
		switch {
		case len(parts) == 0:
			way.Next = nil
		case len(parts) == 1 && isValue(text[asked.from:asked.to], text[parts[0].from:parts[0].to]):
			stop.Expr = parts[0].x
			way.Next = &explanation.ExprPart{In: way.Next.In, Expr: parts[0].x}
		default:
			made := &hclsyntax.TemplateExpr{SrcRange: stop.At}
			for _, p := range parts {
				made.Parts = append(made.Parts, p.x)
			}
			way.Next = &explanation.ExprPart{In: way.Next.In, Expr: made}
		}
		return
	}
}

// isValue reports whether an expression consists of the text of an interpolation, which may be
// in quotes.
func isValue(x, text string) bool { return x == text || x == `"`+text+`"` }

func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// templateLines returns the lines that a template produces.
func (x *explained) templateLines(in explanation.Scope, tmpl *hclsyntax.TemplateExpr) []templateLine {
	lines := []templateLine{{}}
	for _, p := range x.templateParts(in, tmpl) {
		v, ds := in.Eval(p, nil)
		v, _ = v.Unmark()
		text := ""
		if v, err := convert.Convert(v, cty.String); !ds.HasErrors() && err == nil && syntax.IsString(v) {
			text = v.AsString()
		}
		_, literal := p.(*hclsyntax.LiteralValueExpr)
		at := p.Range()
		for i, piece := range strings.SplitAfter(text, "\n") {
			cur := &lines[len(lines)-1]
			if cur.at.Filename == "" {
				cur.at = at
				if literal { // a quoted template has its lines in one line
					cur.at.Start.Line = min(at.Start.Line+i, at.End.Line)
					cur.at.End = cur.at.Start
				}
			}
			from := len(cur.text)
			cur.text += withoutSpace(piece)
			if !literal && len(piece) > 0 {
				cur.parts = append(cur.parts, templatePart{p, from, len(cur.text)})
			}
			if strings.HasSuffix(piece, "\n") {
				lines = append(lines, templateLine{})
			}
		}
	}
	return lines
}

// templateParts returns the parts of a template, with the selected branches of its if
// directives.
func (x *explained) templateParts(in explanation.Scope, tmpl *hclsyntax.TemplateExpr) (out []hclsyntax.Expression) {
	for _, p := range tmpl.Parts {
		branch := x.selected(in, p)
		if inner, ok := branch.(*hclsyntax.TemplateExpr); ok && branch != p {
			out = append(out, x.templateParts(in, inner)...)
			continue
		}
		out = append(out, branch)
	}
	return out
}

// selected returns the branch of an if directive that the template writes, and other parts as
// they are.
func (x *explained) selected(in explanation.Scope, part hclsyntax.Expression) hclsyntax.Expression {
	choice, ok := part.(*hclsyntax.ConditionalExpr)
	if !ok {
		return part
	}
	at := choice.Range()
	f := x.u.l.set.File(at.Filename)
	if f == nil || at.Start.Byte >= len(f.Bytes) || !strings.HasPrefix(string(f.Bytes[at.Start.Byte:min(at.Start.Byte+2, len(f.Bytes))]), "%{") {
		return part
	}
	v, ds := in.Eval(choice.Condition, nil)
	v, _ = v.Unmark()
	if v, err := convert.Convert(v, cty.Bool); !ds.HasErrors() && err == nil && syntax.Known(v) {
		if v.True() {
			return choice.TrueResult
		}
		return choice.FalseResult
	}
	return part
}
