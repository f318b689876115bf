package hclnative

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// compare parses a text with this package and with hclsyntax. It returns the first difference
// between the results, or "".
func compare(src []byte) string {
	want, diags := hclsyntax.ParseConfig(src, "f", hcl.InitialPos)
	f, ok := Scan(src, "f")
	if ok == diags.HasErrors() {
		return fmt.Sprintf("accepted is %v; hclsyntax says: %v", ok, diags)
	}
	if !ok {
		return ""
	}
	if got, ok := Format(src, "f"); !ok || !bytes.Equal(got, hclwrite.Format(src)) {
		return fmt.Sprintf("laid out as %q, want %q", got, hclwrite.Format(src))
	}
	if got := f.Body.Syntax(); !reflect.DeepEqual(got, want.Body.(*hclsyntax.Body)) {
		return firstDifference("", reflect.ValueOf(got), reflect.ValueOf(want.Body))
	}
	return compareBodies(f.Body, want.Body.(*hclsyntax.Body))
}

// compareBodies compares a body with that of hclsyntax, including nested blocks.
func compareBodies(got *Body, want *hclsyntax.Body) string {
	all, some := &hcl.BodySchema{}, &hcl.BodySchema{}
	seen := map[string]bool{}
	for i, a := range got.Attrs {
		all.Attributes = append(all.Attributes, hcl.AttributeSchema{Name: a.Name, Required: i%2 == 0})
	}
	for _, b := range got.Blocks {
		if !seen[b.Type] {
			all.Blocks = append(all.Blocks, hcl.BlockHeaderSchema{Type: b.Type, LabelNames: b.Labels})
		}
		seen[b.Type] = true
	}
	some.Attributes, some.Blocks = all.Attributes[len(all.Attributes)/2:], all.Blocks[:len(all.Blocks)/2]
	for _, schema := range []*hcl.BodySchema{all, some, {Attributes: []hcl.AttributeSchema{{Name: "none", Required: true}}}} {
		x, diags := got.Content(schema)
		y, wantDiags := want.Content(schema)
		if d := sameContent(x, y, diags, wantDiags); d != "" {
			return "content" + d
		}
		x, rest, diags := got.PartialContent(schema)
		y, wantRest, wantDiags := want.PartialContent(schema)
		if d := sameContent(x, y, diags, wantDiags); d != "" {
			return "partial content" + d
		}
		x, diags = rest.Content(all)
		y, wantDiags = wantRest.Content(all)
		if len(wantDiags) > 0 && len(diags) == len(wantDiags) {
			continue // the messages about required names that are hidden may differ
		}
		if d := sameContent(x, y, diags, wantDiags); d != "" {
			return "rest" + d
		}
	}
	x, diags := got.JustAttributes()
	y, wantDiags := want.JustAttributes()
	if !reflect.DeepEqual(x, y) || len(diags) != len(wantDiags) {
		return "other attributes"
	}
	for i := range got.Attrs {
		var found refs
		got.referAttr(&got.Attrs[i], &found)
		name := got.Attrs[i].Name
		if x, y := found.traversals(), want.Attributes[name].Expr.Variables(); len(x)+len(y) > 0 && !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("%s refers to %v, want %v", name, x, y)
		}
		if d := compareCode(got.late(&got.Attrs[i]).Expr.(*Late), want.Attributes[name].Expr); d != "" {
			return name + ": " + d
		}
	}
	for i, b := range got.Blocks {
		if b.DefRange() != want.Blocks[i].DefRange() || b.Body.Range() != want.Blocks[i].Body.Range() {
			return "other ranges of block " + b.Type
		}
		if d := compareBodies(b.Body, want.Blocks[i].Body); d != "" {
			return b.Type + ": " + d
		}
	}
	return ""
}

