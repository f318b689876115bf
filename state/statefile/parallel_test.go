package statefile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/state"
)

// A large state in a stream is read in parts. The result is the same as that of Parse.
func TestParts(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	s := sample(12_000)
	for i := range 300 {
		s.Checks = append(s.Checks, state.CheckResult{Kind: state.CheckBlock, Addr: fmt.Sprintf("check.c%03d", i), Status: state.CheckPass})
	}
	text := written(t, s, true)
	if len(text) < 4*partSize {
		t.Fatalf("the state has only %d bytes", len(text))
	}
	got, ok := ParseStream(strings.NewReader(text), false)
	if !ok || !got.Equal(s) {
		t.Fatalf("read in parts (%v) it differs: %v", ok, state.Diff(s, got))
	}
	if outline, ok := ParseStream(strings.NewReader(text), true); !ok || len(outline.Resources) != len(s.Resources) {
		t.Error("the outline is not complete")
	}
	// A comma at which the text is cut may be inside a resource.
	inside := strings.Replace(text, resourceEnd+","+resourceStart, resourceEnd+","+" {\n      \"mod", -1)
	inside = strings.Replace(inside, `"attributes": {`, "\"other\": [{},\n    {\n      \"mod\": 1}], \"attributes\": {", -1)
	if got, ok := ParseStream(strings.NewReader(inside), false); ok && !got.Equal(s) {
		t.Error("a resource was lost")
	} else if got, ds := Parse("x", []byte(inside)); ds.HasErrors() || !got.Equal(s) {
		t.Error("the test's document is not valid")
	}
	at := strings.LastIndex(text, resourceEnd+","+resourceStart)
	last := text[at+2 : at+strings.Index(text[at:], "\n    }")+6]
	for name, bad := range map[string]string{
		"a resource twice":  text[:at+2] + last + "," + text[at+2:],
		"no comma":          text[:at+1] + text[at+2:],
		"two commas":        text[:at+2] + "," + text[at+2:],
		"no value":          strings.Replace(text[:len(text)/2], `"mode": "managed"`, `"mode": `, 1) + text[len(text)/2:],
		"an invalid string": text[:at] + strings.Replace(text[at:], `"managed"`, "\"mana\nged\"", 1),
		"an invalid mode":   text[:at] + strings.Replace(text[at:], `"managed"`, `"unmanaged"`, 1),
		"torn":              text[:at],
	} {
		if _, ok := ParseStream(strings.NewReader(bad), false); ok {
			t.Errorf("%s: the state was read", name)
		}
	}
}

func BenchmarkParseStream(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		text := written(b, sample(n), true)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := ParseStream(strings.NewReader(text), false); !ok {
					b.Fatal("the state was not read")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/instance")
		})
	}
}
