package diag

import (
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// Duplicates are removed after the first. Messages with another position or severity are not
// duplicates.
func TestOnce(t *testing.T) {
	at := func(line int) *source.Range { return &source.Range{Filename: "a", Start: hcl.Pos{Line: line}} }
	all := slices.Concat(Errorf("", at(1), "s", "d"), Errorf("", at(2), "s", "d"), Errorf("", at(1), "s", "d"), Warnf("", at(1), "s", "d"), Errorf("", nil, "s", "d"), Errorf("", nil, "s", "d"))
	got := all.Once()
	if want := (List{all[0], all[1], all[3], all[4]}); !slices.Equal(got, want) {
		t.Errorf("got %d messages, want %d", len(got), len(want))
	}
	if len(all) != 6 || all[5] == nil {
		t.Error("the list itself was changed")
	}
}