func sameContent(x, y *hcl.BodyContent, diags, wantDiags hcl.Diagnostics) string {
	if len(diags) != len(wantDiags) {
		return fmt.Sprintf(": %v, want %v", diags, wantDiags)
	}
	if !reflect.DeepEqual(x.Attributes, y.Attributes) || x.MissingItemRange != y.MissingItemRange || len(x.Blocks) != len(y.Blocks) {
		return " is another"
	}
	for i := range x.Blocks {
		a, b := *x.Blocks[i], *y.Blocks[i]
		a.Body, b.Body = nil, nil
		if !reflect.DeepEqual(a, b) {
			return fmt.Sprintf(": block %v, want %v", a, b)
		}
	}
	return ""
}

// firstDifference returns the path of the first difference between two trees, or "".
func firstDifference(path string, a, b reflect.Value) string {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return fmt.Sprintf("%s: %v, want %v", path, a, b)
	}
	if !a.IsValid() {
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() != b.IsNil() {
			return fmt.Sprintf("%s: %v, want %v", path, a, b)
		}
		if a.IsNil() || a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer() {
			return ""
		}
		return firstDifference(path, a.Elem(), b.Elem())
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[hcl.Range]() {
			if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
				return fmt.Sprintf("%s: %s, want %s", path, x, y)
			}
			return ""
		}
		for i := range a.NumField() {
			if d := firstDifference(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
	case reflect.Slice:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return fmt.Sprintf("%s: %d of %#v, want %d of %#v", path, a.Len(), a, b.Len(), b)
		}
		for i := range a.Len() {
			if d := firstDifference(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
	case reflect.Map:
		if a.Len() != b.Len() {
			return path + ": other keys"
		}
		for _, k := range a.MapKeys() {
			if d := firstDifference(fmt.Sprintf("%s[%v]", path, k), a.MapIndex(k), b.MapIndex(k)); d != "" {
				return d
			}
		}
	case reflect.Func:
	default:
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			return fmt.Sprintf("%s: %q, want %q", path, x, y)
		}
	}
	return ""
}

