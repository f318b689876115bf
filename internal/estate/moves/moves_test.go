package moves_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/moves"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// load reads a file of moves and returns its directory.
func load(t *testing.T, text string) (all []*moves.Move, dir string, ds diag.List) {
	t.Helper()
	dir = testkit.Files(t, "-- "+moves.FileName+" --\n"+text)
	all, ds = moves.Load(filepath.Join(dir, moves.FileName), &source.Set{})
	return all, dir, ds
}

// holding returns a state with resources of the given names.
func holding(names ...string) *state.State {
	d := state.New().Edit()
	for _, name := range names {
		i := addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: name}}.Instance(addr.Key{})
		d.Apply(state.Change{Object: addr.Object{Instance: i}, Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")}, New: &state.Object{JSON: []byte(`{"id":"` + name + `"}`)}})
	}
	return d.Freeze()
}

// names returns the names of the resources in a state.
func names(s *state.State) (out []string) {
	for _, r := range s.Sorted() {
		out = append(out, r.Addr.Resource.Name)
	}
	return out
}

// A path or file that does not exist has no moves.
func TestMissing(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), moves.FileName)} {
		if all, ds := moves.Load(path, &source.Set{}); len(all)+len(ds) > 0 {
			t.Error(path, all, ds.Err())
		}
	}
}

// A block without errors is loaded although another one has errors. Each error has its position.
func TestErrors(t *testing.T) {
	all, dir, ds := load(t, `move {
  from_unit = "a"
  to_unit   = "./a"
  from      = x_thing.x
}
move {
  from_unit = 1
  to_unit   = "b"
  from      = x_thing.x
}
move {
  from_unit = "a"
  to_unit   = "b"
  from      = x_thing.x
}
`)
	if len(ds) != 2 || ds[0].At.Start.Line != 1 || ds[1].At.Start.Line != 7 {
		t.Error(ds.Err())
	}
	if len(all) != 1 || all[0].From.ID != filepath.Join(dir, "a") || all[0].To.Addr != all[0].From.Addr {
		t.Errorf("%+v", all)
	}
}

// A move is pending until the source no longer contains its object. Both units see the same move,
// each in its own direction.
func TestPending(t *testing.T) {
	all, dir, ds := load(t, `move {
  from_unit = "a"
  to_unit   = "b"
  from      = x_thing.x
  to        = x_thing.y
}
`)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	out, ds := moves.Pending(all, a, b, holding("x", "z"), holding("o"))
	if d := cmp.Diff([]string{"z"}, names(out.Own)); d != "" || ds.HasErrors() || len(out.Out.Leave) != 1 || len(out.Out.Come) != 1 || len(out.In.Leave) != 0 || !out.Out.Seen[0].Out {
		t.Errorf("%s %+v %v", d, out, ds.Err())
	}
	in, ds := moves.Pending(all, b, a, holding("o"), holding("x", "z"))
	if d := cmp.Diff([]string{"o", "y"}, names(in.Own)); d != "" || ds.HasErrors() || len(in.In.Come) != 1 || len(in.Out.Leave) != 0 || in.In.Seen[0].Out {
		t.Errorf("%s %+v %v", d, in, ds.Err())
	}
	if done, ds := moves.Pending(all, a, b, holding("z"), holding("o", "y")); len(done.Out.Leave)+len(done.In.Leave)+len(ds) != 0 {
		t.Errorf("%+v %v", done, ds.Err())
	}
}

// A target that already exists is an error at the move, and nothing moves. A unit without a state
// can receive objects.
func TestTarget(t *testing.T) {
	all, dir, _ := load(t, "move {\n  from_unit = \"a\"\n  to_unit = \"b\"\n  from = x_thing.x\n}\n")
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	p, ds := moves.Pending(all, a, b, holding("x"), holding("x"))
	if !ds.HasErrors() || len(p.Out.Leave) != 0 || len(names(p.Own)) != 1 {
		t.Errorf("%+v %v", p, ds.Err())
	}
	if p, ds := moves.Pending(all, a, b, holding("x"), nil); ds.HasErrors() || len(p.Out.Come) != 1 {
		t.Errorf("%+v %v", p, ds.Err())
	}
}

// Partners are in the order of the file, each once.
func TestPartners(t *testing.T) {
	move := func(from, to string) *moves.Move {
		return &moves.Move{From: moves.End{ID: from}, To: moves.End{ID: to}}
	}
	var got []string
	for _, e := range moves.Partners([]*moves.Move{move("a", "c"), move("b", "a"), move("b", "c"), move("c", "a")}, "a") {
		got = append(got, e.ID)
	}
	if d := cmp.Diff([]string{"c", "b"}, got); d != "" {
		t.Error(d)
	}
}
