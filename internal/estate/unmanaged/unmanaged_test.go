package unmanaged

import (
	"fmt"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

var test = addr.DefaultProvider("test")

// stateOf returns a state with an object for each pair of a name and a JSON object. An object
// whose name begins with "plain" has no identity.
func stateOf(t testing.TB, objects ...string) *state.State {
	t.Helper()
	edit := state.New().Edit()
	for i := 0; i < len(objects); i += 2 {
		a := addr.AbsResource{Resource: addr.Resource{Type: "test_object", Name: objects[i]}}.Instance(addr.Key{})
		o := &state.Object{JSON: []byte(objects[i+1])}
		if objects[i][:min(5, len(objects[i]))] != "plain" {
			o.Identity = fmt.Appendf(nil, `{"id":%q,"region":null}`, objects[i])
		}
		edit.Apply(state.Change{Object: addr.Object{Instance: a}, Provider: addr.ProviderConfig{Provider: test}, New: o})
	}
	return edit.Freeze()
}

func object(id, name string, attrs map[string]any) Object {
	return Object{Type: "test_object", Provider: test, Config: state.Digest{1}, Identity: map[string]any{"id": id, "region": nil}, Name: name, Attrs: attrs}
}

func TestIndex(t *testing.T) {
	configs := map[addr.ProviderConfig]state.Digest{{Provider: test}: {1}}
	var x Index
	x.Add("web", stateOf(t, "front", `{"id":"front","map":{"team":"web"}}`, "plain", `{"id":"old","name":"website"}`), configs)
	x.Add("db", stateOf(t, "primary", `{"id":"primary","map":{"team":"data"},"name":"orders-primary"}`), configs)
	x.Add("empty", nil, map[addr.ProviderConfig]state.Digest{{Provider: test}: {2}})
	for id, want := range map[string]bool{"front": true, "old": true, "primary": true, "new": false, "": false} {
		if got := x.Managed(object(id, "", nil)); got != want {
			t.Errorf("%s is managed: %t", id, got)
		}
	}
	if x.Managed(Object{Type: "test_other", Provider: test, Identity: map[string]any{"id": "front"}}) {
		t.Error("an object of another type is managed")
	}
	other := object("x", "", nil)
	other.Config = state.Digest{2}
	nowhere := object("x", "", nil)
	nowhere.Config = state.Digest{3}
	for _, c := range []struct {
		o    Object
		want string
	}{
		{object("x", "", map[string]any{"map": map[string]any{"team": "data"}}), "db"},
		{object("x", "orders-replica", nil), "db"},
		{object("x", "website-2", nil), "web"},
		{object("x", "other", nil), "web"}, // it lists the object
		{other, "empty"},
		{nowhere, ""},
	} {
		if got := x.Propose(c.o, "web"); got.Unit != c.want || got.Reason == "" {
			t.Errorf("%v: %+v, want %q", c.o, got, c.want)
		}
	}
	if got := x.Propose(object("x", "other", nil), "empty"); got.Unit != "" {
		t.Errorf("%+v", got)
	}
}

// BenchmarkUnmanaged compares n listed objects with the states of n/10 units. Each state has five objects,
// so that half of the listed objects are managed. The time of an object includes its share of the index.
func BenchmarkUnmanaged(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			units := n / 10
			states := make([]*state.State, units)
			for i := range states {
				var objects []string
				for k := range 5 {
					objects = append(objects, fmt.Sprintf("object-%d-%d", i, k), fmt.Sprintf(`{"id":"object-%d-%d","map":{"unit":"unit-%d","managed":"yes"},"name":"service%d"}`, i, k, i, i))
				}
				states[i] = stateOf(b, objects...)
			}
			all := make([]Object, n)
			for i := range all {
				unit := i % units
				all[i] = object(fmt.Sprintf("object-%d-%d", unit, i/units), "service", map[string]any{"map": map[string]any{"unit": fmt.Sprint("unit-", unit), "managed": "yes"}})
			}
			managed := 0
			b.ResetTimer()
			for b.Loop() {
				var x Index
				for i, s := range states {
					x.Add(fmt.Sprint("unit-", i), s, map[addr.ProviderConfig]state.Digest{{Provider: test}: {1}})
				}
				managed = 0
				for _, o := range all {
					if x.Managed(o) {
						managed++
					} else {
						x.Propose(o, "unit-0")
					}
				}
			}
			if managed != n/2 {
				b.Fatalf("%d of %d objects are managed", managed, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
		})
	}
}

// An import block names its object by the identity, or by an ID, which is the attribute id or the
// only part of the identity.
func TestImporting(t *testing.T) {
	var x Index
	if x.Importing(object("a", "", nil)) != nil {
		t.Error("an empty index imports")
	}
	x.AddImport(Import{"web", "test_object.a"}, "test_object", test, "", map[string]any{"id": "a", "region": nil})
	x.AddImport(Import{"db", "test_object.b"}, "test_object", test, "b", nil)
	x.AddImport(Import{"later", "test_object.b2"}, "test_object", test, "b", nil)
	for _, c := range []struct {
		o    Object
		want string
	}{
		{object("a", "", nil), "web test_object.a"},
		{object("b", "", nil), "db test_object.b"},
		{object("c", "", map[string]any{"id": "b"}), "db test_object.b"},
		{object("c", "", nil), ""},
		{Object{Type: "test_other", Provider: test, Identity: map[string]any{"id": "a"}}, ""},
		{Object{Type: "test_object", Provider: test, Identity: map[string]any{"id": "a", "region": "b"}}, ""},
	} {
		got := ""
		if im := x.Importing(c.o); im != nil {
			got = im.Unit + " " + im.Address
		}
		if got != c.want {
			t.Errorf("%v is imported by %q, want %q", c.o.Identity, got, c.want)
		}
	}
}
