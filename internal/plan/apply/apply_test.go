package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/apply"
	"github.com/terrace-iac/terrace/internal/plan/apply/provision"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A world is a directory with a state and a provider, in which plans are made and applied.
type world struct {
	t         *testing.T
	providers plantest.Providers
	state     *state.State
	journal   *journal
	observe   event.Sink
	programs  provision.Types
}

func newWorld(t *testing.T) *world {
	return &world{t: t, providers: plantest.New(), journal: &journal{}}
}

// journal records calls and answers. It fails after a number of records.
type journal struct {
	mu    sync.Mutex
	lines []string
	fail  int
	syncs bool  // record syncs, too
	lost  error // error of a sync
}

func (j *journal) Begin(_ int, address, action string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail > 0 && len(j.lines) >= j.fail {
		return errors.New("the disk is full")
	}
	j.lines = append(j.lines, "begin "+action+" "+address)
	return nil
}

func (j *journal) Answer(_ int, changes []state.Change) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range changes {
		word := "answer "
		if c.New == nil {
			word = "gone "
		} else if c.New.Tainted {
			word = "tainted "
		}
		j.lines = append(j.lines, word+c.Object.Instance.String())
	}
	return nil
}

func (j *journal) Start(context.Context, int, int) diag.List { return nil }

func (j *journal) Write(context.Context, *state.State) diag.List { return nil }

func (j *journal) End(*state.State) diag.List { return nil }

func (j *journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.syncs {
		j.lines = append(j.lines, "sync")
	}
	return j.lost
}

// do plans and applies a configuration. It returns the plan in lines.
func (w *world) do(text string, mode plan.Mode) (lines []string, res apply.Result, ds diag.List) {
	w.t.Helper()
	tree := plantest.Tree(w.t, text)
	p, ds := planner.Make(context.Background(), planner.Input{Eval: eval.Options{Tree: tree, Workspace: "default"}, State: w.state, Providers: resourceclient.Options{Providers: w.providers, Observe: w.observe}, Options: plan.Options{Mode: mode, GenerateTo: "generated.tf"}})
	for _, c := range p.Changes {
		line := c.Op.String() + " " + addr.Object{Instance: c.Addr, Deposed: c.Deposed}.String()
		if c.Reason != "" {
			line += " (" + string(c.Reason) + ")"
		}
		lines = append(lines, line)
	}
	if ds.HasErrors() {
		return lines, res, ds
	}
	w.journal.lines = nil
	res, more := apply.Run(context.Background(), apply.Input{
		Plan: p, Eval: eval.Options{Tree: tree}, Providers: resourceclient.Options{Providers: w.providers, Observe: w.observe, Parallelism: 1}, Now: func() time.Time { return time.Time{} }, State: w.journal, Provisioners: w.programs,
	})
	w.state = res.State
	return lines, res, append(ds, more...)
}

// objects describes the objects in state.
func (w *world) objects() []string {
	var out []string
	for _, o := range w.state.List() {
		line := o.Addr.Instance.String()
		if o.Addr.Deposed != "" {
			line += " deposed"
		}
		if o.Object.Tainted {
			line += " tainted"
		}
		out = append(out, line)
	}
	return out
}