// texts contains fragments of HCL that together use the whole syntax.
var texts = []string{
	"", "\n", "a = 1", "\xef\xbb\xbfa = 1\n", "# c\na = 1 # d\n", "/* é */ a = 1 // x", "a=1\r\nb=2\r\n", "a = 1\rb = 2",
	"a = 1\na = 2\n", "a { }\n", "a {}\n", "a \"b\" c { x = 1 }\n", "a {\n x = 1\n}", "a { x = 1", "a { x = 1\n}\n", "a { b { } }\n", "\"a\" = 1", "a", "a b", "a {", "a \"${b}\" {}\n", "a \"\\u00e9\\n\" {}\n",
	"a = b.c.d[0].e[\"x\"][y].*.z.0[*].q\n", "a = b.0.1", "a = b.*.c.0.1", "a = b.*.*", "a = b[*].c[*].d[1]", "a = b[*", "a = b[true][null][\"${x}\"][\"a${x}\"][-1]\n", "a = (b).c", "a = (\nb\n.c\n(1)\n)\n",
	"a = f(1, 2,)\n", "a = f(x...)\n", "a = f(x..., )", "a = f(,)", "a = a::b::c(1)\n", "a = a::b", "a = f(\n1\n,\n2\n)\n", "a = f (1)",
	"a = [1, 2,]\n", "a = [\n1,\n2\n]\n", "a = [,]", "a = [for x in y : x if z]\n", "a = [for k, v in y : k => v]", "a = [for x in y : x...]", "a = {for k, v in y : k => v... if z}\n", "a = {for k in y : k}", "a = {\nfor x in y : x => 1 }\n", "a = { for = 1 }",
	"a = { b = 1, c : 2\n d = 3\n\n (e) = 4, \"f${g}\" = 5 }\n", "a = { b = 1 c = 2 }", "a = {,}", "a = { b }",
	"a = 1 + 2 * 3 - 4 / 5 % 6 == 7 && !b || c != -d && e >= f\n", "a = b ? c : d ? e : f\n", "a = b ? c", "a = 1 +", "a = b & c", "a = - - 1\n", "a = !b.c[0]\n",
	"a = 1.5e3\n", "a = 1..2", "a = 1.e5\n", "a = 1e\n", "a = 007\n", "a = 1e99999999999\n", "a = 0x1\n", "a = 1.b\n",
	"a = \"\"\n", "a = \"b\\n\\r\\t\\\"\\\\\\u00e9\\U0001F600\"\n", "a = \"\\ud800\"", "a = \"\\x\"", "a = \"\\", "a = \"b\nc\"", "a = \"é e\u0301 \xed\xa0\x80\" # é\n", "a = \"\xff\"",
	"a = \"$ $$ $${b} %%{c} %${d}$\"\n", "a = \"${b}\"\n", "a = \"x${ b }y${~ c ~} z\"\n", "a = \"${b\n}\"\n", "a = \"${\"${\"b\"}\"}\"\n", "a = \"${b} }\"\n", "a = \"${{b=1}.b}\"\n", "a = \"${b\"", "a = \"$\"\n",
	"a = \"%{ if b }c%{ else }d%{ endif }\"\n", "a = \"%{ if b ~} c %{~ endif ~} d\"\n", "a = \"%{ for k, v in b }${k}%{ endfor }x\"\n", "a = \"%{ for v in b }%{ endfor }\"\n", "a = \"%{ if b }%{ else }%{ else }%{ endif }\"", "a = \"%{ if b }%{ endfor }\"", "a = \"%{ else }\"", "a = \"%{ if b }\"", "a = \"%{ x }\"",
	"a = <<E\nb\n  E\n", "a = <<-E\n    b\n\n   ${c} d\n     e\n  E\nf = 1\n", "a = <<-E\n   b\n  %{ if c ~}\n   d\n  %{ endif }\n E\n", "a = <<E\nE\n", "a = <<E\nb", "a = <<E \nb\nE\n", "a = <<-E\r\n  b\r\n  E\r\n", "a = <<E\n$\n$$\n$x\n%y z\n$${a}\n$${\n$\r\n$\n\nE\n", "a = <<E\n${<<F\nx\nF\n}\nE\n", "a = [<<E\nb\nE\n, 1]\n", "a = <<E\nb\rc\nE\n", "a = <<-E\n\u00a0\u00a0b\n\u00a0c\nE\n", "a = <<é\nb\né\n", "a = <<E\n$\x80\nE\n",
	"é = ñ.é\n", "a-b = c-d\n", "a = b /* c\n d */ + e\n", "a = b /* c", "a = `b`", "a = 'b'", "a = b;", "a = \u201cb\u201d", "a = b ~ c", "a = \u0301", "a\u0301b = 1\n",
}

func TestSameAsHCL(t *testing.T) {
	for _, src := range texts {
		if d := compare([]byte(src)); d != "" {
			t.Errorf("%q: %s", src, d)
		}
	}
}

// FuzzSameAsHCL compares the parser with hclsyntax: either both accept a text or both refuse it, and
// the results are equal, including all ranges.
func FuzzSameAsHCL(f *testing.F) {
	for _, src := range texts {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if d := compare(src); d != "" {
			t.Fatalf("%q: %s", src, d)
		}
	})
}

// TestCorpus compares every file below the directory that HCL_CORPUS names.
func TestCorpus(t *testing.T) {
	root := os.Getenv("HCL_CORPUS")
	if root == "" {
		t.Skip("HCL_CORPUS names no directory with configuration")
	}
	var files, size, refused atomic.Int64
	paths := make(chan string)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for path := range paths {
				src, err := os.ReadFile(path)
				if err != nil {
					continue
				}
				files.Add(1)
				size.Add(int64(len(src)))
				if d := compare(src); d != "" {
					t.Errorf("%s: %s", path, d)
				}
				if _, ok := Scan(src, path); !ok {
					refused.Add(1)
				}
			}
		})
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch ext := filepath.Ext(path); {
		case err != nil || !d.Type().IsRegular():
		case ext == ".tf", ext == ".hcl", ext == ".tfvars", ext == ".tofu", strings.HasSuffix(path, ".tftest.hcl"):
			paths <- path
		}
		return nil
	})
	close(paths)
	wg.Wait()
	t.Logf("%d files of %d bytes, %d of them refused", files.Load(), size.Load(), refused.Load())
}
