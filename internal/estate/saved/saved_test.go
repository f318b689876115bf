package saved_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

var prior = state.New().WithMeta("lineage", 3, "1.12.6")

func instance(name string) addr.Instance {
	return addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: name}}.Instance(addr.Key{})
}

// change returns a change that gives the argument name of an object a value.
func change(op plan.Op, object string, name cty.Value) *plan.Change {
	of := func(v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{"name": v}) }
	c := &plan.Change{Addr: instance(object), Prev: instance(object), Op: op, Before: of(cty.StringVal("before")), After: of(name)}
	if op == plan.Delete {
		c.After = cty.NullVal(c.Before.Type())
	}
	return c
}

func planOf(changes ...*plan.Change) *plan.Plan {
	return &plan.Plan{Changes: changes, Prior: prior, PrevRun: prior, Request: plan.Request{Variables: map[string]cty.Value{"v": cty.StringVal("secret value")}}}
}

func result(name string, p *plan.Plan) *report.Result {
	return &report.Result{Unit: &discovery.Unit{Name: name}, Status: report.Succeeded, Plan: p}
}

// A plan is approved if it does what the approved plan does, or less because it was done already.
// Values that were unknown may be anything. Messages name the object and the argument, and show no
// value.
func TestApproval(t *testing.T) {
	known, unknown := cty.StringVal("secret a"), cty.UnknownVal(cty.String)
	for _, tt := range []struct {
		name     string
		approved *plan.Change
		now      []*plan.Change
		want     string
	}{
		{"same", change(plan.Create, "a", known), []*plan.Change{change(plan.Create, "a", known)}, ""},
		{"known now", change(plan.Create, "a", unknown), []*plan.Change{change(plan.Create, "a", known)}, ""},
		{"other value", change(plan.Create, "a", known), []*plan.Change{change(plan.Create, "a", cty.StringVal("secret b"))}, "x_thing.a (create): another value than the approved one in name"},
		{"other action", change(plan.Update, "a", known), []*plan.Change{change(plan.Delete, "a", known)}, "x_thing.a (delete)"},
		{"more", change(plan.Create, "a", known), []*plan.Change{change(plan.Create, "a", known), change(plan.Create, "b", known)}, "x_thing.b (create)"},
		{"deleted already", change(plan.Delete, "a", known), nil, ""},
		{"kept", change(plan.Delete, "a", known), []*plan.Change{change(plan.NoOp, "a", known)}, "x_thing.a (kept in place of delete)"},
		{"missing", change(plan.Create, "a", known), nil, "x_thing.a (nothing in place of create)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, ds := saved.Of(saved.Approve([]*report.Result{result("u", planOf(tt.approved))}), "u", nil)
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			_, ds = a.Check(planOf(tt.now...), saved.Now{Unit: "u"})
			if ds.HasErrors() != (tt.want != "") || tt.want != "" && !strings.Contains(ds[0].Detail, ": "+tt.want+". ") {
				t.Errorf("%v", ds.Err())
			}
			if ds.HasErrors() && strings.Contains(ds[0].Detail, "secret") {
				t.Error("the message contains a value")
			}
		})
	}
}

// A unit without an approval may change nothing, and one without changes needs no approval. A
// deferred object may change later.
func TestNotApproved(t *testing.T) {
	none, _ := saved.Of(nil, "u", nil)
	if _, ds := none.Check(planOf(change(plan.Create, "a", cty.True)), saved.Now{Unit: "u"}); !ds.HasErrors() {
		t.Error("a unit without an approval changes something")
	}
	if _, ds := none.Check(planOf(), saved.Now{Unit: "u"}); ds.HasErrors() {
		t.Error(ds.Err())
	}
	res := result("u", planOf())
	res.Deferred = []report.Deferral{{Address: "x_thing.a"}}
	a := saved.Approve([]*report.Result{res})["u"]
	if later, ds := a.Check(planOf(change(plan.Create, "a", cty.True)), saved.Now{Unit: "u"}); !later || ds.HasErrors() || !a.Changes() {
		t.Error(later, ds.Err())
	}
}

