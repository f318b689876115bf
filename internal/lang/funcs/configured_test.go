package funcs

import "testing"

// A name counts as a whole, before parentheses or a comment.
func TestConfiguredBoundaries(t *testing.T) {
	for text, want := range map[string]bool{
		`a = file("x")`:                       true,
		"a = file \t\n(\"x\")":                true,
		"a = file /* why */ (\"x\")":          true,
		"a = file # why\n(\"x\")":             true,
		"a = file // why\n(\"x\")":            true,
		`a = core::file("x")`:                 true,
		`a = "${templatefile("x", {})}"`:      true,
		`a = timestamp()`:                     true,
		`a = x-file("x")`:                     true,
		`a = myfile("x")`:                     false,
		`a = filex("x")`:                      false,
		`a = upper("file") # lower(file) / 2`: false,
		`file = (1) / (2)`:                    false,
		`(`:                                   false,
		``:                                    false,
	} {
		if got := Configured([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func BenchmarkConfigured(b *testing.B) {
	var text []byte
	for range 1000 {
		text = append(text, "  name = upper(var.name) # a comment\n  other = \"${var.region}-x\"\n"...)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Configured(text) {
			b.Fatal("no function depends on a Config")
		}
	}
}
