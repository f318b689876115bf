package placement

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/source"
)

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	for _, c := range []struct {
		name, text string
		want       Plan
		wrong      bool
	}{
		{"nothing", "", Plan{map[string]string{}, map[string]int{}, map[string]int{}}, false},
		{
			"the last block counts, for each argument",
			"units {\n memory = 300\n queue = \"all\"\n}\nunits {\n filter = [\"b\"]\n queue = \"heavy\"\n}\nunits {\n filter = [\"b\", \"c\"]\n memory = 900\n}\nqueue \"heavy\" {\n turns = 2\n}\n",
			Plan{map[string]string{"a": "all", "b": "heavy", "c": "all"}, map[string]int{"a": 300, "b": 900, "c": 900}, map[string]int{"heavy": 2}}, false,
		},
		{"an argument that there is not", "units {\n mem = 1\n}\n", Plan{}, true},
		{"less than nothing", "units {\n memory = -1\n}\n", Plan{}, true},
		{"no turns", "queue \"x\" {\n turns = -1\n}\n", Plan{}, true},
		{"no number", "units {\n memory = \"much\"\n}\n", Plan{}, true},
		{"a part of a turn", "queue \"x\" {\n turns = 1.5\n}\n", Plan{}, true},
		{"no text", "units {\n", Plan{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			below := filepath.Join(dir, "live", "prod")
			f, ds := Load(sys.Nearest(below, FileName), new(source.Set))
			if ds.HasErrors() != c.wrong {
				t.Fatalf("%v", ds)
			}
			if c.wrong {
				if ds[0].At == nil || ds[0].At.Filename != path {
					t.Errorf("no place: %v", ds)
				}
				return
			}
			units := []string{"a", "b", "c"}
			got, ds := f.Plan(units, true, func(from string, filters []string) (map[string]bool, diag.List) {
				if from != dir {
					t.Errorf("filters are seen from %s", from)
				}
				out := map[string]bool{}
				for _, u := range units {
					out[u] = len(filters) == 0 || slices.Contains(filters, u)
				}
				return out, nil
			})
			if ds.HasErrors() || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v (%v)", got, c.want, ds)
			}
		})
	}
}

// The turns together never make more calls to a configuration than the file allows, whatever
// their number.
func TestShare(t *testing.T) {
	aws, tls := addr.Provider{Host: addr.DefaultHost, Namespace: "hashicorp", Type: "aws"}, addr.Provider{Host: addr.DefaultHost, Namespace: "hashicorp", Type: "tls"}
	of := map[addr.Provider]int{aws: 40, tls: 5}
	for _, c := range []struct {
		file         map[addr.Provider]int
		calls, turns int
		want         Shares
	}{
		{nil, 0, 0, Shares{}},
		{nil, 0, 7, Shares{Turns: 7}},
		{nil, 64, 0, Shares{Turns: 16, Calls: 4}},
		{nil, 3, 8, Shares{Turns: 3, Calls: 1}},
		{of, 0, 0, Shares{Turns: 5, CallsOf: map[string]int{aws.String(): 8, tls.String(): 1}}},
		{of, 0, 2, Shares{Turns: 2, CallsOf: map[string]int{aws.String(): 20, tls.String(): 2}}},
		{of, 4, 0, Shares{Turns: 4, Calls: 1, CallsOf: map[string]int{aws.String(): 10, tls.String(): 1}}},
	} {
		if got := (&File{Calls: c.file}).Share(c.calls, c.turns); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, %d calls, %d turns: %+v, want %+v", c.file, c.calls, c.turns, got, c.want)
		}
	}
}