// stored returns a plan of units after it was written to a file and read again.
func stored(t *testing.T, s *saved.Saving, results ...*report.Result) *saved.Plan {
	t.Helper()
	p, err := s.Save(saved.About{Destroy: true, Targets: []string{"x_thing.a"}, Dir: "live"}, results)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	p, err = saved.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), "1.0.0")
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A file contains the options, and the units in the order of the results, with their notes. Units
// may be saved concurrently.
func TestFile(t *testing.T) {
	var s saved.Saving
	var results []*report.Result
	var running sync.WaitGroup
	for i := range 8 {
		res := result(fmt.Sprintf("u%d", 7-i), planOf(change(plan.Create, "a", cty.True)))
		results = append(results, res)
		running.Go(func() {
			s.Take(res.Unit.Name, "digest", nil, res.Plan)
			s.Note(res.Unit.Name, "text", []byte("of "+res.Unit.Name))
		})
	}
	running.Wait()
	results[3].Status, results[3].Cause = report.Failed, "Broken"
	p := stored(t, &s, results...)
	var names []string
	for _, u := range p.Units {
		names = append(names, u.Name)
		note, err := u.Note("text")
		if made, more := u.Plan(); string(note) != "of "+u.Name || err != nil || more != nil || len(made.Changes) != 1 {
			t.Errorf("%s: %q %v %v", u.Name, note, err, more)
		}
		if note, err := u.Note("missing"); note != nil || err != nil {
			t.Errorf("%s: %q %v", u.Name, note, err)
		}
	}
	if d := cmp.Diff("u7 u6 u5 u4 u3 u2 u1 u0", strings.Join(names, " ")); d != "" {
		t.Error(d)
	}
	if !p.About.Equal(saved.About{Destroy: true, Targets: []string{"x_thing.a"}}) || p.About.Mode() != plan.Destroy || p.Approvals()["u4"] != nil || len(p.Approvals()) != 7 {
		t.Errorf("%+v %d", p.About, len(p.Approvals()))
	}
}

// A saved plan is stale if the configuration, the state or an input changed since. Nothing is stale
// if there is nothing to change.
func TestStale(t *testing.T) {
	same := saved.Now{Unit: "u", State: journal.HeaderOf(prior), Digest: "digest"}
	with := func(f func(*saved.Now)) saved.Now { n := same; f(&n); return n }
	input := planOf(change(plan.Create, "a", cty.True))
	input.Variables = map[string]cty.Value{"v": cty.StringVal("other")}
	for _, tt := range []struct {
		name string
		now  saved.Now
		plan *plan.Plan
		want string
	}{
		{"same", same, nil, ""},
		{"serial", with(func(n *saved.Now) { n.State.Serial++ }), nil, "(serial 3 then, 4 now)"},
		{"own attempt", with(func(n *saved.Now) { n.State.Serial++; n.Again = true }), nil, ""},
		{"lineage", with(func(n *saved.Now) { n.State.Lineage = "x" }), nil, "its state is another one now"},
		{"configuration", with(func(n *saved.Now) { n.Digest = "x" }), nil, "its configuration was changed"},
		{"input", same, input, `its input "v" has another value`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s saved.Saving
			approved := planOf(change(plan.Create, "a", cty.True))
			s.Take("u", "digest", nil, approved)
			a, ds := saved.Of(stored(t, &s, result("u", approved)).Approvals(), "u", nil)
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			now := tt.plan
			if now == nil {
				now = approved
			}
			_, ds = a.Check(now, tt.now)
			if ds.HasErrors() != (tt.want != "") || tt.want != "" && !strings.Contains(ds[0].Detail, tt.want) {
				t.Error(ds.Err())
			}
		})
	}
}

// The digest of a configuration depends on the names and texts of its files.
func TestDigest(t *testing.T) {
	of := func(text string) string { return saved.Digest(plantest.Tree(t, text)) }
	base := of("locals { a = 1 }\n-- b.tf --\nlocals { b = 1 }\n")
	for _, other := range []string{"locals { a = 2 }\n-- b.tf --\nlocals { b = 1 }\n", "locals { a = 1 }\n-- c.tf --\nlocals { b = 1 }\n", "locals { a = 1 }\n"} {
		if of(other) == base {
			t.Errorf("%s has the same digest", other)
		}
	}
	if of("locals { a = 1 }\n-- b.tf --\nlocals { b = 1 }\n") != base {
		t.Error("the digest changes")
	}
}
