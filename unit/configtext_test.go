package unit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// TestConfigText compares the text of random values with that of hclwrite.
func TestConfigText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		names := []string{"a", "much_longer", "b-c"}
		var text configText
		f := hclwrite.NewEmptyFile()
		body := f.Body()
		write := func() {
			for _, n := range names[:1+r.IntN(len(names))] {
				v := drawn(r, 4)
				text.attribute(n, v)
				body.SetAttributeValue(n, v)
			}
		}
		if i%2 == 0 {
			write()
		} else {
			labels := []string{fmt.Sprint("l", i), "with \"quotes\" and ${x}"}[:i%3]
			body = body.AppendNewBlock("block", labels).Body()
			text.block("block", labels, write)
		}
		if got, want := string(text.formatted()), string(hclwrite.Format(f.Bytes())); got != want {
			t.Fatalf("value %d: got\n%s\nwant\n%s", i, got, want)
		}
	}
}

// drawn returns a random value that is at most depth levels deep.
func drawn(r *rand.Rand, depth int) cty.Value {
	texts := []string{"", "plain", "two\nlines\n", "${x}", "%{if}", "$${", "\"q\" \\", "ü 日本", "\t\x00", "a.b", "null"}
	n := 9
	if depth == 0 {
		n = 5
	}
	var in []cty.Value
	some := func() []cty.Value {
		for range r.IntN(4) {
			in = append(in, drawn(r, depth-1))
		}
		return in
	}
	switch r.IntN(n) {
	case 0:
		return cty.BoolVal(r.IntN(2) == 0)
	case 1:
		return cty.NumberFloatVal(float64(r.IntN(2000)-1000) / 8)
	case 2:
		return cty.NullVal([]cty.Type{cty.String, cty.DynamicPseudoType, cty.List(cty.String)}[r.IntN(3)])
	case 5:
		return cty.TupleVal(some())
	case 6:
		return cty.SetVal([]cty.Value{cty.StringVal("y"), cty.StringVal(texts[r.IntN(len(texts))])})
	case 7, 8:
		m := map[string]cty.Value{}
		for _, v := range some() {
			m[texts[r.IntN(len(texts))]+[]string{"", "x", "long_name"}[r.IntN(3)]] = v
		}
		return cty.ObjectVal(m)
	}
	return cty.StringVal(texts[r.IntN(len(texts))])
}