func check(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

const thing = "resource \"x_thing\" \"a\" {\n  name = \"a\"\n"

func TestLives(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		mode                plan.Mode
		plan, journal, left []string
	}{
		{name: "nothing changes", first: thing + "}", second: thing + "}", plan: []string{"no-op x_thing.a"}, left: []string{"x_thing.a"}},
		{
			name: "an update", first: thing + "}", second: thing + "  tags = { a = \"b\" }\n}",
			plan: []string{"update x_thing.a"}, journal: []string{"begin update x_thing.a", "answer x_thing.a"}, left: []string{"x_thing.a"},
		},
		{
			name: "a replacement", first: thing + "}", second: thing + "  new = \"n\"\n}",
			plan:    []string{"delete-create x_thing.a (replace_because_cannot_update)"},
			journal: []string{"begin delete x_thing.a", "gone x_thing.a", "begin create x_thing.a", "answer x_thing.a"}, left: []string{"x_thing.a"},
		},
		{
			name: "a replacement that ignores changes", first: thing + "  tags = { a = \"1\" }\n}", second: thing + "  new = \"n\"\n  tags = { a = \"2\" }\n  lifecycle {\n    ignore_changes = [tags]\n  }\n}",
			plan:    []string{"delete-create x_thing.a (replace_because_cannot_update)"},
			journal: []string{"begin delete x_thing.a", "gone x_thing.a", "begin create x_thing.a", "answer x_thing.a"}, left: []string{"x_thing.a"},
		},
		{
			name: "count to none", first: "resource \"x_thing\" \"a\" {\n  count = 2\n}", second: "resource \"x_thing\" \"a\" {\n  count = 1\n}",
			plan:    []string{"no-op x_thing.a[0]", "delete x_thing.a[1] (delete_because_count_index)"},
			journal: []string{"begin delete x_thing.a[1]", "gone x_thing.a[1]"}, left: []string{"x_thing.a[0]"},
		},
		{
			name: "forgotten", first: thing + "}", second: "removed {\n  from = x_thing.a\n  lifecycle {\n    destroy = false\n  }\n}",
			plan: []string{"forget x_thing.a (delete_because_no_resource_config)"}, journal: []string{"gone x_thing.a"},
		},
		{
			name: "destroyed", first: thing + "}\nresource \"x_thing\" \"b\" {\n  name = x_thing.a.id\n}", second: thing + "}\nresource \"x_thing\" \"b\" {\n  name = x_thing.a.id\n}", mode: plan.Destroy,
			plan:    []string{"delete x_thing.a", "delete x_thing.b"},
			journal: []string{"begin delete x_thing.b", "gone x_thing.b", "begin delete x_thing.a", "gone x_thing.a"},
		},
		{
			name: "imported", first: "", second: thing + "}\nimport {\n  to = x_thing.a\n  id = \"i\"\n}",
			plan: []string{"update x_thing.a"}, journal: []string{"answer x_thing.a", "begin update x_thing.a", "answer x_thing.a"}, left: []string{"x_thing.a"},
		},
		{
			name: "imported and replaced", first: "", second: thing + "  new = \"n\"\n}\nimport {\n  to = x_thing.a\n  id = \"i\"\n}",
			plan:    []string{"delete-create x_thing.a (replace_because_cannot_update)"},
			journal: []string{"answer x_thing.a", "begin delete x_thing.a", "gone x_thing.a", "begin create x_thing.a", "answer x_thing.a"}, left: []string{"x_thing.a"},
		},
		{
			name: "imported with a generated block", first: "", second: "import {\n  to = x_thing.z\n  id = \"i\"\n}",
			plan: []string{"no-op x_thing.z"}, journal: []string{"answer x_thing.z", "answer x_thing.z"}, left: []string{"x_thing.z"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if _, _, ds := w.do(c.first, plan.Normal); ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			lines, _, ds := w.do(c.second, c.mode)
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			check(t, "plan", c.plan, lines)
			check(t, "journal", c.journal, w.journal.lines)
			check(t, "state", c.left, w.objects())
		})
	}
}

// A replacement uses the configured values of arguments in ignore_changes, because there is no
// object left to compare with.
func TestIgnoredOnReplace(t *testing.T) {
	w := newWorld(t)
	text := func(n string) string {
		return thing + "  new = \"" + n + "\"\n  tags = { a = \"" + n + "\" }\n  lifecycle {\n    ignore_changes = [tags]\n  }\n}"
	}
	for _, n := range []string{"1", "2"} {
		if _, _, ds := w.do(text(n), plan.Normal); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
	}
	o := w.state.List()[0].Object
	if !strings.Contains(string(o.JSON), `{"a":"2"}`) {
		t.Errorf("%s", o.JSON)
	}
}

