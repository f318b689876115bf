package origin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// The index finds what looking for each secret in each text finds.
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
