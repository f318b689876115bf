package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Configuration in JSON syntax
//
// A file in JSON syntax is converted to a body of the native syntax whose ranges are those in the JSON
// text. So the names in both syntaxes are found by the same code. A property is a block if the language
// defines a block with its name, and an argument otherwise. A string is a template, except where the
// language takes it as a reference (depends_on) or as it is (default).

// IsJSON reports whether a file of configuration has JSON syntax.
func IsJSON(path string) bool { return strings.HasSuffix(path, ".json") }

// A Node is a value in a JSON text.
type Node struct {
	Start, End int  // range of the value, in bytes
	Type       byte // '{', '[', '"', or 0 for other values
	Members    []Member
	Items      []*Node
	Text       string    // of a string, without quotes and escapes
	Value      cty.Value // of a value that is neither string, object nor array
}

// A Member is a property of an object.
type Member struct {
	Key        string
	Start, End int // range of the key, with its quotes
	Value      *Node
}

// ParseJSON parses a JSON text as far as possible. n is nil if nothing can be parsed.
func ParseJSON(text []byte) (n *Node, broken bool) {
	p := &jsonParser{text: text, d: json.NewDecoder(bytes.NewReader(text))}
	p.d.UseNumber()
	n, err := p.value()
	if err == nil {
		if _, _, err = p.token(); err == nil {
			err = errors.New("text after the value")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return n, err != nil
}

type jsonParser struct {
	text  []byte
	d     *json.Decoder
	start int // of the last token
}

// token returns the next token with the offset of its end.
func (p *jsonParser) token() (json.Token, int, error) {
	at := int(p.d.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	p.start = at
	t, err := p.d.Token()
	return t, int(p.d.InputOffset()), err
}

func (p *jsonParser) value() (*Node, error) {
	t, end, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &Node{Start: p.start, End: end}
	switch t := t.(type) {
	case json.Delim:
		n.Type = byte(t)
		for p.d.More() {
			if t == '[' {
				item, err := p.value()
				if item != nil {
					n.Items, n.End = append(n.Items, item), item.End
				}
				if err != nil {
					return n, err
				}
				continue
			}
			key, end, err := p.token()
			if err != nil {
				return n, err
			}
			name, _ := key.(string)
			m := Member{Key: name, Start: p.start, End: end}
			m.Value, err = p.value()
			if m.Value != nil {
				n.Members, n.End = append(n.Members, m), m.Value.End
			}
			if err != nil {
				return n, err
			}
		}
		_, end, err := p.token()
		if err == nil {
			n.End = end
		}
		return n, err
	case string:
		n.Type, n.Text = '"', t
	case json.Number:
		n.Value = cty.DynamicVal
		if v, err := cty.ParseNumberVal(t.String()); err == nil {
			n.Value = v
		}
	case bool:
		n.Value = cty.BoolVal(t)
	default:
		n.Value = cty.NullVal(cty.DynamicPseudoType)
	}
	return n, nil
}

// jsonBody returns the body of a file in JSON syntax.
func jsonBody(path string, text []byte) (body *hclsyntax.Body, broken bool) {
	root, broken := ParseJSON(text)
	if root == nil {
		return nil, broken
	}
	r := &jsonReader{path: path, text: text, lines: []int{0}}
	for i, b := range text {
		if b == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	top := jsonBlocks(path)
	body = r.body(root, top, false)
	return body, broken
}

// jsonSpec describes the properties of an object that are blocks.
type jsonSpec struct {
	labels   map[string]int // number of labels, by the type of the block
	inner    map[string]*jsonSpec
	literal  bool     // strings are not templates
	literals []string // the arguments whose strings are not templates
	refs     []string // the arguments whose strings are references
}

// jsonBlocks returns the blocks at the top of a file.
func jsonBlocks(path string) *jsonSpec {
	k := KindOf(path)
	switch k {
	case JSON:
		return moduleSpec()
	case Test:
		return testSpec(path)
	case Unit, Stack:
		return unitSpec(syntax.Language().Unit)
	}
	return &jsonSpec{literal: true}
}

func moduleSpec() *jsonSpec {
	lifecycle := &jsonSpec{labels: map[string]int{"precondition": 0, "postcondition": 0}, refs: []string{"ignore_changes", "replace_triggered_by"}}
	provisioner := &jsonSpec{labels: map[string]int{"connection": 0}}
	object := &jsonSpec{
		labels: map[string]int{"lifecycle": 0, "connection": 0, "provisioner": 1}, refs: []string{"depends_on", "provider"},
		inner: map[string]*jsonSpec{"lifecycle": lifecycle, "provisioner": provisioner},
	}
	depends := &jsonSpec{refs: []string{"depends_on"}, labels: map[string]int{"precondition": 0}}
	moves := &jsonSpec{refs: []string{"from", "to", "provider"}}
	return &jsonSpec{
		labels: map[string]int{
			"resource": 2, "data": 2, "ephemeral": 2, "module": 1, "variable": 1, "output": 1, "provider": 1, "check": 1,
			"locals": 0, "terraform": 0, "moved": 0, "removed": 0, "import": 0,
		},
		inner: map[string]*jsonSpec{
			"resource": object, "data": object, "ephemeral": object, "output": depends,
			"module":   {refs: []string{"depends_on", "providers"}},
			"variable": {labels: map[string]int{"validation": 0}, literals: []string{"default", "type"}},
			"check":    {labels: map[string]int{"data": 2, "assert": 0}, inner: map[string]*jsonSpec{"data": object}},
			"moved":    moves, "removed": moves, "import": moves,
			"terraform": {labels: map[string]int{"required_providers": 0, "backend": 1, "cloud": 0, "encryption": 0}},
		},
	}
}

// testSpec returns the blocks of a file with tests, mocks or queries.
func testSpec(path string) *jsonSpec {
	var spec func(block string) *jsonSpec
	spec = func(block string) *jsonSpec {
		out := &jsonSpec{labels: map[string]int{}, inner: map[string]*jsonSpec{}, refs: []string{"target", "replace", "expect_failures", "providers"}}
		if s := testfile.Schema(block); s != nil {
			for _, b := range s.Blocks {
				out.labels[b.Type], out.inner[b.Type] = len(b.LabelNames), spec(b.Type)
			}
		}
		return out
	}
	switch {
	case IsMocks(path):
		return spec("mock_provider")
	case IsQueries(path):
		m := moduleSpec()
		m.labels["list"] = 2
		m.inner["list"] = &jsonSpec{labels: map[string]int{"config": 0}, refs: []string{"provider"}}
		return m
	}
	out := spec("")
	out.inner["variable"] = moduleSpec().inner["variable"]
	return out
}

func unitSpec(s *syntax.BlockSpec) *jsonSpec {
	out := &jsonSpec{labels: map[string]int{}, inner: map[string]*jsonSpec{}}
	for _, b := range s.Blocks {
		out.labels[b.Name] = 0
		if b.Label != syntax.NoLabel {
			out.labels[b.Name] = 1
		}
		out.inner[b.Name] = unitSpec(b)
	}
	return out
}

type jsonReader struct {
	path  string
	text  []byte
	lines []int // offset of the start of each line
}

func (r *jsonReader) pos(offset int) hcl.Pos {
	line := sort.SearchInts(r.lines, offset+1)
	return hcl.Pos{Byte: offset, Line: line, Column: offset - r.lines[line-1] + 1}
}

func (r *jsonReader) at(start, end int) hcl.Range {
	return hcl.Range{Filename: r.path, Start: r.pos(start), End: r.pos(end)}
}

// body converts an object, or an array of objects that are one body.
func (r *jsonReader) body(n *Node, s *jsonSpec, literal bool) *hclsyntax.Body {
	body := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: r.at(n.Start, n.End), EndRange: r.at(n.End, n.End)}
	objects := []*Node{n}
	if n.Type == '[' {
		objects = n.Items
	}
	for _, o := range objects {
		for _, m := range o.Members {
			if m.Key == "//" {
				continue // a comment
			}
			name := r.at(m.Start, m.End)
			if labels, ok := s.labels[m.Key]; ok && isBlock(m) {
				if m.Key == "include" && labels == 1 && slices.ContainsFunc(m.Value.Members, func(m Member) bool { return m.Key == "path" && m.Value.Type == '"' }) {
					labels = 0 // without a label
				}
				inner := s.inner[m.Key]
				if inner == nil {
					inner = &jsonSpec{}
				}
				r.blocks(body, &hclsyntax.Block{Type: m.Key, TypeRange: name}, labels, m.Value, inner)
				continue
			}
			x := r.expression(m.Value, s, literal || s.literal || slices.Contains(s.literals, m.Key), slices.Contains(s.refs, m.Key))
			body.Attributes[m.Key] = &hclsyntax.Attribute{Name: m.Key, Expr: x, NameRange: name, SrcRange: r.at(m.Start, m.Value.End)}
		}
	}
	return body
}

// isBlock reports whether the value of a property may be that of a block.
func isBlock(m Member) bool {
	return m.Value.Type == '{' || m.Value.Type == '[' && !slices.ContainsFunc(m.Value.Items, func(n *Node) bool { return n.Type != '{' })
}

// blocks adds the blocks in a value that has some more labels.
func (r *jsonReader) blocks(to *hclsyntax.Body, b *hclsyntax.Block, labels int, n *Node, s *jsonSpec) {
	switch {
	case n.Type == '[':
		for _, item := range n.Items {
			r.blocks(to, b, labels, item, s)
		}
	case n.Type == '{' && labels > 0:
		for _, m := range n.Members {
			if m.Key == "//" {
				continue
			}
			in := *b
			in.Labels, in.LabelRanges = append(slices.Clone(b.Labels), m.Key), append(slices.Clone(b.LabelRanges), r.at(m.Start, m.End))
			in.TypeRange = r.at(m.Start, m.End) // so that the block does not contain those before it
			r.blocks(to, &in, labels-1, m.Value, s)
		}
	case n.Type == '{':
		b := *b
		b.Body = r.body(n, s, false)
		b.OpenBraceRange, b.CloseBraceRange = r.at(n.Start, n.Start+1), r.at(max(n.Start, n.End-1), n.End)
		to.Blocks = append(to.Blocks, &b)
	}
}

// expression converts a value.
func (r *jsonReader) expression(n *Node, s *jsonSpec, literal, ref bool) hclsyntax.Expression {
	at := r.at(n.Start, n.End)
	switch n.Type {
	case '{':
		x := &hclsyntax.ObjectConsExpr{SrcRange: at, OpenRange: r.at(n.Start, n.Start+1)}
		for _, m := range n.Members {
			key := r.template(&Node{Start: m.Start, End: m.End, Type: '"', Text: m.Key}, literal)
			x.Items = append(x.Items, hclsyntax.ObjectConsItem{KeyExpr: &hclsyntax.ObjectConsKeyExpr{Wrapped: key, ForceNonLiteral: true}, ValueExpr: r.expression(m.Value, s, literal, ref)})
		}
		return x
	case '[':
		x := &hclsyntax.TupleConsExpr{SrcRange: at, OpenRange: r.at(n.Start, n.Start+1)}
		for _, item := range n.Items {
			x.Exprs = append(x.Exprs, r.expression(item, s, literal, ref))
		}
		return x
	case '"':
		if ref && !strings.Contains(n.Text, "${") {
			if x := r.parsed(n, hclsyntax.ParseExpression); x != nil {
				return x
			}
		}
		return r.template(n, literal)
	}
	return &hclsyntax.LiteralValueExpr{Val: n.Value, SrcRange: at}
}

// template converts a string.
func (r *jsonReader) template(n *Node, literal bool) hclsyntax.Expression {
	if !literal && (strings.Contains(n.Text, "${") || strings.Contains(n.Text, "%{")) {
		if x := r.parsed(n, hclsyntax.ParseTemplate); x != nil {
			return x
		}
	}
	inner := r.at(n.Start+1, max(n.Start+1, n.End-1))
	return &hclsyntax.TemplateExpr{SrcRange: r.at(n.Start, n.End), Parts: []hclsyntax.Expression{&hclsyntax.LiteralValueExpr{Val: cty.StringVal(n.Text), SrcRange: inner}}}
}

// parsed returns the expression in a string, or nil. Its ranges are those in the text.
func (r *jsonReader) parsed(n *Node, parse func([]byte, string, hcl.Pos) (hclsyntax.Expression, hcl.Diagnostics)) hclsyntax.Expression {
	x, diags := parse([]byte(n.Text), r.path, r.pos(n.Start+1))
	if diags.HasErrors() {
		return nil
	}
	if offsets := escapes(r.text[n.Start:n.End]); offsets != nil {
		r.shift(x, n.Start+1, func(at int) int { return n.Start + offsets[min(max(at, 0), len(offsets)-1)] })
	}
	return x
}

// escapes returns, for each byte of the value of a JSON string, and for its end, the offset in the text
// of the string. It is nil if the string has no escapes.
func escapes(quoted []byte) []int {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return nil
	}
	var out []int
	add := func(at, n int) {
		for range n {
			out = append(out, at)
		}
	}
	i := 1
	for i < len(quoted)-1 {
		if quoted[i] != '\\' || i+1 >= len(quoted)-1 {
			add(i, 1)
			i++
			continue
		}
		if quoted[i+1] != 'u' {
			add(i, 1)
			i += 2
			continue
		}
		c := hex(quoted, i+2)
		n := 6
		if utf16.IsSurrogate(c) {
			if i+7 < len(quoted) && quoted[i+6] == '\\' && quoted[i+7] == 'u' {
				if both := utf16.DecodeRune(c, hex(quoted, i+8)); both != utf8.RuneError {
					c, n = both, 12
				}
			}
			if n == 6 {
				c = utf8.RuneError
			}
		}
		add(i, utf8.RuneLen(c))
		i += n
	}
	return append(out, i)
}

// hex returns the number of four hexadecimal digits at an offset.
func hex(text []byte, at int) (out rune) {
	for i := at; i < min(at+4, len(text)); i++ {
		out *= 16
		switch c := text[i] | 0x20; {
		case c >= '0' && c <= '9':
			out += rune(c - '0')
		case c >= 'a' && c <= 'f':
			out += rune(c-'a') + 10
		}
	}
	return out
}

// shift replaces the ranges of an expression that was parsed from the value of a string with escapes.
// base is the offset at which the value was parsed; to returns the offset in the text.
func (r *jsonReader) shift(x hclsyntax.Expression, base int, to func(int) int) {
	move := func(at *hcl.Range) { *at = r.at(to(at.Start.Byte-base), to(at.End.Byte-base)) }
	steps := func(t hcl.Traversal) {
		for i, s := range t {
			switch s := s.(type) {
			case hcl.TraverseRoot:
				move(&s.SrcRange)
				t[i] = s
			case hcl.TraverseAttr:
				move(&s.SrcRange)
				t[i] = s
			case hcl.TraverseIndex:
				move(&s.SrcRange)
				t[i] = s
			}
		}
	}
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			move(&n.SrcRange)
			steps(n.Traversal)
		case *hclsyntax.RelativeTraversalExpr:
			move(&n.SrcRange)
			steps(n.Traversal)
		case *hclsyntax.FunctionCallExpr:
			move(&n.NameRange)
			move(&n.OpenParenRange)
			move(&n.CloseParenRange)
		case *hclsyntax.LiteralValueExpr:
			move(&n.SrcRange)
		case *hclsyntax.TemplateExpr:
			move(&n.SrcRange)
		case *hclsyntax.TemplateWrapExpr:
			move(&n.SrcRange)
		case *hclsyntax.ObjectConsExpr:
			move(&n.SrcRange)
		case *hclsyntax.TupleConsExpr:
			move(&n.SrcRange)
		case *hclsyntax.ForExpr:
			move(&n.SrcRange)
		case *hclsyntax.ConditionalExpr:
			move(&n.SrcRange)
		case *hclsyntax.BinaryOpExpr:
			move(&n.SrcRange)
		case *hclsyntax.IndexExpr:
			move(&n.SrcRange)
		case *hclsyntax.SplatExpr:
			move(&n.SrcRange)
		case *hclsyntax.ParenthesesExpr:
			move(&n.SrcRange)
		}
		return nil
	})
}