func TestProviderBreaksPromises(t *testing.T) {
	with := func(v cty.Value, name string, to cty.Value) cty.Value {
		m := v.AsValueMap()
		m[name] = to
		return cty.ObjectVal(m)
	}
	id := func(v cty.Value) cty.Value { return with(v, "id", cty.StringVal("i")) }
	failed := diag.Errorf("", nil, "Told to fail", "It was told to.")
	for _, c := range []struct {
		name    string
		answer  func(provider.ApplyRequest) (provider.ApplyResponse, diag.List)
		summary string
		left    []string
	}{
		{"an error", func(provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
			return provider.ApplyResponse{State: cty.NilVal}, failed
		}, "Told to fail", nil},
		{"an error and an object", func(r provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
			return provider.ApplyResponse{State: id(r.Planned)}, failed
		}, "Told to fail", []string{"x_thing.a tainted"}},
		{"something unknown", func(r provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
			return provider.ApplyResponse{State: r.Planned}, nil
		}, "Provider returned invalid result object after apply", []string{"x_thing.a tainted"}},
		{"something else than planned", func(r provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
			return provider.ApplyResponse{State: id(with(r.Planned, "name", cty.StringVal("other")))}, nil
		}, "Provider produced inconsistent result after apply", []string{"x_thing.a tainted"}},
		{"nothing", func(r provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
			return provider.ApplyResponse{State: cty.NullVal(r.Planned.Type())}, nil
		}, "Provider produced invalid object", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.providers.Managed["x_thing"].Apply = c.answer
			_, res, ds := w.do(thing+"}\nresource \"x_thing\" \"b\" {\n  name = x_thing.a.id\n}", plan.Normal)
			var got []string
			for _, m := range ds {
				got = append(got, m.Summary)
				if m.Address != "x_thing.a" || m.At == nil || m.At.Start.Line != 1 {
					t.Errorf("%s is about %q", m.Summary, m.Address)
				}
			}
			check(t, "messages", []string{c.summary}, got)
			check(t, "state", c.left, w.objects())
			if res.Counts.Add != 0 {
				t.Errorf("%d counted as added", res.Counts.Add)
			}
		})
	}
}

// If the journal fails, no further action starts, and completed actions are kept.
func TestJournalFails(t *testing.T) {
	w := newWorld(t)
	w.journal.fail = 2
	_, res, ds := w.do("resource \"x_thing\" \"a\" {\n  count = 3\n}", plan.Normal)
	if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Summary == "Failed to write the journal" }) {
		t.Error(ds.Err())
	}
	check(t, "state", []string{"x_thing.a[0]"}, w.objects())
	if res.Counts.Add != 1 {
		t.Errorf("%d added", res.Counts.Add)
	}
}

// A check whose data source cannot be read fails, and the apply continues.
func TestCheckData(t *testing.T) {
	w := newWorld(t)
	w.providers.Data["x_thing"].Read = func(cty.Value) (cty.Value, diag.List) {
		return cty.NilVal, diag.Errorf("", nil, "Not there", "There is no such thing.")
	}
	_, _, ds := w.do("check \"c\" {\n  data \"x_thing\" \"d\" {\n    name = \"n\"\n  }\n  assert {\n    condition     = data.x_thing.d.id != \"\"\n    error_message = \"no\"\n  }\n}", plan.Normal)
	if ds.HasErrors() || len(ds) != 1 {
		t.Error(ds.Err())
	}
	if len(w.state.Checks) != 1 || w.state.Checks[0].Status != state.CheckFail {
		t.Errorf("%+v", w.state.Checks)
	}
}

