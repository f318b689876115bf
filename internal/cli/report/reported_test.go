package report

import (
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// TestFresh checks that a warning is reported once, and again if its details differ.
func TestFresh(t *testing.T) {
	at := &source.Range{Filename: "main.tf"}
	var h Reported
	first := diag.Warnf("a/b", at, "Deprecated", "Use a.")
	for i, c := range []struct {
		ds   diag.List
		want int
	}{
		{first, 1},
		{diag.Warnf("a/b", at, "Deprecated", "Use a."), 0},
		{diag.Warnf("a/b", at, "Deprecated", "Use b."), 1},
		{diag.Warnf("a/b", nil, "Deprecated", "Use a."), 1},
		{diag.Errorf("a/b", at, "Wrong", "It is."), 1},
		{diag.Errorf("a/b", at, "Wrong", "It is."), 1},
	} {
		if got := h.Fresh(c.ds); len(got) != c.want {
			t.Errorf("%d: %d messages, want %d", i, len(got), c.want)
		}
	}
	if !h.Has(first[0]) {
		t.Error("the first message is not remembered")
	}
}
