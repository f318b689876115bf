package hclnative

import (
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// compareUpdate updates the file of one text to another text. It returns the difference between the
// result and a scan of the other text, or "".
func compareUpdate(before, after string) string {
	f, ok := Scan([]byte(before), "f")
	if !ok {
		return ""
	}
	old, was := f.Body, f.Body.Syntax()
	want, wantOK := Scan([]byte(after), "f")
	if got := f.Update([]byte(after)); got != wantOK {
		return fmt.Sprintf("accepted is %v, want %v", got, wantOK)
	}
	if got := old.Syntax(); !reflect.DeepEqual(got.Attributes, was.Attributes) {
		return "arguments taken before changed"
	}
	if !wantOK {
		want, _ = Scan([]byte(before), "f")
	}
	if got, want := f.Body.Syntax(), want.Body.Syntax(); !reflect.DeepEqual(got, want) {
		return firstDifference("", reflect.ValueOf(got), reflect.ValueOf(want))
	}
	return compareBodies(f.Body, want.Body.Syntax())
}

// several returns a text with n arguments and blocks, selected randomly from texts.
func several(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		text := texts[r.Intn(len(texts))]
		if _, ok := Scan([]byte(text), "f"); !ok || strings.HasPrefix(text, bom) {
			continue
		}
		if name, ok := strings.CutPrefix(text, "a ="); ok {
			text = fmt.Sprintf("a%d =%s", i, name)
		} else if strings.HasPrefix(text, "a=") {
			continue
		}
		b.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestUpdate(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	accepted := 0
	for range 5000 {
		before := several(r, 1+r.Intn(12))
		from := r.Intn(len(before) + 1)
		to := min(len(before), from+r.Intn(12))
		put := ""
		switch r.Intn(4) {
		case 0:
			put = texts[r.Intn(len(texts))]
		case 1:
			put = []string{"\n", "x", " ", "#", "/*", "*/", "}", "{", "\"", "<<E\n", "E\n", "é", "z = 1\n", "b { x = 1 }\n", bom}[r.Intn(15)]
		case 2:
			from, to = 0, len(before)
			put = several(r, r.Intn(5))
		}
		after := before[:from] + put + before[to:]
		if d := compareUpdate(before, after); d != "" {
			t.Fatalf("%q\nto %q: %s", before, after, d)
		}
		if _, ok := Scan([]byte(after), "f"); ok {
			accepted++
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d of the changed texts were accepted", accepted)
	}
}

// TestUpdateKeeps checks that Update only parses the changed part again, that moved blocks have their
// new ranges, and that replaced blocks keep their content.
func TestUpdateKeeps(t *testing.T) {
	f, _ := Scan([]byte("a = 1\nb \"x\" {\n  y = 1\n}\nc \"x\" {\n  y = 2\n}\nd = 4\n"), "f")
	b, c := f.Body.Blocks[0], f.Body.Blocks[1]
	if !f.Update([]byte("a = 1\nb \"x\" {\n\n  y = 10 + 1\n}\nc \"x\" {\n  y = 2\n}\nd = 4\n")) {
		t.Fatal("refused")
	}
	if f.Body.Blocks[0] == b || f.Body.Blocks[1] != c {
		t.Error("the block that changed was kept, or the one behind it read again")
	}
	if line := c.DefRange().Start.Line; line != 6 {
		t.Errorf("the block behind is in line %d", line)
	}
	if got := b.Body.Text(&b.Body.Attrs[0]); got != "1" {
		t.Errorf("the block that was replaced has %s", got)
	}
	if n := f.Body.Blocks[0].Body.Expr(&f.Body.Blocks[0].Body.Attrs[0]); n.Range().Start.Line != 4 {
		t.Errorf("the expression is at %s", n.Range())
	}
	if _, ok := f.Body.Blocks[0].Body.Expr(&f.Body.Blocks[0].Body.Attrs[0]).(*hclsyntax.BinaryOpExpr); !ok {
		t.Error("the changed block has the old expression")
	}
}

// FuzzUpdate compares Update with Scan: the file of any text, updated to any other text, equals a scan
// of that other text.
func FuzzUpdate(f *testing.F) {
	for i, src := range texts {
		f.Add(src, texts[(i*7)%len(texts)])
		f.Add("x = 1\n"+src, "x = 1\n\n"+src)
		f.Add(src+"\ny {\n}\n", src+"y {\n}\n")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if d := compareUpdate(before, after); d != "" {
			t.Fatalf("%q\nto %q: %s", before, after, d)
		}
		around := before + "\n" + after
		if d := compareUpdate(before, around); d != "" {
			t.Fatalf("%q\nto %q: %s", before, around, d)
		}
	})
}

// BenchmarkUpdate changes one block in files of 10 to 10,000.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := strings.Repeat("resource \"terraform_data\" \"r\" {\n  count = var.enabled ? 2 : 0\n  input = { name = \"item-${var.name}\" }\n}\n", n)
			half := strings.Index(text[len(text)/2:], "item-") + len(text)/2
			texts := [2][]byte{[]byte(text), []byte(text[:half] + "other" + text[half:])}
			f, ok := Scan(texts[0], "f")
			if !ok {
				b.Fatal("refused")
			}
			i := 0
			for b.Loop() {
				i++
				if !f.Update(texts[i%2]) {
					b.Fatal("refused")
				}
			}
		})
	}
}
