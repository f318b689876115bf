package run

import (
	"encoding/json"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/cli/planhtml"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/remote"
)

// followed is the local side of a run whose units run elsewhere: the part of estateRun that
// prints it.
type followed struct {
	r  *estateRun
	op estate.Op
}

// tell reports messages about the run as a whole.
func (f *followed) tell(ds diag.List) { f.r.Report.Tell(ds) }

// note prints a line about the run.
func (f *followed) note(text string) {
	f.r.Report.Human.AboveStatus(text + "\n")
	f.r.Report.Stream.Log(text)
}

// identify prints the ID of the run to Stdout, for programs.
func (f *followed) identify(id string) { fmt.Fprintln(f.r.Stdout, id) }

// start shows that a unit begins to run. doing shows its activity, and end shows that it
// ended.
func (f *followed) start(unit string) {
	f.r.shown.live.Start(unit, map[estate.Op]string{estate.Plan: "planning", estate.Validate: "validating", estate.Init: "getting ready"}[f.op])
}

func (f *followed) doing(unit, text string) { f.r.shown.live.Activity(unit, "", text) }

func (f *followed) end(res *estate.Result) {
	f.r.shown.live.End(res.Unit.Name, res.Status == estate.Failed)
}

// reported prints the report of a worker about a unit, and stores the plan of the unit.
func (f *followed) reported(res *estate.Result, reported *remote.Report) error {
	unit, out := res.Unit, f.r.Report
	f.r.errors.Store(unit.Name, reported.Errors)
	for _, c := range reported.Chunks {
		switch {
		case c.To == remote.Events && out.Stream != nil:
			out.Stream.Pass(c.Text)
		case c.To == remote.Stdout:
			out.Human.Copy(c.Text)
		case c.To == remote.Stderr:
			out.Human.AboveStatus(c.Text)
		}
	}
	if out.Human != nil {
		var warnings diag.List
		printed := map[*diag.Message]string{}
		for _, w := range reported.Warnings {
			m := new(diag.Message)
			m.Code, m.Severity, m.Summary, m.Detail, m.Address = w.Code, diag.Warning, w.Title, w.Text, w.Address
			warnings, printed[m] = append(warnings, m), w.Printed
		}
		for _, m := range f.r.reporter(f.op).first(res, warnings) {
			out.Human.Copy(printed[m])
		}
	}
	var pieces []view.Piece
	var origins []view.Origin
	if json.Unmarshal(reported.Origins, &origins) == nil {
		f.r.shown.summary.Folds.AddOrigins(unit.Name, origins)
	}
	if json.Unmarshal(reported.Pieces, &pieces) == nil && len(pieces) > 0 && out.Human != nil {
		f.r.shown.summary.Folds.Add(unit.Name, pieces)
	}
	var page planhtml.Box
	if len(reported.Page) > 0 && json.Unmarshal(reported.Page, &page) == nil {
		f.r.page.Put(&page, true)
	}
	if len(reported.Plan) > 0 {
		if err := f.r.kept.Saving.Import(unit.Name, reported.Plan, release.Version); err != nil {
			return fmt.Errorf("the plan of the unit %s cannot be read: %w", unit.Name, err)
		}
	}
	return nil
}
