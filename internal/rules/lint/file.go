package lint

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A File is a file to check.
type File struct {
	Path      string // absolute
	Name      string // the name of the file in the ranges of Module.Config
	Text      []byte
	Override  bool // an override file
	Generated bool // written by a generate block; its references count, but it has no findings
	Unit      bool // the file of a unit, or a file that one reads
}

// facts contains the parts of one file that lints check. It depends only on the text of the file: a
// file of several modules is read once.
type facts struct {
	path string
	text []byte
	body *hclsyntax.Body // nil for JSON, for a file with errors, and for the file of a unit
	json bool
	// unit contains the blocks of the file of a unit that lints check, instead of body. nil means that
	// there are none to check, as for body. An estate has many such files, and bodies are large.
	unit  *unitBlocks
	uses  map[string]bool // the references: "var.a", "local.b", "data.t.n", "t.n", "aws.alias"
	funcs map[string]bool // the called functions
	// outputs are the outputs of other units that the file reads. "" means that it reads all.
	outputs map[string]bool
	quoted  []quoted
	// found are the findings that need no other file.
	found   []*finding.Finding
	ignores []ignore
}

// quoted is a text that may be an address in quotes.
type quoted struct {
	text, in string // in is the subject that contains the text
	at       source.Range
}

// facts returns the facts of a file.
func (l *Linter) facts(f File) *facts {
	return l.factsOf(f, func() *facts {
		if _, deep := source.TooDeep(f.Path, f.Text); deep {
			return newFacts(f) // loading the file reports this
		}
		return read(f)
	})
}

// Seen takes the facts of the file of a unit, or of a file that one reads, from its syntax tree, so that it
// is not parsed again. The file must have no errors. It implements syntax.Parses.Seen.
func (l *Linter) Seen(path string, text []byte, tree *hcl.File) {
	if f := (File{Path: path, Text: text, Unit: true}); !l.On.None() {
		l.factsOf(f, func() *facts { return readTree(f, tree) })
	}
}

func (l *Linter) factsOf(f File, read func() *facts) *facts {
	k := key(f)
	return l.files.Local(k, func() (*facts, bool) {
		if before := l.earlier.Load(); before != nil {
			if x, ok := before.files.Get(k); ok {
				return x, true
			}
		}
		return read(), true
	})
}

// key identifies the facts of a file.
func key(f File) [sha256.Size]byte {
	return sha256.Sum256(append(fmt.Appendf(nil, "%s\x00%t%t\x00", f.Path, f.Generated, f.Unit), f.Text...))
}

func newFacts(f File) *facts {
	return &facts{path: f.Path, text: f.Text, uses: map[string]bool{}, funcs: map[string]bool{}, outputs: map[string]bool{}}
}

func read(f File) *facts {
	if strings.HasSuffix(f.Path, ".json") {
		x := newFacts(f)
		x.json = true
		if parsed, _ := hcljson.Parse(f.Text, f.Path); parsed != nil {
			for _, t := range config.References(parsed.Body) {
				x.use(t)
			}
		}
		return x
	}
	parsed, diags := hclnative.ParseConfig(f.Text, f.Path)
	if diags.HasErrors() {
		return newFacts(f)
	}
	return readTree(f, parsed)
}

// readTree returns the facts of a file in native syntax.
func readTree(f File, parsed *hcl.File) *facts {
	x := newFacts(f)
	x.body, _ = parsed.Body.(*hclsyntax.Body)
	if x.body == nil {
		return x
	}
	x.ignores = ignoresIn(f.Path, f.Text)
	for _, i := range x.ignores {
		if i.reason == "" {
			x.report(IgnoreReason, scope{}, "", i.at, strings.Join(i.codes, ","), "The comment has no effect: terrace:ignore needs the code of a lint and a reason.")
		}
	}
	x.block(x.body, scope{})
	if f.Generated {
		x.found, x.quoted = nil, nil
	}
	if f.Unit {
		x.unit, x.body = unitBlocksOf(x.body), nil
	}
	return x
}

// unitBlocks are the blocks of the file of a unit that lints check.
type unitBlocks struct {
	locals                 []local
	dependencies, includes []labeled
}

// local is a local value of a file.
type local struct {
	name     string
	nameAt   source.Range
	argument source.Range
	matters  bool // see mayMatter
}

// labeled is a block with a label.
type labeled struct {
	label, subject string
	at             source.Range // of its header
}

func unitBlocksOf(body *hclsyntax.Body) *unitBlocks {
	out := &unitBlocks{}
	for _, b := range body.Blocks {
		label := ""
		if len(b.Labels) == 1 {
			label = b.Labels[0]
		}
		switch b.Type {
		case "locals":
			for _, a := range inOrder(b.Body) {
				out.locals = append(out.locals, local{a.Name, a.NameRange, a.SrcRange, mayMatter(a.Expr)})
			}
		case "dependency":
			if label != "" {
				out.dependencies = append(out.dependencies, labeled{label, subject(b), b.DefRange()})
			}
		case "include":
			out.includes = append(out.includes, labeled{label, subject(b), b.DefRange()})
		}
	}
	return out
}

// scope is the position of a body in its file.
type scope struct {
	subject string // the address of the block at the top, such as "var.x" or "aws_x.y"
	typ     string // the type of the block at the top, such as "resource"
	own     string // a reference that does not count, because the block refers to itself
	nested  []string
}

func (x *facts) block(body *hclsyntax.Body, in scope) {
	for _, a := range inOrder(body) {
		at := in
		if in.typ == "locals" && len(in.nested) == 0 {
			at.subject = "local." + a.Name
		}
		x.expression(a, at)
	}
	for _, b := range body.Blocks {
		at := in
		if in.typ == "" {
			at.typ, at.subject = b.Type, subject(b)
			if b.Type == "variable" {
				at.own = at.subject
			}
		} else {
			at.nested = append(slices.Clone(in.nested), b.Type)
		}
		x.block(b.Body, at)
	}
}

