package funcs

import (
	"flag"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

var update = flag.Bool("update", false, "write the answers that the functions give now to testdata/answers.txt")

const answersFile = "testdata/answers.txt"

// question is an expression in answersFile with its expected output on a console.
type question struct {
	notes   string // the preceding lines, unchanged
	expr    string
	differs bool // differs from OpenTofu on purpose
	answer  string
}

// questions reads answersFile: a line contains an expression, with ~ before it if OpenTofu's
// answer differs. Its answer follows in lines that begin with a tab. Lines that begin with #
// are comments; $DIR is the directory of answersFolder.
func questions(t *testing.T) []question {
	text, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatal(err)
	}
	var qs []question
	notes := ""
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "\t"):
			q := &qs[len(qs)-1]
			q.answer = strings.TrimPrefix(q.answer+"\n"+line[1:], "\n")
		case line == "" || line[0] == '#':
			notes += line + "\n"
		default:
			expr, differs := strings.CutPrefix(line, "~ ")
			qs = append(qs, question{notes: notes, expr: expr, differs: differs})
			notes = ""
		}
	}
	return qs
}

// TestAnswers checks the results of functions for normal, null, unknown, marked and wrong
// arguments.
func TestAnswers(t *testing.T) {
	dir := answersFolder(t)
	ctx := answersContext(dir)
	qs := questions(t)
	var b strings.Builder
	for _, q := range qs {
		got := answer(ctx, strings.ReplaceAll(q.expr, "$DIR", dir))
		got = strings.ReplaceAll(got, dir, "$DIR")
		if got != q.answer && !*update {
			t.Errorf("%s\ngot\n%s\nwant\n%s", q.expr, got, q.answer)
		}
		b.WriteString(q.notes)
		if q.differs {
			b.WriteString("~ ")
		}
		b.WriteString(q.expr + "\n\t" + strings.ReplaceAll(got, "\n", "\n\t") + "\n")
	}
	if *update {
		if err := os.WriteFile(answersFile, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

const home = "/home/me"

const errorMark = "Error: "

func failed(answer string) bool { return strings.HasPrefix(answer, errorMark) }

// answersFolder creates a directory of files to which the expressions refer.
func answersFolder(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.tf":   "resource \"terraform_data\" \"u\" {\n  input = \"x\"\n}\nvariable \"e\" {\n  ephemeral = true\n  default = \"eph\"\n}\n",
		"a.txt":     "hello",
		"sub/b.txt": "x",
		"t.tmpl":    "hi ${name}",
		"bin":       "\xff\xfe",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("sub", filepath.Join(dir, "lnk")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// answersContext returns the console's context in answersFolder: with an unknown resource and
// an ephemeral variable.
func answersContext(dir string) *hcl.EvalContext {
	unknown := cty.UnknownVal(cty.Object(map[string]cty.Type{
		"id": cty.String, "input": cty.DynamicPseudoType, "output": cty.DynamicPseudoType, "triggers_replace": cty.DynamicPseudoType,
	}))
	return &hcl.EvalContext{
		Functions: Table(Config{BaseDir: dir, Console: true, Home: func() (string, error) { return home, nil }}),
		Variables: map[string]cty.Value{
			"terraform_data": cty.ObjectVal(map[string]cty.Value{"u": unknown}),
			"var":            cty.ObjectVal(map[string]cty.Value{"e": cty.StringVal("eph").Mark(value.Ephemeral)}),
		},
	}
}

// answer returns the output of a console for an expression.
func answer(ctx *hcl.EvalContext, expr string) string {
	x, ds := hclsyntax.ParseExpression([]byte(expr), "<console-input>", hcl.InitialPos)
	if ds.HasErrors() {
		return errorMark + ds[0].Error()
	}
	hclnative.ResolveTypes(x)
	v, ds := x.Value(ctx)
	if ds.HasErrors() {
		return errorMark + strings.Join(strings.Fields(ds[0].Detail), " ")
	}
	if ty, ok := DescribedType(v); ok {
		return TypeString(ty)
	}
	if ContainsType(v) {
		return errorMark + "type inside of a value"
	}
	var b strings.Builder
	write(&b, v, 0)
	return b.String()
}

func write(b *strings.Builder, v cty.Value, depth int) {
	bare, marks := v.Unmark()
	ty := bare.Type()
	switch {
	case marks.Has(value.Sensitive) && bare.IsKnown():
		b.WriteString("(sensitive value)")
	case marks.Has(value.Ephemeral) && bare.IsKnown():
		b.WriteString("(ephemeral value)")
	case !bare.IsKnown():
		b.WriteString("(known after apply)")
	case bare.IsNull():
		writeNull(b, ty)
	case ty == cty.String:
		b.WriteString(strconv.Quote(bare.AsString()))
	case ty == cty.Number:
		b.WriteString(bare.AsBigFloat().Text('f', -1))
	case ty == cty.Bool:
		fmt.Fprint(b, bare.True())
	case ty.IsListType():
		writeParts(b, bare, depth, "tolist([", "])")
	case ty.IsSetType():
		writeParts(b, bare, depth, "toset([", "])")
	case ty.IsTupleType():
		writeParts(b, bare, depth, "[", "]")
	case ty.IsMapType():
		writeParts(b, bare, depth, "tomap({", "})")
	default:
		writeParts(b, bare, depth, "{", "}")
	}
}

func writeNull(b *strings.Builder, ty cty.Type) {
	switch {
	case ty.IsSetType():
		fmt.Fprintf(b, "toset(null) /* of %s */", ty.ElementType().FriendlyName())
	case ty.IsListType():
		fmt.Fprintf(b, "tolist(null) /* of %s */", ty.ElementType().FriendlyName())
	case ty.IsPrimitiveType():
		fmt.Fprintf(b, "to%s(null)", ty.FriendlyName())
	default:
		b.WriteString("null")
	}
}

func writeParts(b *strings.Builder, v cty.Value, depth int, before, after string) {
	b.WriteString(before)
	in := strings.Repeat("  ", depth+1)
	named := slices.Contains([]string{"{", "tomap({"}, before)
	for key, part := range v.Elements() {
		b.WriteString("\n" + in)
		if named {
			b.WriteString(strconv.Quote(key.AsString()) + " = ")
		}
		write(b, part, depth+1)
		if !named {
			b.WriteString(",")
		}
	}
	if v.LengthInt() > 0 {
		b.WriteString("\n" + strings.Repeat("  ", depth))
	}
	b.WriteString(after)
}

// base64gzip returns the bytes of OpenTofu 1.12, which is built with Go 1.26, or those of OpenTofu
// 1.13, which is built with Go 1.27: the two versions of Go compress differently.
func TestGzipOfGo(t *testing.T) {
	want := map[string]string{
		`base64gzip("hello")`: `"H4sIAAAAAAAA/8pIzcnJBwAAAP//AQAA//+GphA2BQAAAA=="`,
		`base64gzip("")`:      `"H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA=="`,
	}
	if slices.Contains(build.Default.ReleaseTags, "go1.27") {
		want = map[string]string{
			`base64gzip("hello")`: `"H4sIAAAAAAAA/wAFAPr/aGVsbG8AAAD//wMAhqYQNgUAAAA="`,
			`base64gzip("")`:      `"H4sIAAAAAAAA/wAAAP//AwAAAAAAAAAAAA=="`,
		}
	}
	ctx := answersContext(answersFolder(t))
	for expr, want := range want {
		if got := answer(ctx, expr); got != want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", expr, got, want)
		}
	}
}
