package planpage_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/planhtml"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// page returns the HTML page of a saved plan of the unit u, which creates an object, and of the unit
// v, which depends on u.
func page(t *testing.T, change *plan.Change) (*planhtml.Page, string) {
	t.Helper()
	change.Addr = addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: "a"}}.Instance(addr.Key{})
	change.Prev, change.Op, change.Before = change.Addr, plan.Create, cty.NullVal(change.After.Type())
	p := &plan.Plan{Prior: state.New(), PrevRun: state.New(), Changes: []*plan.Change{change}}
	u := &estate.Unit{Name: "u"}
	results := []*estate.Result{{Unit: u, Status: estate.Succeeded, Changes: true, Counts: plan.Counts{Add: 1}}, {Unit: &estate.Unit{Name: "v", Needs: []*estate.Unit{u}}, Status: estate.Failed}}
	k := &savedplan.Files{Call: command.New(t.Context(), sys.Test(t.TempDir()).System, nil, nil), Saving: &estate.Saving{}}
	k.Saving.Take("u", "", nil, p)
	k.Note("u", savedplan.TextNote, view.Pieces(view.Style{}, p, nil, false))
	saved, err := k.Saving.Save(estate.SavedRun{}, results)
	if err != nil {
		t.Fatal(err)
	}
	made, err := planpage.Saved(saved, results)
	var b bytes.Buffer
	if err == nil {
		err = planhtml.Write(&b, made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made, b.String()
}

// The page shows the units with their changes and dependencies.
func TestSaved(t *testing.T) {
	made, text := page(t, &plan.Change{After: cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("shown")})})
	if len(made.Units) != 2 || len(made.Units[0].Changes) != 1 || len(made.Units[1].Needs) != 1 || made.Units[1].State != planhtml.Failed {
		t.Errorf("%+v", made.Units)
	}
	if !strings.Contains(text, "x_thing.a") || !strings.Contains(text, "shown") {
		t.Error("the change is missing")
	}
}

// A sensitive value is hidden, also where the provider repeats it in an attribute that is not
// sensitive, in any form in which text is printed.
func TestSecret(t *testing.T) {
	for _, secret := range []string{"hidden-text", "hidden-${quotes}\"", "hidden-ümlaut\t", "first hidden-line\n  - hidden-second\n-----hidden-third", `{"a":["hidden-json"],"b":"hidden-lines\nhidden-more"}`} {
		_, text := page(t, &plan.Change{
			After:          cty.ObjectVal(map[string]cty.Value{"secret": cty.StringVal(secret), "copy": cty.StringVal(secret)}),
			AfterSensitive: []cty.Path{cty.GetAttrPath("secret")},
		})
		if _, rest, found := strings.Cut(text, "hidden-"); found {
			t.Errorf("%q is shown: hidden-%.20s", secret, rest)
		}
	}
}

// A unit that was put is known, and no other.
func TestUnit(t *testing.T) {
	var p planpage.Pager
	p.Put(&planhtml.Box{Name: "u", Summary: "planned"}, true)
	if u, ok := p.Unit("u"); !ok || u.Summary != "planned" {
		t.Errorf("%+v %v", u, ok)
	}
	if _, ok := p.Unit("v"); ok {
		t.Error("v is known")
	}
}
