package savedplan_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// files returns the files of a run that planned the units a and b, and the results of the run.
func files(t *testing.T) (*savedplan.Files, []*estate.Result) {
	t.Helper()
	c := command.New(t.Context(), sys.Test(t.TempDir()).System, nil, nil)
	k := &savedplan.Files{Call: c, Saving: &estate.Saving{}}
	var results []*estate.Result
	for _, name := range []string{"b", "live/a"} {
		k.Saving.Take(name, "digest", nil, &plan.Plan{Prior: state.New(), PrevRun: state.New()})
		k.Note(name, savedplan.TextNote, []view.Piece{{Text: "of " + name}})
		k.Note(name, savedplan.JSONNote, map[string]string{"of": name})
		results = append(results, &estate.Result{Unit: &estate.Unit{Name: name}, Status: estate.Succeeded})
	}
	return k, results
}

// A file contains everything needed to print the plan. Only its owner can read it.
func TestFile(t *testing.T) {
	k, results := files(t)
	k.File = "all.tfplan"
	if ds := k.Write(estate.SavedRun{}, results, true); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if info, err := os.Stat(k.Call.Path(k.File)); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Error(info, err)
	}
	p, err := savedplan.Read(k.Call, k.File)
	if err != nil || len(p.Units) != 2 || !savedplan.IsPlan(k.Call, k.File) {
		t.Fatal(p, err)
	}
	pieces, err := savedplan.Pieces(k.Call, p.About, p.Units[1], false)
	if err != nil || len(pieces) != 1 || pieces[0].Text != "of live/a" {
		t.Error(pieces, err)
	}
	var b bytes.Buffer
	if err := savedplan.WriteJSON(&b, p); err != nil || !json.Valid(b.Bytes()) || !strings.Contains(b.String(), `"plan":{"of":"live/a"}`) {
		t.Error(b.String(), err)
	}
}

// --out-dir has one file for each unit, and ReadDir reads them as one plan, sorted by name. Units
// that failed have none.
func TestDir(t *testing.T) {
	k, results := files(t)
	k.Dir, k.JSONDir = "plans", "json"
	failed := &estate.Result{Unit: &estate.Unit{Name: "c"}, Status: estate.Failed}
	if ds := k.WriteEach(estate.SavedRun{Destroy: true}, append(results, failed)); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	p, ds := savedplan.ReadDir(k.Call, k.Dir)
	if ds.HasErrors() || len(p.Units) != 2 || p.Units[0].Name != "b" || p.Units[1].Name != "live/a" || !p.About.Destroy {
		t.Fatalf("%+v %v", p, ds.Err())
	}
	if b, err := os.ReadFile(filepath.Join(k.Call.Path(k.JSONDir), "live", "a", "tfplan.json")); err != nil || string(b) != `{"of":"live/a"}` {
		t.Errorf("%s %v", b, err)
	}
	// The plan of another run was made with other options.
	if ds := k.WriteEach(estate.SavedRun{}, results[:1]); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if _, ds := savedplan.ReadDir(k.Call, k.Dir); !ds.HasErrors() || ds[0].Summary != "Saved plans do not belong together" {
		t.Error(ds.Err())
	}
}

// A file that is no plan, and a directory without plans, are errors. A run without paths saves
// nothing.
func TestNoPlan(t *testing.T) {
	k, results := files(t)
	if ds := k.Write(estate.SavedRun{}, results, true); k.Wanted() || ds != nil {
		t.Error(ds.Err())
	}
	if entries, err := os.ReadDir(k.Call.Dir); err != nil || len(entries) != 0 {
		t.Error(entries, err)
	}
	if err := os.WriteFile(k.Call.Path("text"), []byte("PK text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"text", "missing", "."} {
		if _, err := savedplan.Read(k.Call, name); err == nil || savedplan.IsPlan(k.Call, name) {
			t.Errorf("%s is a plan", name)
		}
		if _, ds := savedplan.ReadDir(k.Call, name); !ds.HasErrors() || !strings.Contains(ds[0].Detail, name) {
			t.Errorf("%s: %v", name, ds.Err())
		}
	}
}
