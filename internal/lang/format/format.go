// Package format formats configuration files, byte for byte as `tofu fmt` does, and finds
// the files for a call of fmt.
//
// Main functions: Configuration for module and variable files, HCL for other files in
// native syntax, and Find. The one rule: formatting never changes the meaning of a file,
// and a file with a syntax error is not changed.
package format

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// HCL formats a file in native syntax. It changes only indentation, alignment and spaces.
// With errors, the result is nil.
func HCL(src []byte, name string) ([]byte, hcl.Diagnostics) {
	if out, ok := hclnative.Format(src, name); ok {
		return out, nil
	}
	if diags := tooDeep(src, name); diags != nil {
		return nil, diags
	}
	if _, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos); diags.HasErrors() {
		return nil, diags
	}
	return hclwrite.Format(src), nil
}

// Configuration formats a module or variable file. In addition to HCL, it quotes the labels
// of blocks, drops comments between them, replaces "${x}" with x, and converts types of
// variables from the old style. With errors, the result is nil.
func Configuration(src []byte, name string) ([]byte, hcl.Diagnostics) {
	tokens, ok := hclnative.ScanTokens(src, name)
	if !ok {
		return HCL(src, name) // returns the errors of the file
	}
	defer tokens.Release()
	f := &formatter{src: src}
	f.body(tokens.File.Body, false, true)
	if len(f.edits) == 0 {
		return tokens.Format(), nil
	}
	text := f.apply()
	if out, ok := hclnative.Format(text, name); ok {
		return out, nil
	}
	return hclwrite.Format(text), nil
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       []byte
}

type formatter struct {
	src   []byte
	edits []edit
}

func (f *formatter) replace(r hcl.Range, text []byte) {
	f.edits = append(f.edits, edit{r.Start.Byte, r.End.Byte, text})
}

// apply applies the edits, which do not overlap.
func (f *formatter) apply() []byte {
	slices.SortFunc(f.edits, func(a, b edit) int { return a.start - b.start })
	var out bytes.Buffer
	at := 0
	for _, e := range f.edits {
		out.Write(f.src[at:e.start])
		out.Write(e.text)
		at = e.end
	}
	out.Write(f.src[at:])
	return out.Bytes()
}

// body collects the edits of a body. variable is true for the body of a variable block,
// top for the body of the file.
func (f *formatter) body(b *hclnative.Body, variable, top bool) {
	for i := range b.Attrs {
		a := &b.Attrs[i]
		if variable && a.Name == "type" {
			f.variableType(b.Expr(a))
		} else if strings.HasPrefix(b.Text(a), `"${`) {
			f.value(b.Expr(a))
		}
	}
	for _, block := range b.Blocks {
		if head := block.Head(); strings.Count(head, `"`) == 2*len(block.Labels) && !strings.Contains(head, "/*") { // all labels are quoted
			f.body(block.Body, top && block.Type == "variable", false)
			continue
		}
		at := 0
		for i, r := range block.LabelRanges() {
			if i == 0 {
				at = block.DefRange().Start.Byte + len(block.Type)
			}
			if gap := f.src[at:r.Start.Byte]; bytes.Contains(gap, []byte("/*")) { // OpenTofu drops comments between labels
				f.edits = append(f.edits, edit{at, r.Start.Byte, []byte(" ")})
			}
			at = r.End.Byte
			if text := f.src[r.Start.Byte:r.End.Byte]; len(text) > 0 && text[0] != '"' {
				f.replace(r, []byte(`"`+string(text)+`"`))
			}
		}
		f.body(block.Body, top && block.Type == "variable", false)
	}
}

// value replaces an expression "${x}" with x. If the result has several lines, it adds
// parentheses.
func (f *formatter) value(x hclsyntax.Expression) {
	wrap, ok := x.(*hclsyntax.TemplateWrapExpr)
	if !ok {
		return
	}
	r := wrap.SrcRange
	text := f.src[r.Start.Byte:r.End.Byte]
	if !bytes.HasPrefix(text, []byte(`"${`)) || !bytes.HasSuffix(text, []byte(`}"`)) {
		return // a heredoc
	}
	text = text[3 : len(text)-2]
	text = bytes.TrimPrefix(text, []byte("~"))
	text = bytes.TrimSuffix(text, []byte("~"))
	const blanks = " \t\r\n"
	whole := bytes.TrimLeft(text, blanks)
	text = bytes.TrimRight(whole, blanks)
	comment, parens := shape(text)
	if comment { // a comment that extends to the end of its line
		end, _, _ := bytes.Cut(whole[len(text):], []byte("\n"))
		text = append(slices.Clone(whole[:len(text)+len(end)]), '\n')
	}
	if parens {
		text = []byte("(" + string(text) + ")")
	}
	f.replace(r, text)
}

// shape reports whether a text ends with a line comment whose line break was cut off, and
// whether it needs parentheses: it has several lines outside of comments and heredocs, and
// is not in parentheses as a whole.
func shape(text []byte) (comment, parens bool) {
	tokens, _ := hclsyntax.LexExpression(text, "", hcl.InitialPos)
	open, enclosed := 0, true
	for i, t := range tokens {
		enclosed = enclosed && (open > 0 || i == 0 && t.Type == hclsyntax.TokenOParen || t.Type == hclsyntax.TokenEOF)
		comment = comment && t.Type == hclsyntax.TokenEOF
		switch t.Type {
		case hclsyntax.TokenOParen:
			open++
		case hclsyntax.TokenCParen:
			open--
		case hclsyntax.TokenNewline:
			parens = true
		case hclsyntax.TokenComment:
			comment = bytes.HasPrefix(t.Bytes, []byte("#")) || bytes.HasPrefix(t.Bytes, []byte("//"))
		}
	}
	return comment, parens && !enclosed
}

// variableType converts the type syntax of Terraform 0.11 to the current one.
func (f *formatter) variableType(x hclsyntax.Expression) {
	r := x.Range()
	switch string(f.src[r.Start.Byte:r.End.Byte]) {
	case "list", "map", "set":
		f.replace(r, append(slices.Clone(f.src[r.Start.Byte:r.End.Byte]), "(any)"...))
	case `"string"`:
		f.replace(r, []byte("string"))
	case `"list"`:
		f.replace(r, []byte("list(string)"))
	case `"map"`:
		f.replace(r, []byte("map(string)"))
	}
}

// tooDeep returns an error if a text nests so deeply that parsing it would overflow the stack.
func tooDeep(src []byte, name string) hcl.Diagnostics {
	at, deep := source.TooDeep(name, src)
	if !deep {
		return nil
	}
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Too deeply nested", Detail: "Expressions and blocks in this file are nested many thousand levels deep.", Subject: &at}}
}
