package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Values of several elements of a list, and of several objects and units, are one cause if they
// are set in one place. Keys of maps stay.
func TestGroupCauses(t *testing.T) {
	of := map[string][]Origin{
		"a": {{"x.a", "rule[0].cidr", "m.tf", 3, false, "", false}, {"x.a", "rule[1].cidr", "m.tf", 3, false, "", false}, {"x.b", "rule[0].cidr", "m.tf", 3, false, "", false}, {"x.b", "tags[\"a[0]\"]", "m.tf", 4, false, "", false}},
		"b": {{"x.a", "rule[5].cidr", "m.tf", 3, false, "", false}, {"x.a", "size", "", 0, false, "", false}, {"x.b", "size", "", 0, false, "", false}, {"x.c", "size", "", 0, false, "", false}},
	}
	want := []CauseGroup{
		{"rule.cidr", "m.tf", 3, "", 3, []string{"a", "b"}},
		{"tags[\"a[0]\"]", "m.tf", 4, "", 1, []string{"a"}},
		{"size", "", 0, "", 3, []string{"b"}}, // lines come first
	}
	if d := cmp.Diff(want, GroupCauses([]string{"a", "b"}, func(u string) []Origin { return of[u] })); d != "" {
		t.Error(d)
	}
}
