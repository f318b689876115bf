package unitview_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// written returns the sections that Write prints, without the legend.
func written(f *unitview.Folds, units ...string) string {
	var b bytes.Buffer
	f.Write(&view.Human{Out: &b, Errs: &b}, units, 0)
	_, text, _ := strings.Cut(b.String(), "# ")
	return text
}

func piece(text string) view.Piece {
	return view.Piece{Kind: view.ChangePiece, Op: plan.NoOp, Text: text + "\n"}
}

// A change that several units share is printed once, in a section with their names. Sections with
// more units come first, and a second call prints nothing again.
func TestFolds(t *testing.T) {
	f := unitview.NewFolds()
	f.Add("a", []view.Piece{piece("only a"), piece("common")})
	f.Add("b", []view.Piece{piece("common")})
	want := "The same in 2 units: a, b\ncommon\n\n# Unit a\nonly a\n"
	if d := cmp.Diff(want, written(f, "a", "b")); d != "" {
		t.Error(d)
	}
	if got := written(f, "a", "b"); got != "" {
		t.Error(got)
	}
}

// Changes with equal heads and different texts are printed as their head. A unit that is planned
// again has only its new changes, whose text is printed whole if no other unit differs.
func TestFoldsHead(t *testing.T) {
	moved := func(text string) view.Piece {
		return view.Piece{Kind: view.ChangePiece, Head: "moved\n", Text: "moved\n" + text + "\n"}
	}
	f := unitview.NewFolds()
	f.Add("a", []view.Piece{moved("one")})
	f.Add("b", []view.Piece{moved("two")})
	if d := cmp.Diff("The same in 2 units: a, b\nmoved\n", written(f, "a", "b")); d != "" {
		t.Error(d)
	}
	f = unitview.NewFolds()
	f.Add("a", []view.Piece{moved("one"), piece("old")})
	f.Add("a", []view.Piece{moved("two")})
	if d := cmp.Diff("Unit a\nmoved\ntwo\n", written(f, "a")); d != "" {
		t.Error(d)
	}
	if got := f.Of("a"); len(got) != 1 || got[0].Text != "moved\ntwo\n" {
		t.Errorf("%+v", got)
	}
}

// Units may be added concurrently. A unit that is not known has no changes.
func TestFoldsConcurrent(t *testing.T) {
	f := unitview.NewFolds()
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() { f.Add(fmt.Sprint(i), []view.Piece{piece("common")}) })
	}
	running.Wait()
	if got := written(f, "0", "1", "2", "3", "4", "5", "6", "7"); strings.Count(got, "common") != 1 || len(f.Of("none")) != 0 {
		t.Error(got)
	}
}

// The sentence of each result describes what happened, and why.
func TestSentence(t *testing.T) {
	unit := &estate.Unit{Name: "u"}
	for want, tt := range map[string]struct {
		op         estate.Op
		res        estate.Result
		destroying bool
	}{
		"no changes": {op: estate.Plan},
		"plan: 1 to add, 0 to change, 0 to destroy, 2 deferred": {op: estate.Plan, res: estate.Result{Changes: true, Counts: plan.Counts{Add: 1}, Deferred: []report.Deferral{{Address: "a"}, {Address: "b"}}}},
		"applied: 0 added, 2 changed, 0 destroyed":              {op: estate.Apply, res: estate.Result{Counts: plan.Counts{Change: 2}}},
		"destroyed 1 object":                                    {op: estate.Apply, res: estate.Result{Counts: plan.Counts{Destroy: 1}}, destroying: true},
		"failed: Summary":                                       {op: estate.Apply, res: estate.Result{Status: estate.Failed, Cause: "Summary"}},
		"excluded: its exclude block says so":                   {op: estate.Plan, res: estate.Result{Status: estate.Excluded}},
		"not run: it needs net, which failed":                   {op: estate.Plan, res: estate.Result{Status: estate.EarlyExit, Reason: "ancestor error", Blocker: report.Blocker{Name: "net"}}},
		"not run: it needs net, which was not run":              {op: estate.Plan, res: estate.Result{Status: estate.EarlyExit, Reason: "ancestor error", Blocker: report.Blocker{Name: "net", Kept: true}}},
		"valid": {op: estate.Validate},
	} {
		tt.res.Unit = unit
		if tt.res.Status == "" {
			tt.res.Status = estate.Succeeded
		}
		if got := unitview.Sentence(tt.op, &tt.res, tt.destroying); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Messages about files of the module are separated from those about unit files.
func TestSplitByOrigin(t *testing.T) {
	set := &source.Set{}
	set.Add(&source.File{Path: "main.tf", Layer: &source.Layer{}})
	at := func(file string) diag.List {
		return diag.Errorf(diag.CodeEstateCycle, &source.Range{Filename: file}, file, "D.")
	}
	ds := append(append(at("terragrunt.hcl"), at("main.tf")...), diag.Errorf(diag.CodeEstateCycle, nil, "none", "D.")...)
	inUnit, inModule := unitview.SplitByOrigin(&estate.Result{Set: set}, ds)
	if len(inUnit) != 2 || len(inModule) != 1 || inModule[0].Summary != "main.tf" || len(ds) != 3 {
		t.Errorf("%v %v", inUnit, inModule)
	}
}

// A long plan prints as many changes as fit, those of most units first, and counts the others.
func TestFoldsLimit(t *testing.T) {
	f := unitview.NewFolds()
	text := strings.Repeat("line\n", 10)
	var units []string
	for i := range 50 {
		u := fmt.Sprintf("u%02d", i)
		units = append(units, u)
		f.Add(u, []view.Piece{
			{Kind: view.ChangePiece, Op: plan.Create, Type: "test_thing", Text: "common\n" + text},
			{Kind: view.ChangePiece, Op: plan.Delete, Type: "test_other", Text: u + "\n" + text},
		})
	}
	var b strings.Builder
	f.Write(&view.Human{Out: &b}, units, 40)
	out := b.String()
	if n := strings.Count(out, "\n"); n > 70 {
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{"The same in all 50 units", "common\n", "u01\n", "# Not shown, because the plan is long: 528 lines about 48 units", "test_other: 48 to delete", "--all-changes"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "u02\n") || strings.Contains(out, "test_thing:") {
		t.Errorf("too much is shown, or a shown change is counted:\n%s", out)
	}
}
