package finding

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
)

func at(file string, start int) hcl.Range {
	return hcl.Range{Filename: file, Start: hcl.Pos{Line: start, Column: 1, Byte: start}, End: hcl.Pos{Line: start, Column: 2, Byte: start + 1}}
}

// A fingerprint depends on the subject and its text, and not on positions and white space.
func TestFingerprint(t *testing.T) {
	base := Finding{Rule: "r", Unit: "u", Address: "a.b", Path: "x", Text: "a  =\n1", SetAt: at("f", 1)}
	same := base
	same.SetAt, same.Text, same.Message, same.Level = at("f", 9), "a = 1", "other", Error
	if base.Fingerprint() != same.Fingerprint() {
		t.Error("a moved line changes the fingerprint")
	}
	for name, f := range map[string]Finding{
		"rule": {Rule: "s", Unit: "u", Address: "a.b", Path: "x", Text: "a = 1"}, "unit": {Rule: "r", Address: "a.b", Path: "x", Text: "a = 1"},
		"address": {Rule: "r", Unit: "u", Address: "a.c", Path: "x", Text: "a = 1"}, "path": {Rule: "r", Unit: "u", Address: "a.b", Text: "a = 1"},
		"text": {Rule: "r", Unit: "u", Address: "a.b", Path: "x", Text: "a = 2"}, "border": {Rule: "r", Unit: "ua", Address: ".b", Path: "x", Text: "a = 1"},
	} {
		if f.Fingerprint() == base.Fingerprint() {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
	all := Fingerprints([]*Finding{&base, &same})
	if all[0] != base.Fingerprint() || all[1] != all[0]+"/2" {
		t.Errorf("fingerprints of equal findings: %q", all)
	}
}

func TestSort(t *testing.T) {
	a, b, c := &Finding{Unit: "a", SetAt: at("z", 1)}, &Finding{Unit: "b", SetAt: at("a", 1)}, &Finding{Unit: "b", Defined: at("a", 9)}
	again := *b
	got := Sort([]*Finding{c, b, a, &again})
	if len(got) != 3 || got[0] != a || got[1] != b && got[1] != &again || got[2] != c {
		t.Errorf("order: %v", got)
	}
}

func TestNames(t *testing.T) {
	for _, l := range []Level{Advice, Warning, Error} {
		if got, ok := ParseLevel(l.String()); !ok || got != l {
			t.Errorf("%s: %v, %v", l, got, ok)
		}
	}
	for _, no := range []string{"", "none"} {
		if _, ok := ParseLevel(no); ok {
			t.Errorf("%q is a level", no)
		}
	}
	if Unknown.String() != "unknown" || Verdict(0).String() != "invalid (0)" {
		t.Error("names of verdicts")
	}
}
