package unit_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/unit"
	"golang.org/x/tools/txtar"
)

// TestPeer renders the trees in testdata/peer with Terragrunt 1.1.3 and with Terrace.
// ownWays first removes the known differences.
func TestPeer(t *testing.T) {
	peer := os.Getenv("TERRACE_TEST_TERRAGRUNT")
	if peer == "" {
		t.Skip("SKIP: TERRACE_TEST_TERRAGRUNT names no Terragrunt 1.1.3 to compare with")
	}
	paths, err := filepath.Glob("testdata/peer/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no trees found")
	}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(p)
			if err != nil {
				t.Fatal(err)
			}
			root := tempRoot(t)
			var units []string
			for _, f := range a.Files {
				path := filepath.Join(root, f.Name)
				writeFile(t, path, f.Data)
				if strings.HasPrefix(f.Name, "c/"+unit.DefaultName) {
					units = append(units, path)
				}
			}
			l := unit.NewLoader(realEnv(root))
			for _, path := range units {
				comparePeer(t, l, peer, path)
			}
		})
	}
}

func comparePeer(t *testing.T, l *unit.Loader, peer, path string) {
	t.Helper()
	theirs, err := peerRender(peer, path, "")
	if err != nil {
		t.Fatalf("Terragrunt: %v", err)
	}
	task := l.Task(context.Background())
	ours, err := renderUnit(l, task, path)
	if err != nil {
		t.Fatal(err)
	}
	if d := jsonDiff(ownWays(t, theirs), ownWays(t, ours)); d != "" {
		t.Errorf("render --json (-Terragrunt +ours):\n%s", d)
	}
	compareMetadata(t, l, task, peer, path)
}

// compareMetadata compares the file in which each input was found.
func compareMetadata(t *testing.T, l *unit.Loader, task *demand.Task, peer, path string) {
	t.Helper()
	theirs, err := peerRender(peer, path, "", "--with-metadata")
	if err != nil {
		t.Fatalf("Terragrunt: %v", err)
	}
	u, ds := l.Unit(task, path, "")
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	ours, _ := u.RenderMetadata(task)
	files := func(text []byte) map[string]string {
		var v struct {
			Inputs map[string]struct {
				Metadata struct {
					File string `json:"found_in_file"`
				}
			}
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for k, in := range v.Inputs {
			out[k] = in.Metadata.File
		}
		return out
	}
	their, our := files(theirs), files(ours)
	for k, f := range our {
		if their[k] != "" && their[k] != f {
			t.Errorf("input %q was found in %s, Terragrunt says %s", k, f, their[k])
		}
	}
	if len(their) != len(our) {
		t.Errorf("%d inputs, Terragrunt has %d", len(our), len(their))
	}
}

// ownWays removes intended differences from a rendered unit. Terrace keeps the child's
// include_in_copy and exclude_from_copy under shallow merging, and errors blocks in the
// order of the configuration.
func ownWays(t *testing.T, text []byte) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if tf, ok := v["terraform"].(map[string]any); ok {
		delete(tf, "include_in_copy")
	}
	if errs, ok := v["errors"].(map[string]any); ok {
		for _, kind := range errs {
			if list, ok := kind.([]any); ok {
				slices.SortFunc(list, func(a, b any) int {
					return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
				})
			}
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
