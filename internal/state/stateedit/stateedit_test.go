package stateedit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

// sample returns a state with a, c[0], c[1], f["x"], module.m[0].in, module.m[0].in2[0] and
// data.d.
func sample() *state.State {
	d := state.New().Edit()
	for _, a := range []string{"x_y.a", "x_y.c[0]", "x_y.c[1]", `x_y.f["x"]`, "module.m[0].x_y.in", "module.m[0].x_y.in2[0]", "data.x_z.d"} {
		d.Apply(change(a, "h.io/o/n"))
	}
	return d.Freeze()
}

func change(a, provider string) state.Change {
	i, err := addr.ParseInstance(a)
	if err != nil {
		panic(err)
	}
	p, err := addr.ParseProvider(provider)
	if err != nil {
		panic(err)
	}
	return state.Change{Object: addr.Object{Instance: i}, Provider: addr.ProviderConfig{Provider: p}, New: &state.Object{JSON: []byte(`{"id":"` + a + `"}`)}}
}

func target(t *testing.T, s string) addr.Target {
	t.Helper()
	out, err := addr.ParseTarget(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func names(s *state.State) string {
	var out []string
	for a := range s.Instances() {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestMove(t *testing.T) {
	for _, c := range []struct{ from, to, fail string }{
		{"x_y.a", "x_y.b", ""},
		{"x_y.a", "x_y.q[0]", ""},
		{"x_y.c[0]", "x_y.single", ""},
		{"x_y.c", "x_y.cc", ""},
		{"module.m[0]", "module.n", ""},
		{"module.m[0].x_y.in", "x_y.top", ""},
		{`x_y.f["x"]`, `x_y.g["x"]`, ""},
		{"x_y.zz", "x_y.b", "does not match anything in the current state"},
		{"x_y.c[7]", "x_y.b", "does not match anything"},
		{"module.m", "module.mm", "does not match anything"},
		{"x_y.c", "x_y.a", "already a resource at that address"},
		{"x_y.a", "x_y.c[0]", "already a resource instance at that address"},
		{"x_y.a", "x_w.a", "resource types don't match"},
		{"x_y.a", "data.x_y.a", "only to another managed resource"},
		{"x_y.c", "x_y.d[0]", "must also be a whole resource"},
		{"x_y.a", "module.x", "must also be a resource instance"},
		{"module.m[0]", "x_y.b", "must also be a module"},
		{"module.m[0]", "module.m[0].module.q", "cannot be moved into itself"},
	} {
		s := sample()
		before := names(s)
		next, ds := Move(s, target(t, c.from), target(t, c.to))
		if c.fail != "" {
			if !ds.HasErrors() || !strings.Contains(ds[0].Detail, c.fail) || next != s {
				t.Errorf("%s to %s: %v", c.from, c.to, ds)
			}
			continue
		}
		if ds.HasErrors() {
			t.Errorf("%s to %s: %v", c.from, c.to, ds)
			continue
		}
		if names(s) != before {
			t.Errorf("%s to %s changed the state that it was given", c.from, c.to)
		}
		if found, missing := Matching(next, []addr.Target{target(t, c.to)}); len(found) == 0 || len(missing) > 0 {
			t.Errorf("%s to %s: nothing is there: %s", c.from, c.to, names(next))
		}
		if found, _ := Matching(next, []addr.Target{target(t, c.from)}); len(found) > 0 {
			t.Errorf("%s to %s: something was left: %s", c.from, c.to, names(next))
		}
		if a, b := len(s.List()), len(next.List()); a != b {
			t.Errorf("%s to %s: %d objects became %d", c.from, c.to, a, b)
		}
		back, ds := Move(next, target(t, c.to), target(t, c.from))
		if ds.HasErrors() || !back.Equal(s) {
			t.Errorf("%s to %s and back: %v, %s", c.from, c.to, ds, names(back))
		}
	}
}

func TestTransfer(t *testing.T) {
	other := state.New().Edit()
	other.Apply(change("x_y.taken", "h.io/o/n"))
	there := other.Freeze()
	apply := func(s *state.State, changes []state.Change) *state.State {
		d := s.Edit()
		for _, c := range changes {
			d.Apply(c)
		}
		return d.Freeze()
	}
	out, in, ds := Transfer(sample(), there, target(t, "module.m[0]"), target(t, "module.k"))
	from, to := apply(sample(), out), apply(there, in)
	if ds.HasErrors() || names(to) != "module.k.x_y.in module.k.x_y.in2[0] x_y.taken" || strings.Contains(names(from), "module") {
		t.Errorf("%v: %s | %s", ds, names(from), names(to))
	}
	if _, _, ds := Transfer(sample(), there, target(t, "x_y.a"), target(t, "x_y.taken")); !ds.HasErrors() {
		t.Error("moved over what was there")
	}
	out, in, ds = Transfer(sample(), there, target(t, "x_y.a"), target(t, "x_y.a"))
	from, to = apply(sample(), out), apply(there, in)
	if ds.HasErrors() || names(to) != "x_y.a x_y.taken" || strings.Contains(names(from), "x_y.a ") {
		t.Errorf("%v: %s | %s", ds, names(from), names(to))
	}
}

// Resources that depend on a moved resource depend on its new address, or on both addresses
// if an instance was not moved.
func TestMoveFollows(t *testing.T) {
	d := sample().Edit()
	c := change("x_y.z", "h.io/o/n")
	for _, a := range []string{"x_y.a", "x_y.c", "module.m.x_y.in"} {
		dep, err := addr.ParseConfigResource(a)
		if err != nil {
			t.Fatal(err)
		}
		c.New.Dependencies = append(c.New.Dependencies, dep)
	}
	d.Apply(c)
	s := d.Freeze()
	for _, tt := range []struct{ from, to, want string }{
		{"x_y.a", "x_y.b", "[module.m.x_y.in x_y.b x_y.c]"},
		{"x_y.a", "x_y.a[0]", "[x_y.a x_y.c module.m.x_y.in]"},
		{"x_y.c[0]", "x_y.e", "[module.m.x_y.in x_y.a x_y.c x_y.e]"},
		{"x_y.c", "x_y.e", "[module.m.x_y.in x_y.a x_y.e]"},
		{"module.m[0]", "module.n", "[module.n.x_y.in x_y.a x_y.c]"},
		{"x_y.z", "x_y.y", "[x_y.a x_y.c module.m.x_y.in]"},
	} {
		next, ds := Move(s, target(t, tt.from), target(t, tt.to))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		a := target(t, "x_y.z").Instance()
		if tt.from == "x_y.z" {
			a = target(t, tt.to).Instance()
		}
		if o, _, _ := next.Object(addr.Object{Instance: a}); fmt.Sprint(o.Dependencies) != tt.want {
			t.Errorf("%s to %s: %v, not %s", tt.from, tt.to, o.Dependencies, tt.want)
		}
		if o, _, _ := s.Object(addr.Object{Instance: target(t, "x_y.z").Instance()}); len(o.Dependencies) != 3 {
			t.Fatal("the state that was moved in has changed")
		}
	}
}

func TestRemove(t *testing.T) {
	next, gone, ds := Remove(sample(), []addr.Target{target(t, "x_y.c[0]"), target(t, "module.m"), target(t, "x_y.c")})
	if ds.HasErrors() || len(gone) != 4 || names(next) != `data.x_z.d x_y.a x_y.f["x"]` {
		t.Errorf("%v %v: %s", ds, gone, names(next))
	}
	next, gone, ds = Remove(sample(), []addr.Target{target(t, "x_y.a"), target(t, "x_y.zz")})
	if ds.HasErrors() || len(ds) != 1 || !strings.Contains(ds[0].Detail, "x_y.zz") || len(gone) != 1 || strings.Contains(names(next), "x_y.a ") {
		t.Errorf("an address without objects beside one with: %v %v: %s", ds, gone, names(next))
	}
	if next, _, ds := Remove(sample(), []addr.Target{target(t, "x_y.zz")}); !ds.HasErrors() || !next.Equal(sample()) {
		t.Error("only an address without objects was accepted")
	}
}

func TestTaint(t *testing.T) {
	a := target(t, "x_y.a").Instance()
	s, ds := Taint(sample(), a, true)
	if o, _, _ := s.Object(addr.Object{Instance: a}); ds.HasErrors() || !o.Tainted {
		t.Errorf("not tainted: %v", ds)
	}
	if again, ds := Taint(s, a, true); ds.HasErrors() || again != s {
		t.Errorf("tainted twice: %v", ds)
	}
	if s, ds = Taint(s, a, false); ds.HasErrors() || !s.Equal(sample()) {
		t.Errorf("not untainted: %v", ds)
	}
	for _, c := range []string{"x_y.zz", "x_y.c", "data.x_z.d"} {
		if _, ds := Taint(sample(), target(t, c).Instance(), true); !ds.HasErrors() {
			t.Errorf("%s was tainted", c)
		}
	}
	if _, ds := Taint(sample(), a, false); !ds.HasErrors() || ds[0].Code != "state/not-tainted" {
		t.Errorf("%v", ds)
	}
}

func TestReplaceProvider(t *testing.T) {
	from, _ := addr.ParseProvider("h.io/o/n")
	to, _ := addr.ParseProvider("h.io/p/n")
	next, changed := ReplaceProvider(sample(), from, to)
	if len(changed) != 6 {
		t.Errorf("%v", changed)
	}
	for _, r := range next.Sorted() {
		if r.Provider.Provider != to {
			t.Errorf("%s has %s", r.Addr, r.Provider)
		}
	}
	if _, changed := ReplaceProvider(next, from, to); len(changed) != 0 {
		t.Errorf("%v", changed)
	}
}
