package diag

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// Of warnings that differ only in their details, the first ones are shown, and the others
// are counted.
func TestManyDetails(t *testing.T) {
	for _, tt := range []struct {
		details, others int
		want            string
	}{
		{10, 0, ""},
		{11, 0, "(and one more warning with this summary and other details)"},
		{13, 2, "(and 5 more warnings with this summary and other details)"},
	} {
		var ds List
		for i := range tt.details + tt.others {
			at := &source.Range{Filename: "main.tf", Start: hcl.Pos{Line: i + 1}}
			ds = append(ds, Warnf(CodeUnitDependencyNotFound, at, "Not found", "There is no unit %d.", min(i, tt.details-1))...)
		}
		for _, consolidate := range []bool{true, false} {
			p := Printer{ConsolidateWarnings: consolidate}
			var b bytes.Buffer
			if err := p.Print(&b, ds); err != nil {
				t.Fatal(err)
			}
			shown, want := maxPerSummary, tt.want
			if !consolidate {
				shown, want = len(ds), ""
			}
			if got := strings.Count(b.String(), "Warning: Not found"); got != shown {
				t.Errorf("%d details, consolidate %t: %d warnings are shown, want %d", tt.details, consolidate, got, shown)
			}
			line := ""
			for l := range strings.Lines(b.String()) {
				if strings.Contains(l, "other details") {
					line += strings.TrimSpace(l)
				}
			}
			if line != want {
				t.Errorf("%d details, consolidate %t: %q, want %q", tt.details, consolidate, line, want)
			}
		}
	}
}
