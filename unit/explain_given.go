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
)

// Given implements explanation.Unit: it finds the extra_arguments block that names a
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

// Generated implements explanation.Unit: it finds the generate or remote_state block that
// writes a line of a file.
func (x *explained) Generated(name, line string) (explanation.Way, bool) {
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
	arg, _, isArg := strings.Cut(strings.TrimSpace(line), "=")
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

// written narrows the contents of a generated file down to the line of text that produces
// the given line, and to the values in it.
func (x *explained) written(way *explanation.Way, line string) {
	if way.Next == nil || len(way.Next.Path) > 0 {
		return
	}
	tmpl, ok := way.Next.Expr.(*hclsyntax.TemplateExpr)
	if !ok {
		return
	}
	bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
	type made struct {
		text  string
		at    source.Range
		parts []hclsyntax.Expression
	}
	lines := []made{{}}
	for _, p := range tmpl.Parts {
		v, ds := way.Next.In.Eval(p, nil)
		v, _ = v.Unmark()
		text := ""
		if !ds.HasErrors() && syntax.IsString(v) {
			text = v.AsString()
		} else if syntax.Known(v) && v.Type() == cty.Number {
			text = v.AsBigFloat().Text('f', -1)
		} else if syntax.Known(v) && v.Type() == cty.Bool {
			text = fmt.Sprint(v.True())
		}
		_, literal := p.(*hclsyntax.LiteralValueExpr)
		at := p.Range()
		for i, piece := range strings.SplitAfter(text, "\n") {
			cur := &lines[len(lines)-1]
			if cur.at.Filename == "" {
				cur.at = at
				if literal {
					cur.at.Start.Line += i
					cur.at.End = cur.at.Start
				}
			}
			if !literal && len(piece) > 0 {
				cur.parts = append(cur.parts, p)
			}
			cur.text += piece
			if strings.HasSuffix(piece, "\n") {
				lines = append(lines, made{})
			}
		}
	}
	for _, l := range lines {
		if l.at.Filename == "" || bare(l.text) == "" || bare(l.text) != bare(line) {
			continue
		}
		stop := way.Stops[0]
		f := x.u.l.set.File(l.at.Filename)
		if f == nil {
			return
		}
		start := f.LineStart(l.at.Start.Line)
		text := f.Line(l.at.Start.Line)
		from := len(text) - len(strings.TrimLeft(text, " \t"))
		stop.At = source.Range{Filename: l.at.Filename,
			Start: hcl.Pos{Line: l.at.Start.Line, Column: from + 1, Byte: start + from},
			End:   hcl.Pos{Line: l.at.Start.Line, Column: len(text) + 1, Byte: start + len(text)}}
		if len(l.parts) == 1 {
			stop.Expr = l.parts[0]
			way.Next = &explanation.Target{In: way.Next.In, Expr: l.parts[0]}
		}
		if len(l.parts) == 0 {
			way.Next = nil
		}
		way.Stops[0] = stop
		return
	}
}
