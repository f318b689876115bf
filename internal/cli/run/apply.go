package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/planning"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/plan"
)

// apply plans all units, asks for approval and applies the plan. If approval is not needed,
// each unit is planned and applied directly.
func (r *estateRun) apply(ctx context.Context) int {
	if r.saved != nil {
		return r.end(r.run(ctx, estate.Apply, r.saved.Approvals()))
	}
	if r.approved() {
		if r.ruled.rules == nil {
			return r.end(r.run(ctx, estate.Apply, nil))
		}
		results := r.run(ctx, estate.Plan, nil) // rules about the whole estate need all plans
		if worst(results) != 0 && !unitview.Changes(results) {
			return r.end(results)
		}
		if !r.checkRules(ctx, results) {
			return r.stopped(results)
		}
		return r.applyPlanned(ctx, results)
	}
	if r.f.Detach {
		return r.failEstate(r.estate, diag.Errorf(diag.CodeCLINotApproved, nil, "Approval required", "Nobody can be asked for approval once the command has ended. Use -auto-approve with --detach, or apply a saved plan."))
	}
	if job := r.f.Following; job != nil && job.Op == string(estate.Apply) { // the user has approved it before
		return r.end(r.run(ctx, estate.Apply, nil))
	}
	results := r.run(ctx, estate.Plan, nil)
	r.shown.summary.Plans(results)
	if !r.checkRules(ctx, results) {
		return r.stopped(results)
	}
	if code := worst(results); code != 0 || !unitview.Changes(results) || slices.ContainsFunc(results, func(x *estate.Result) bool { return x.Status == estate.EarlyExit }) {
		return r.end(results)
	}
	verb := "perform these actions"
	if r.op.Plan.Mode == plan.Destroy {
		verb = "destroy all resources of these units"
	}
	text := onlyAccepted(r.Call)
	if unitview.Deferred(results) > 0 {
		text = "What is deferred is shown and asked for when what it waits for is there. " + text
	}
	answer, err := r.Prompt.Ask(r.halt.asking, prompt.Question{Title: "\nDo you want to " + verb + "?", Text: text})
	if err != nil {
		return r.failEstate(r.estate, diag.Errorf(diag.CodeCLINotApproved, nil, "Apply was not approved", "Not approved: %s. Run the command in a terminal, or with -auto-approve.", err))
	}
	if !approves(r.Call, answer) {
		r.Report.Human.Say("Apply cancelled.\n")
		return 0
	}
	return r.applyPlanned(ctx, results)
}

// stopped ends a run whose plans break a rule, so that nothing is applied.
func (r *estateRun) stopped(results []*estate.Result) int {
	r.shown.summary.Command = "plan" // the summary is not that of an apply
	r.end(results)
	return 1
}

// applyPlanned applies the plans of a run that has just ended, here or on workers.
func (r *estateRun) applyPlanned(ctx context.Context, results []*estate.Result) int {
	if r.f.On != "" {
		p, err := r.kept.Saving.Save(r.about(), results)
		if err != nil {
			return r.failEstate(r.estate, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write plan file", "The plan file could not be written: %s.", err))
		}
		return r.end(r.runOn(ctx, estate.Apply, p.Approvals(), p, true))
	}
	return r.end(r.run(ctx, estate.Apply, saved.Approve(results)))
}

// approved reports whether the run applies without a question.
func (r *estateRun) approved() bool {
	return r.op.Approved || r.f.NonInteractive && !r.f.NoAutoApprove
}

// askWave prints the plans of units whose deferred changes can now be planned, and asks for
// approval.
func (r *estateRun) askWave(wave []*estate.Result) bool {
	r.shown.live.Hide()
	defer r.shown.live.Show()
	r.Report.Human.Say(fmt.Sprintf("\nWhat had been deferred in %s can be planned now.\n", view.ShortList(unitview.Names(wave))))
	r.shown.summary.Wave(wave)
	answer, err := r.Prompt.Ask(r.halt.asking, prompt.Question{Title: "\nDo you want to perform these actions too?", Text: onlyAccepted(r.Call) + " The units that are waiting are not applied otherwise."})
	if err != nil {
		r.Report.Tell(diag.Errorf(diag.CodeCLINotApproved, nil, "Deferred work was not approved", "Not approved: %s. Run the command in a terminal, or with -auto-approve.", err))
	}
	return err == nil && approves(r.Call, answer)
}

// approves reports whether an answer approves. Only "yes" does, as in apply. Called as
// terragrunt, the program also accepts "y" and capital letters, as Terragrunt does.
func approves(c *command.Call, answer string) bool {
	if c.CalledAs() == "terragrunt" {
		return strings.EqualFold(answer, "yes") || strings.EqualFold(answer, "y")
	}
	return answer == "yes"
}

// onlyAccepted returns the sentence about the answers that approve.
func onlyAccepted(c *command.Call) string {
	if c.CalledAs() == "terragrunt" {
		return "Only 'yes' or 'y' will be accepted to approve."
	}
	return "Only 'yes' will be accepted to approve."
}

// worst returns the exit status for the run: the highest status of a unit, but 2, which means
// changes, only if no unit failed.
func worst(results []*estate.Result) int {
	code, two := 0, 0
	for _, res := range results {
		if res.Code == 2 {
			two = 2
		} else {
			code = max(code, res.Code)
		}
	}
	return cmp.Or(code, two)
}

// end prints the summary, writes the report and returns the exit status.
func (r *estateRun) end(results []*estate.Result) int {
	if r.detached {
		return 0
	}
	if results == nil { // run has already reported the errors
		return r.failEstate(r.estate, nil)
	}
	if r.Report.Human != nil {
		if !r.f.SummaryOff {
			r.shown.summary.Table(results)
		}
		r.shown.summary.Complete(results)
	}
	if r.Report.Stream != nil {
		r.shown.summary.JSON(results)
	}
	r.accepted(results)
	code := r.written(results)
	open := unitview.Changes(results)
	if r.name == "apply" {
		open = unitview.Deferred(results) > 0
	}
	if code == 0 && r.op.Detailed && open {
		return 2
	}
	return code
}

// accepted reports the drift that the list of accepted drift contains.
func (r *estateRun) accepted(results []*estate.Result) {
	if r.op.Drift {
		units, read := r.acceptedDrift(results)
		r.Report.Tell(planning.ReportAccepted(r.Call, &r.op, units, read))
	}
}

// acceptedDrift returns the accepted drift of units, and the last argument of planning.ReportAccepted.
func (r *estateRun) acceptedDrift(results []*estate.Result) (units []planning.UnitDrift, read func(plan.Acceptance) bool) {
	read = func(plan.Acceptance) bool { return r.whole && !r.op.Limited() && r.op.Plan.Accept.Dir == "" }
	for _, res := range results {
		if res.Status == estate.Failed || res.Status == estate.EarlyExit {
			read = nil
		}
		units = append(units, planning.UnitDrift{Unit: res.Unit.Name, Drift: res.Accepted})
	}
	return units, read
}

// written writes the report files and returns the exit status.
func (r *estateRun) written(results []*estate.Result) int {
	if err := r.writeReports(results); err != nil {
		return r.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the report", "%s.", err))
	}
	return worst(results)
}
