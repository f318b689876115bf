package report_test

import (
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/unit"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func result(name string) *report.Result {
	dir := filepath.Join("/estate", filepath.FromSlash(name))
	return &report.Result{Unit: &discovery.Unit{Unit: &unit.Unit{ID: dir, Dir: dir}, Name: name}, Status: report.Succeeded, Started: begin, Ended: begin}
}

// results contains a unit of each status.
func results() []*report.Result {
	ok, failed, broken, out := result("ok"), result("live/failed"), result("broken"), result("out")
	failed.Fail(append(diag.Warnf(diag.CodeEstateCycle, nil, "Warning", "W."), diag.Errorf(diag.CodeEstateCycle, nil, "Summary", "Detail.")...))
	broken.Break("ancestor error", "live/failed")
	out.Unit.Excluded = discovery.ByItself
	out.LeaveOut()
	return []*report.Result{ok, failed, broken, out}
}

// Both formats contain the units in the order of the results, with the same fields.
func TestFormats(t *testing.T) {
	want := [][]string{
		{"ok", "succeeded", "", ""}, {"live/failed", "failed", "run error", "Summary"},
		{"broken", "early exit", "ancestor error", "live/failed"}, {"out", "excluded", "exclude block", ""},
	}
	b, err := report.Make(results(), report.Options{Format: "json", Command: "apply", Args: []string{"a", "b"}})
	var entries []struct {
		Name, Result, Reason, Cause, Cmd string
		Args                             []string
		Started                          time.Time
	}
	if err == nil {
		err = json.Unmarshal(b, &entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, e := range entries {
		got = append(got, []string{e.Name, e.Result, e.Reason, e.Cause})
		if e.Cmd != "apply" || len(e.Args) != 2 || !e.Started.Equal(begin) {
			t.Errorf("%+v", e)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	b, err = report.Make(results(), report.Options{Format: "csv", Command: "apply", Args: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatal(rows, err)
	}
	for i, r := range rows[1:] {
		if d := cmp.Diff([]string{want[i][0], "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", want[i][1], want[i][2], want[i][3], "", "apply", "a|b"}, r); d != "" {
			t.Error(d)
		}
	}
}

// A report of no units is an empty list. An unknown format is an error that names the known ones.
func TestEdges(t *testing.T) {
	if b, err := report.Make(nil, report.Options{Format: "json"}); string(b) != "[]\n" || err != nil {
		t.Errorf("%s %v", b, err)
	}
	if _, err := report.Make(nil, report.Options{Format: "xml"}); err == nil || !strings.Contains(err.Error(), "csv and json") {
		t.Error(err)
	}
}

// Names are relative to Root. The unit at Root has the name of its directory. Errors replaces the
// causes of failed units alone.
func TestOptions(t *testing.T) {
	b, err := report.Make(results()[1:3], report.Options{Format: "csv", Root: "/estate/live/failed", Errors: func(*report.Result) string { return "all messages" }})
	if err != nil || !strings.Contains(string(b), "\nfailed,") || !strings.Contains(string(b), ",all messages,") || !strings.Contains(string(b), "\n../../broken,") || !strings.Contains(string(b), ",live/failed,") {
		t.Errorf("%s %v", b, err)
	}
}

// A deferral names each output that it waits for once.
func TestDeferral(t *testing.T) {
	w := report.Wait{Unit: "net", Ref: "dependency.net.outputs.id", Input: "id", Where: "app/terragrunt.hcl:3"}
	got := report.Deferral{Reason: "its inputs are unknown", Waits: []report.Wait{w, w}}.String()
	if d := cmp.Diff("all of it: its inputs are unknown; it waits for dependency.net.outputs.id (unit net, read at app/terragrunt.hcl:3, input id)", got); d != "" {
		t.Error(d)
	}
}

// The schema is JSON and lists every status.
func TestSchema(t *testing.T) {
	text := string(report.Schema())
	for _, s := range []report.Status{report.Succeeded, report.Failed, report.Excluded, report.EarlyExit} {
		if !json.Valid([]byte(text)) || !strings.Contains(text, `"`+string(s)+`"`) {
			t.Errorf("%s is missing", s)
		}
	}
}
