package planner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Errors in a provider_meta block are reported once, with their source range.
func TestProviderMeta(t *testing.T) {
	meta := &schema.Block{Attributes: map[string]*schema.Attribute{"team": {Type: cty.String, Optional: true}}}
	for _, c := range []struct {
		argument string
		meta     *schema.Block
		want     string // text in the only message
		line     int
	}{
		{`team = "a"`, meta, "", 0},
		{`team = "a"`, nil, "doesn't support provider_meta", 2},
		{`nope = "a"`, meta, "Unsupported argument", 3},
		{`team = []`, meta, "Incorrect", 3},
	} {
		providers := plantest.New()
		providers.Meta = c.meta
		tree := plantest.Tree(t, "terraform {\n  provider_meta \"x\" {\n    "+c.argument+"\n  }\n}\nresource \"x_thing\" \"a\" {\n  count = 3\n}\nresource \"x_thing\" \"b\" {}\n")
		_, ds := planner.Make(context.Background(), planner.Input{Eval: eval.Options{Tree: tree, Workspace: "default"}, Providers: resourceclient.Options{Providers: providers}})
		switch {
		case c.want == "":
			if len(ds) > 0 {
				t.Errorf("%s: %s", c.argument, ds[0].Summary)
			}
		case len(ds) != 1 || !strings.Contains(ds[0].Summary, c.want) || ds[0].At == nil || ds[0].At.Start.Line != c.line:
			t.Errorf("%s: %d messages, want one with %q in line %d: %v", c.argument, len(ds), c.want, c.line, ds.Err())
		}
	}
}
