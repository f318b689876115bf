package report

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// TestColor checks when output is colored: on capable terminals, unless the user turns colors
// off, and elsewhere on request.
func TestColor(t *testing.T) {
	for _, c := range []struct {
		env      string
		terminal bool
		want     bool
	}{
		{"TERM=xterm", true, true}, {"TERM=xterm", false, false}, {"A=b", true, true},
		{"TERM=dumb", true, false}, {"NO_COLOR=1", true, false}, {"NO_COLOR=", true, true}, {"TG_NO_COLOR=true", true, false},
	} {
		system := sys.Test(t.TempDir(), c.env).System
		system.Terminal.Out = c.terminal
		r := New(t.Context(), system)
		r.Open()
		if got := r.Human.Style.Color; got != c.want || r.Human.Printer.Color != got {
			t.Errorf("%s, terminal %t: colors %t, want %t", c.env, c.terminal, got, c.want)
		}
	}
}