// An object that cannot be destroyed is kept, and the message has the source range of its
// block.
func TestDestroyFails(t *testing.T) {
	w := newWorld(t)
	if _, _, ds := w.do(thing+"}", plan.Normal); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	w.providers.Managed["x_thing"].Apply = func(r provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
		return provider.ApplyResponse{State: r.Prior}, diag.Errorf("", nil, "In use", "It cannot be destroyed.")
	}
	_, res, ds := w.do(thing+"}", plan.Destroy)
	if len(ds) != 1 || ds[0].Summary != "In use" || ds[0].At == nil || res.Counts.Destroy != 0 {
		t.Errorf("%+v", ds)
	}
	check(t, "state", []string{"x_thing.a"}, w.objects())
}

// A list of actions that cannot be carried out is an error. The apply does not end as if it
// were complete.
func TestNothingCarriedOut(t *testing.T) {
	w := newWorld(t)
	tree := plantest.Tree(t, thing+"}")
	p, ds := planner.Make(context.Background(), planner.Input{Eval: eval.Options{Tree: tree, Workspace: "default"}, Providers: resourceclient.Options{Providers: w.providers}})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	p.Actions[0].Needs = []int{0}
	_, ds = apply.Run(context.Background(), apply.Input{Plan: p, Eval: eval.Options{Tree: tree}, Providers: resourceclient.Options{Providers: w.providers}, Now: func() time.Time { return time.Time{} }})
	if len(ds) != 1 || ds[0].Summary != "Operations were not carried out" {
		t.Errorf("%+v", ds)
	}
}

// An answer is on disk before dependent actions start. Other actions do not wait for it.
func TestSyncedBeforeDependents(t *testing.T) {
	const chain = thing + "}\nresource \"x_thing\" \"b\" {\n  name = x_thing.a.id\n}\nresource \"x_thing\" \"c\" {\n  name = x_thing.b.id\n}"
	w := newWorld(t)
	w.journal.syncs = true
	_, _, ds := w.do(chain, plan.Normal)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	check(t, "journal", []string{
		"begin create x_thing.a", "answer x_thing.a", "sync",
		"begin create x_thing.b", "answer x_thing.b", "sync",
		"begin create x_thing.c", "answer x_thing.c",
	}, w.journal.lines)

	w = newWorld(t)
	w.journal.syncs, w.journal.lost = true, errors.New("input/output error")
	_, _, ds = w.do(chain, plan.Normal)
	check(t, "journal", []string{"begin create x_thing.a", "answer x_thing.a", "sync"}, w.journal.lines)
	check(t, "state", []string{"x_thing.a"}, w.objects())
	if !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "input/output error") {
		t.Errorf("messages: %v", ds)
	}
}

// programs are provisioners that record in a test's journal when they ran.
type programs struct{ in *journal }

func (programs) Schema(string) *schema.Block     { return &schema.Block{} }
func (programs) ConnectionSchema() *schema.Block { return &schema.Block{} }

func (p programs) Run(context.Context, string, cty.Value, cty.Value, func(string)) diag.List {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.lines = append(p.in.lines, "provisioner")
	return nil
}

// A provisioner may take long, or terminate the machine: the object is on disk before it runs.
func TestSyncedBeforeProvisioners(t *testing.T) {
	const made = thing + "  provisioner \"local-exec\" {}\n}"
	w := newWorld(t)
	w.journal.syncs, w.programs = true, programs{w.journal}
	if _, _, ds := w.do(made, plan.Normal); ds.HasErrors() {
		t.Fatal(ds)
	}
	check(t, "journal", []string{"begin create x_thing.a", "tainted x_thing.a", "sync", "provisioner", "answer x_thing.a"}, w.journal.lines)

	w = newWorld(t)
	w.journal.syncs, w.journal.lost, w.programs = true, errors.New("input/output error"), programs{w.journal}
	_, _, ds := w.do(made, plan.Normal)
	check(t, "journal", []string{"begin create x_thing.a", "tainted x_thing.a", "sync"}, w.journal.lines)
	check(t, "state", []string{"x_thing.a tainted"}, w.objects())
	if !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "input/output error") {
		t.Errorf("messages: %v", ds)
	}
}