// subject returns the address of the object that a block declares.
func subject(b *hclsyntax.Block) string {
	labels := strings.Join(b.Labels, ".")
	switch b.Type {
	case "resource":
		return labels
	case "variable":
		return "var." + labels
	case "locals", "terraform", "language":
		return b.Type
	}
	if labels == "" {
		return b.Type
	}
	return b.Type + "." + labels
}

// inOrder returns the attributes of a body in source order.
func inOrder(b *hclsyntax.Body) []*hclsyntax.Attribute {
	out := make([]*hclsyntax.Attribute, 0, len(b.Attributes))
	for _, a := range b.Attributes {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	return out
}

// use records a reference by its first two or three names.
func (x *facts) use(t hcl.Traversal) {
	switch t.RootName() {
	case "dependency":
		x.outputs[output(t, 3)] = true
	case "module":
		x.outputs[output(t, 2)] = true
	}
	name := ""
	for i, s := range t[:min(len(t), 3)] {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			name = s.Name
		case hcl.TraverseAttr:
			name += "." + s.Name
		case hcl.TraverseIndex:
			if s.Key.Type() != cty.String {
				return
			}
			name += "." + s.Key.AsString()
		default:
			return
		}
		if i > 0 {
			x.uses[name] = true
		}
	}
	if len(t) == 1 {
		x.uses[name] = true
	}
}

// output returns the name of the output that step i of a reference reads, or "".
func output(t hcl.Traversal, i int) string {
	if i < len(t) {
		if s, ok := t[i].(hcl.TraverseIndex); ok && s.Key.Type() == cty.String {
			return s.Key.AsString()
		}
	}
	return step(t, i)
}

func (x *facts) source(at source.Range) string { return string(at.SliceBytes(x.text)) }

// report adds a finding of a rule. text identifies the finding in its subject.
func (x *facts) report(code string, in scope, path string, at source.Range, text, message string, fix ...finding.Edit) {
	x.found = append(x.found, &finding.Finding{
		Rule: code, Level: rule(code).Level, Verdict: finding.Fail, Message: message, Address: in.subject, Path: path, Text: text, SetAt: at, Fix: fix,
	})
}

// expression checks one attribute and records its references.
func (x *facts) expression(a *hclsyntax.Attribute, in scope) {
	eachReference(a.Expr, func(t hcl.Traversal) {
		if in.own == "" || len(t) < 2 || t.RootName()+"."+step(t, 1) != in.own {
			x.use(t)
		}
	})
	path := strings.Join(append(slices.Clone(in.nested), a.Name), ".")
	if in.typ == "locals" && len(in.nested) == 0 {
		path = ""
	}
	w := &walk{facts: x, in: in, path: path, attr: a}
	if in.typ == "variable" && a.Name == "default" {
		w.name = strings.TrimPrefix(in.subject, "var.")
	} else {
		w.name = a.Name
	}
	w.expression(a.Expr, place{name: w.name, top: true})
	if in.typ != "variable" && in.typ != "output" || a.Name != "type" {
		x.quotes(a, in, path)
	}
}

// step returns the name of step i of a reference, or "".
func step(t hcl.Traversal, i int) string {
	if i < len(t) {
		switch s := t[i].(type) {
		case hcl.TraverseRoot:
			return s.Name
		case hcl.TraverseAttr:
			return s.Name
		}
	}
	return ""
}

// literal returns the text of a quoted string without interpolations, or of a heredoc.
func literal(x hclsyntax.Expression) (string, bool) {
	t, ok := x.(*hclsyntax.TemplateExpr)
	if !ok {
		return "", false
	}
	var b strings.Builder
	for _, p := range t.Parts {
		l, ok := p.(*hclsyntax.LiteralValueExpr)
		if !ok || l.Val.Type() != cty.String || l.Val.IsNull() {
			return "", false
		}
		b.WriteString(l.Val.AsString())
	}
	return b.String(), true
}

// ignore is a comment that waives findings: "terrace:ignore CODE[,CODE] reason".
type ignore struct {
	line   int
	codes  []string
	reason string
	at     source.Range
}

var ignorePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`terrace:ignore\b[ \t]*([A-Za-z0-9_:,.-]*)[ \t]*([^\r\n]*)`)
})

// ignoresIn returns the comments of a file that waive findings. A comment on a line of its own is
// about the next line that is no comment, and one after an argument is about its line.
func ignoresIn(path string, text []byte) (out []ignore) {
	if !strings.Contains(string(text), "terrace:ignore") {
		return nil
	}
	tokens, _ := hclsyntax.LexConfig(text, path, hcl.InitialPos)
	for i, t := range tokens {
		if t.Type != hclsyntax.TokenComment {
			continue
		}
		m := ignorePattern().FindSubmatch(t.Bytes)
		if m == nil {
			continue
		}
		line := t.Range.Start.Line
		if i == 0 || tokens[i-1].Range.End.Line < line || tokens[i-1].Range.End.Column == 1 { // the comment is on a line of its own
			for _, next := range tokens[i+1:] {
				if next.Type != hclsyntax.TokenComment && next.Type != hclsyntax.TokenNewline {
					line = next.Range.Start.Line
					break
				}
			}
		}
		reason := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(m[2])), "*/"))
		out = append(out, ignore{line, strings.Split(strings.Trim(string(m[1]), ","), ","), reason, t.Range})
	}
	return out
}
