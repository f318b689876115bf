package origin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// The index has the same results as a search for each secret in each text.
func TestSecretsAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = "ab"[r.IntN(2)]
		}
		return string(b)
	}
	hits := 0
	for range 2000 {
		s := &secrets{}
		for range r.IntN(6) {
			s.add(cty.StringVal(word(8)), true)
		}
		s.add(cty.NumberIntVal(7), true)
		text := word(12)
		want := false
		for _, secret := range s.texts {
			want = want || text == secret || len(secret) >= shortest && strings.Contains(text, secret)
		}
		if got := s.repeats(cty.StringVal(text)); got != want {
			t.Fatalf("%q among %q: %v", text, s.texts, got)
		}
		if want {
			hits++
		}
		if !s.repeats(cty.NumberIntVal(7)) || s.repeats(cty.NumberIntVal(8)) || s.repeats(cty.True) {
			t.Fatal("numbers")
		}
	}
	if hits < 100 || hits > 1900 {
		t.Errorf("%d of 2000 texts have secrets", hits)
	}
}

func BenchmarkRepeats(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := &secrets{}
			texts := make([]cty.Value, n)
			for i := range n {
				s.add(cty.StringVal(fmt.Sprintf("secret-%06d-of-many", i)), true)
				texts[i] = cty.StringVal(fmt.Sprintf("secret-%06d-is-none-of-them", i))
			}
			for b.Loop() {
				for _, v := range texts {
					if s.repeats(v) {
						b.Fatal("found")
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/text")
		})
	}
}

// A part is secret because of its declaration, the marks of its value, the schema of the block, or, if
// there is no schema, a name. Nothing else has an influence.
func TestEvidence(t *testing.T) {
	s := &schema.Block{Attributes: map[string]*schema.Attribute{
		"hidden": {Type: cty.String, Sensitive: true}, "password": {Type: cty.String},
	}}
	path := func(names ...string) (out []step) {
		for _, n := range names {
			out = append(out, nameStep(n))
		}
		return out
	}
	object := func(name string, v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{name: v}) }
	text, marked := cty.StringVal("x"), cty.StringVal("x").Mark(value.Sensitive)
	for _, c := range []struct {
		name string
		e    evidence
		want bool
	}{
		{"nothing", evidence{}, false},
		{"declared", evidence{declared: true}, true},
		{"a mark", evidence{value: marked}, true},
		{"no mark", evidence{value: text}, false},
		{"a mark at the part", evidence{value: object("a", marked), path: path("a")}, true},
		{"a mark beside the part", evidence{value: cty.ObjectVal(map[string]cty.Value{"a": marked, "b": text}), path: path("b")}, false},
		{"a mark on the whole", evidence{value: object("a", text).Mark(value.Sensitive), path: path("a")}, true},
		{"the schema says so", evidence{guard: guard{block: s}, argument: path("hidden")}, true},
		{"the schema decides against the name", evidence{guard: guard{block: s}, argument: path("password")}, false},
		{"a name without a schema", evidence{guard: guard{byName: true}, argument: path("password")}, true},
		{"a name inside of the argument", evidence{guard: guard{byName: true}, argument: path("a"), content: object("api_key", text)}, true},
		{"a name where nothing goes by names", evidence{argument: path("password"), content: object("api_key", text)}, false},
	} {
		var way secrecy
		if c.e.secret() != c.want || way.weigh(c.e) != c.want {
			t.Errorf("%s: secret is %v", c.name, c.e.secret())
		}
		if !way.weigh(evidence{declared: true}) || !way.weigh(c.e) {
			t.Errorf("%s: what was secret is shown later on the way", c.name)
		}
	}
}

// Ranges in a JSON string with escape sequences are widened to the whole string, so that no end of
// a hidden text is shown.
func TestEscaped(t *testing.T) {
	line := `{"a": "plain", "b": "${f(\"x\", \"secret\")}", "c": "\\"}`
	of := func(text string) (int, int) {
		i := strings.Index(line, text)
		return i, i + len(text)
	}
	for text, want := range map[string]string{"plain": "plain", "f(": `"${f(\"x\", \"secret\")}"`, `secret`: `"${f(\"x\", \"secret\")}"`, `\\`: `"\\"`, `"b"`: `"b"`} {
		from, to := of(text)
		from, to = escaped(line, from, to)
		if got := line[from:to]; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if from, to := escaped(`"never ends \`, 1, 3); from != 0 || to < 3 {
		t.Error(from, to)
	}
}
