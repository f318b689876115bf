package show

import (
	"context"
	"errors"
	"io"

	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
)

// showEstatePlan prints the saved plan of an estate.
func showEstatePlan(ctx context.Context, c *command.Call, o *showOptions, name string) int {
	p, err := savedplan.Read(c, name)
	if err != nil {
		return c.Fail(workdir.PlanFileError(name, err))
	}
	enc, ds := workdir.EncryptionOf(ctx, c.Directory, o.vars, "")
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	for _, u := range p.Units {
		u.Decrypt(enc.Plan(ctx).Plans())
	}
	if o.json.On || o.json.Into != "" {
		if err := p.Check(); err != nil { // check before printing a part of it
			return c.Fail(workdir.PlanFileError(name, err))
		}
		if code := o.json.Document(c, func(w io.Writer) error { return savedplan.WriteJSON(w, p) }); o.json.On || code != 0 {
			return code
		}
	}
	summary := unitview.NewSummary(c.Report)
	summary.Command, summary.Mode = "plan", p.About.Mode()
	if !o.all {
		summary.Limit = unitview.MostLines
	}
	var results []*estate.Result
	var hidden diag.List // units whose plans are encrypted with another key
	for _, u := range p.Units {
		res := savedResult(u)
		summary.Width = max(summary.Width, len(u.Name))
		results = append(results, res)
		if o.html != "" || !u.Planned {
			continue
		}
		pieces, err := savedplan.Pieces(c, p.About, u, o.reveal)
		if errors.Is(err, planfile.ErrSealed) {
			hidden = append(hidden, diag.Warnf(diag.CodeCLIPlanNotShown, nil, "Plan not shown", "The plan of the unit %s: %s.", u.Name, err)...)
			continue
		}
		if err != nil {
			return c.Fail(workdir.PlanFileError(name, err))
		}
		summary.Folds.Add(u.Name, pieces)
		var origins []view.Origin
		if err := savedplan.ReadNote(u, savedplan.OriginNote, &origins); err != nil {
			return c.Fail(workdir.PlanFileError(name, err))
		}
		if p.About.Causes {
			summary.Folds.AddOrigins(u.Name, origins)
		}
	}
	if o.html != "" || o.markdown.File != "" {
		page, err := planpage.Saved(p, results)
		if err != nil {
			return c.Fail(workdir.PlanFileError(name, err))
		}
		if o.markdown.File != "" {
			if ds := flags.WriteMarkdown(c, o.markdown, planpage.Markdown(page, p.About.Mode())); ds.HasErrors() {
				return c.Fail(ds)
			}
		}
		if o.html != "" {
			if ds := planpage.Write(c, o.html, page); ds.HasErrors() {
				return c.Fail(ds)
			}
			return 0
		}
	}
	summary.Plans(results)
	if !unitview.Changes(results) && !unitview.NothingToDo(results) { // units were excluded or failed
		c.Report.Human.Say("The saved plan changes nothing in any unit.\n")
	}
	return c.Report.Status(hidden)
}

// savedResult returns the result of a run that a unit of a saved plan contains.
func savedResult(u *estate.SavedUnit) *estate.Result {
	return &estate.Result{
		Unit: &estate.Unit{Name: u.Name}, Status: u.Result, Cause: u.Cause, Deferred: u.Deferred, Counts: u.Counts, Reads: u.Reads,
		Changes: u.Changes || len(u.Deferred) > 0,
	}
}
