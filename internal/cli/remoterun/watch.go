package remoterun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/tfe"
	"github.com/terrace-iac/terrace/plan"
)

// An operation is a run in progress at the service.
type operation struct {
	c         *command.Call
	at        *workdir.OpenedBackend
	b         *tfe.Backend
	w         *tfe.Workspace
	q         Request
	workspace string // local name of the workspace
	run       *tfe.Run

	interrupted atomic.Bool
	stop        context.CancelFunc // ends pauses and prompts
	cancelled   bool               // the program has asked the service to cancel the run

	announced             bool // the user knows that the run waits for its plan
	ahead                 int  // number of earlier runs, as printed last
	planShown, applyShown bool
	confirmed             bool
	shown                 map[string]bool // IDs of checks whose result was printed
	failed                diag.List       // errors that prevent that the run continues
}

// forceWithin is the longest time that a second interrupt waits for the service.
const forceWithin = 900 * time.Millisecond

// watch follows a run to its end and returns the exit status.
func (o *operation) watch(ctx context.Context) int {
	waits, stop := context.WithCancel(ctx)
	defer stop()
	o.stop, o.shown = stop, map[string]bool{}
	o.c.Interrupts.Gently(func() { o.interrupted.Store(true); stop() })
	defer o.c.Interrupts.Gently(nil)
	o.c.Interrupts.WhenKilled(func() {
		last, end := context.WithTimeout(context.WithoutCancel(ctx), forceWithin)
		defer end()
		_ = o.b.Act(last, o.run.ID, "force-cancel") // this process ends in any case
	})
	defer o.c.Interrupts.WhenKilled(nil)
	begun := o.c.Now()
	status := ""
	for n := 0; ; n++ {
		r, err := o.b.Run(ctx, o.run.ID)
		if err != nil {
			return o.fail(o.at.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to read the run", "", err)))
		}
		if o.run = r; r.Status != status {
			status, n = r.Status, 0
		}
		if o.interrupted.Load() && !o.cancelled {
			o.cancel(ctx)
			continue
		}
		if err := o.progress(ctx, waits); err != nil {
			if o.interrupted.Load() {
				continue
			}
			return o.fail(o.messageOf(err))
		}
		if o.failed.HasErrors() {
			o.discard(ctx)
			return o.fail(o.failed)
		}
		if r.Over() && !(o.confirmed && r.Status == "planned_and_saved") { // an apply of a saved plan may keep this status for a while
			return o.end(ctx)
		}
		if o.q.LockTimeout > 0 && r.Waiting() && o.c.Now().Sub(begun) > o.q.LockTimeout {
			o.interrupted.Store(true)
			o.say("Lock timeout exceeded, sending interrupt to cancel the remote operation.")
			continue
		}
		// An error only means that the pause ended early. The loop above handles interrupts.
		_ = o.b.Pause(waits, n)
		if o.cancelled {
			_ = o.b.Pause(ctx, n)
		}
	}
}

func (o *operation) messageOf(err error) diag.List {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.ds
	}
	return o.at.Located(backend.Message(diag.CodeBackendFailed, "The run cannot be followed", "", err))
}

// A refusal is an error that contains messages.
type refusal struct{ ds diag.List }

func (r *refusal) Error() string { return r.ds.Err().Error() }

func (o *operation) fail(ds diag.List) int { return o.c.Fail(ds) }

// cancel cancels or discards the run at the service, if the service allows it.
func (o *operation) cancel(ctx context.Context) {
	o.cancelled = true
	action := ""
	switch {
	case o.run.Actions.Cancelable:
		action = "cancel"
	case o.run.Actions.Discardable:
		action = "discard"
	default:
		return
	}
	if err := o.b.Act(ctx, o.run.ID, action); err != nil {
		o.c.Report.Tell(o.at.Located(backend.Message(diag.CodeBackendFailed, "The run could not be cancelled", "", err)).AsWarnings())
	}
}

// discard discards a run that waits for approval.
func (o *operation) discard(ctx context.Context) {
	if o.run.Over() || !o.run.Actions.Discardable {
		return
	}
	if err := o.b.Act(ctx, o.run.ID, "discard"); err != nil {
		o.c.Report.Tell(o.at.Located(backend.Message(diag.CodeBackendFailed, "The run could not be discarded", "", err)).AsWarnings())
	}
}

// progress prints the news of a run, and answers its questions.
func (o *operation) progress(ctx, waits context.Context) error {
	r := o.run
	if !o.announced {
		o.announced = true
		o.say("Waiting for the plan to start...\n")
	}
	if err := o.queue(ctx); err != nil {
		return err
	}
	if r.Waiting() || o.cancelled && !o.planShown {
		return o.stages(ctx, waits, "pre_plan")
	}
	if err := o.stages(ctx, waits, "pre_plan"); err != nil {
		return err
	}
	if !o.planShown && r.PlanID != "" {
		if err := o.stream(ctx, waits, "plan", o.b.Plan, r.PlanID); err != nil {
			return err
		}
		o.planShown = true
		return nil // the run has progressed meanwhile, so read it again
	}
	if err := o.stages(ctx, waits, "post_plan"); err != nil {
		return err
	}
	if err := o.cost(ctx); err != nil {
		return err
	}
	if err := o.policies(ctx, waits); err != nil {
		return err
	}
	if err := o.stages(ctx, waits, "pre_apply"); err != nil {
		return err
	}
	if r.Actions.Confirmable && !o.confirmed && !o.cancelled && o.q.Command != "plan" && !r.Over() {
		if err := o.confirm(ctx, waits); err != nil {
			return err
		}
	}
	if !o.applyShown && slices.Contains([]string{"applying", "applied", "errored"}, r.Status) && r.ApplyID != "" && o.q.Command != "plan" && (r.Status != "errored" || o.confirmed || o.q.Approved) {
		p, err := o.b.Apply(ctx, r.ApplyID)
		if err != nil || p.Log == "" || p.Status == "unreachable" || p.Status == "pending" {
			return err
		}
		if o.c.Report.Human != nil {
			o.c.Report.Human.Say("\n")
		}
		if err := o.stream(ctx, waits, "apply", o.b.Apply, r.ApplyID); err != nil {
			return err
		}
		o.applyShown = true
	}
	return nil
}

// queue prints how many runs come first, whenever the number changes.
func (o *operation) queue(ctx context.Context) error {
	if o.run.Status != "pending" && o.run.Status != "plan_queued" {
		return nil
	}
	n, what := o.run.Queued, "of the organization"
	if o.run.Status == "pending" {
		ahead, err := o.b.Ahead(ctx, o.w, o.run.ID)
		if err != nil {
			return err
		}
		if ahead > 0 {
			n, what = ahead, "of the workspace"
		}
	}
	if n != o.ahead && n > 0 {
		runs := "runs"
		if n == 1 {
			runs = "run"
		}
		o.say(fmt.Sprintf("Waiting for %d %s %s to end first...\n", n, runs, what))
	}
	o.ahead = n
	return nil
}

// stream prints a log to its end.
func (o *operation) stream(ctx, waits context.Context, what string, phase func(context.Context, string) (*tfe.Phase, error), id string) error {
	p, err := phase(ctx, id)
	if err != nil {
		return err
	}
	l := &log{c: o.c, structured: o.w.Structured != nil && *o.w.Structured}
	l.holds = l.structured && what == "plan" && o.c.Report.Human != nil
	defer func() {
		l.end()
		o.showPlan(ctx, l)
	}()
	for offset, n := 0, 0; ; n++ {
		if p.Log != "" {
			text, next, end, err := o.b.Log(ctx, p, offset)
			if err != nil {
				return err
			}
			l.write(text)
			if next > offset {
				offset, n = next, 0
			}
			if end {
				return nil
			}
			if len(text) > 0 {
				continue
			}
			if p.Over() && n > 2 {
				return nil // the log lacks its end mark
			}
		} else if p.Over() {
			return nil
		}
		if o.interrupted.Load() && !o.cancelled {
			return context.Canceled
		}
		if err := o.b.Pause(waits, n); err != nil && !o.cancelled {
			return err
		}
		if o.cancelled {
			if err := o.b.Pause(ctx, n); err != nil {
				return err
			}
		}
		if p, err = phase(ctx, id); err != nil {
			return err
		}
	}
}

// showPlan prints the plan in a log. If the service returns the plan, it has the form of a
// local plan. Otherwise showPlan prints the lines of the log.
func (o *operation) showPlan(ctx context.Context, l *log) {
	if len(l.held) == 0 {
		return
	}
	text, err := o.b.Redacted(ctx, o.run.PlanID)
	if err == nil && text != nil {
		mode := plan.Normal
		switch {
		case o.run.Destroy:
			mode = plan.Destroy
		case o.run.Refresh:
			mode = plan.RefreshOnly
		}
		f, err := planjson.ReadPlan(text, mode)
		if err == nil && (f.Plan.HasChanges() || !l.changes) {
			var b bytes.Buffer
			if view.Plan(&b, o.c.Report.Human.Style, f.Plan, f, false) == nil {
				o.c.Report.Human.Copy(b.String())
				return
			}
		}
	}
	for _, line := range l.held {
		o.c.Report.Human.Copy(line + "\n")
	}
}

// confirm asks the user to approve a plan, and confirms the run.
func (o *operation) confirm(ctx, waits context.Context) error {
	if !o.q.Approved {
		ok, err := o.approve(waits)
		if err != nil || o.failed.HasErrors() {
			return err
		}
		if !ok {
			o.failed = diag.Errorf(diag.CodeCloudRun, nil, "Apply discarded", "The plan was not approved, so the run was discarded. Nothing was changed.")
			return nil
		}
	}
	if err := o.b.Act(ctx, o.run.ID, "apply"); err != nil {
		return err
	}
	o.confirmed = true
	return nil
}

func (o *operation) approve(ctx context.Context) (bool, error) {
	in := fmt.Sprintf(" in workspace %q", o.workspace)
	q := prompt.Question{Title: "\nDo you want to perform these actions" + in + "?", Text: o.b.Host + " will perform the actions described above.\nOnly 'yes' will be accepted to approve."}
	switch o.q.Plan.Mode {
	case plan.Destroy:
		q.Title = "\nDo you really want to destroy all resources" + in + "?"
		q.Text = o.b.Host + " will destroy all your managed infrastructure, as shown above.\nThere is no undo. Only 'yes' will be accepted to confirm."
	case plan.RefreshOnly:
		q.Title = "\nWould you like to update the state" + in + " to reflect these detected changes?"
		q.Text = o.b.Host + " will write these changes to the state without modifying any real infrastructure.\nThere is no undo. Only 'yes' will be accepted to confirm."
	}
	answer, err := o.ask(ctx, q, diag.CodeCloudRun, "The run was not approved", "approve it with -auto-approve")
	return answer == "yes", err
}

func (o *operation) ask(ctx context.Context, q prompt.Question, code, summary, instead string) (string, error) {
	if !o.c.Prompt.May(o.q.Input) {
		o.failed = diag.Errorf(code, nil, summary, "Nobody can be asked: run the command where somebody can answer, or %s. The run was discarded.", instead)
		return "", nil
	}
	answer, err := o.c.Prompt.Ask(ctx, q)
	if err != nil && ctx.Err() == nil {
		o.failed = diag.Errorf(code, nil, summary, "There was no answer: %s. Run the command in a terminal, or %s. The run was discarded.", err, instead)
		return "", nil
	}
	return answer, err
}

// cost prints the estimate of the costs.
func (o *operation) cost(ctx context.Context) error {
	id := o.run.CostID
	if id == "" || o.shown[id] {
		return nil
	}
	e, err := o.b.CostEstimate(ctx, id)
	if err != nil {
		return err
	}
	switch e.Status {
	case "finished":
		sign := "+"
		if strings.HasPrefix(e.Delta, "-") {
			sign = "-"
		}
		o.say(fmt.Sprintf("\nCost Estimation:\n\nResources: %d of %d estimated\n           $%s/mo %s$%s\n", e.Matched, e.Resources, e.Proposed, sign, strings.TrimPrefix(e.Delta, "-")))
	case "errored":
		o.say("\nCost Estimation errored.\n" + e.Error + "\n")
	case "skipped_due_to_targeting", "canceled":
		o.say("\nNot available for this plan, because it was created with the -target option.\n")
	default:
		return nil
	}
	o.shown[id] = true
	return nil
}

// policies prints the results of policy checks, and asks whether to override a failed one.
func (o *operation) policies(ctx, waits context.Context) error {
	for _, id := range o.run.PolicyIDs {
		if o.shown[id] {
			continue
		}
		p, err := o.b.PolicyCheck(ctx, id)
		if err != nil {
			return err
		}
		if slices.Contains([]string{"pending", "queued", "unreachable"}, p.Status) {
			return nil
		}
		text, err := o.b.PolicyOutput(ctx, id)
		if err != nil {
			return err
		}
		o.shown[id] = true
		title := map[string]string{"workspace": "Workspace", "organization": "Organization"}[p.Scope]
		if title == "" {
			title = p.Scope
		}
		title = strings.TrimSpace(title + " Policy Check")
		o.say("\n" + title + ":\n\n" + strings.TrimRight(strings.Trim(string(text), "\x02\x03"), "\n") + "\n")
		switch p.Status {
		case "hard_failed":
			o.failed = diag.Errorf(diag.CodeCloudRun, nil, title+" hard failed", "A policy that cannot be overridden forbids this plan. What it says stands above.")
		case "errored":
			o.failed = diag.Errorf(diag.CodeCloudRun, nil, title+" errored", "The policies could not be checked. What went wrong stands above.")
		case "soft_failed":
			if err := o.override(ctx, waits, p, title); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

func (o *operation) override(ctx, waits context.Context, p *tfe.PolicyCheck, title string) error {
	may, known := p.Permissions["can-override"]
	switch {
	case o.q.Command == "plan":
		o.failed = diag.Errorf(diag.CodeCloudRun, nil, title+" soft failed", "A policy forbids this plan unless somebody overrides it, which \"%s apply\" asks for.", view.Program)
		return nil
	case !p.Actions.Overridable || known && !may:
		o.failed = diag.Errorf(diag.CodeCloudRun, nil, title+" soft failed", "A policy forbids this plan, and these credentials may not override it: ask somebody who may, or change the configuration.")
		return nil
	}
	answer, err := o.ask(waits, prompt.Question{Title: "\nDo you want to override the soft failed policy check?", Text: "Only 'override' will be accepted to override."}, diag.CodeCloudRun, title+" soft failed", "override the check at "+o.b.Address(o.w, o.run.ID))
	if err != nil || o.failed.HasErrors() {
		return err
	}
	if answer != "override" {
		o.failed = diag.Errorf(diag.CodeCloudRun, nil, title+" soft failed", "The policy check was not overridden, so the run was discarded. Nothing was changed.")
		return nil
	}
	return o.b.OverridePolicy(ctx, p.ID)
}

// stages prints the results of the run tasks of a stage.
func (o *operation) stages(ctx, waits context.Context, name string) error {
	for _, id := range o.run.StageIDs {
		if o.shown[id] {
			continue
		}
		s, err := o.b.Stage(ctx, id)
		if err != nil {
			return err
		}
		if s.Stage != name || slices.Contains([]string{"pending", "running", "canceled"}, s.Status) {
			continue
		}
		o.shown[id] = true
		o.say(describe(s))
		switch s.Status {
		case "failed", "errored":
			o.failed = diag.Errorf(diag.CodeCloudRun, nil, "Run tasks failed", "A task that is mandatory has failed. What it says stands above.")
		case "awaiting_override":
			if o.q.Command == "plan" || !s.Actions.Overridable {
				o.failed = diag.Errorf(diag.CodeCloudRun, nil, "Run tasks failed", "A task has failed, and the run goes on only if that is overridden.")
				return nil
			}
			answer, err := o.ask(waits, prompt.Question{Title: "\nDo you want to override the failed task?", Text: "Only 'override' will be accepted to override."}, diag.CodeCloudRun, "Run tasks failed", "override them at "+o.b.Address(o.w, o.run.ID))
			if err != nil || o.failed.HasErrors() {
				return err
			}
			if answer != "override" {
				o.failed = diag.Errorf(diag.CodeCloudRun, nil, "Run tasks failed", "The task was not overridden, so the run was discarded. Nothing was changed.")
				return nil
			}
			return o.b.OverrideStage(ctx, id)
		}
	}
	return nil
}

func describe(s *tfe.Stage) string {
	titles := map[string]string{"pre_plan": "Pre-plan Tasks", "post_plan": "Post-plan Tasks", "pre_apply": "Pre-apply Tasks"}
	passed := 0
	var lines []string
	for _, t := range s.Tasks {
		if t.Status == "passed" {
			passed++
		}
		line := "│ " + t.Name + " ⸺   " + strings.ToUpper(t.Status[:min(1, len(t.Status))]) + t.Status[min(1, len(t.Status)):]
		if t.Enforcement != "" && t.Status != "passed" {
			line += " (" + t.Enforcement + ")"
		}
		lines = append(lines, line)
		if t.Message != "" {
			lines = append(lines, "│ "+t.Message)
		}
		if t.URL != "" {
			lines = append(lines, "│ Details: "+t.URL)
		}
	}
	return fmt.Sprintf("\n%s:\n\nAll tasks completed! %d passed, %d failed\n\n%s\n", titles[s.Stage], passed, len(s.Tasks)-passed, strings.Join(lines, "\n"))
}

// end prints the result of a run, and returns the exit status.
func (o *operation) end(ctx context.Context) int {
	r := o.run
	switch r.Status {
	case "canceled", "force_canceled", "discarded":
		if o.cancelled {
			return o.fail(diag.Errorf(diag.CodeCloudRun, nil, "The run was "+strings.ReplaceAll(r.Status, "_", " "), "The run was interrupted, and the service has ended it. What it did until then stands in its log and in the state."))
		}
		return o.fail(diag.Errorf(diag.CodeCloudRun, nil, "The run was "+strings.ReplaceAll(r.Status, "_", " "), "Somebody has ended the run at the service: %s", o.b.Address(o.w, r.ID)))
	case "errored", "policy_soft_failed":
		return o.fail(diag.Errorf(diag.CodeCloudRun, nil, "The run failed", "The run ended with errors, which stand above and at %s", o.b.Address(o.w, r.ID)))
	}
	if o.q.Generate != "" {
		if ds := o.generated(ctx); ds.HasErrors() {
			return o.fail(ds)
		}
	}
	if o.q.Out != "" {
		if ds := save(o.c.Path(o.q.Out), bookmark{Format: bookmarkFormat, RunID: r.ID, Host: o.b.Host}); ds.HasErrors() {
			return o.fail(ds)
		}
		if r.HasChanges && !o.c.Report.Automated() {
			o.say("\nSaved the plan to: " + o.q.Out + "\n\nTo perform exactly these actions, run the following command to apply:\n    " + o.c.Report.Names.Program() + " apply \"" + o.q.Out + "\"\n")
		}
	}
	if o.q.Detailed && r.HasChanges {
		return 2
	}
	return 0
}

// generated writes the configuration that the run generated for imported objects.
func (o *operation) generated(ctx context.Context) diag.List {
	text, err := o.b.PlanJSON(ctx, o.run.PlanID)
	if err != nil {
		return o.at.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to read the generated configuration", "", err))
	}
	var made struct {
		Changes []struct {
			Change struct {
				Importing struct{ ID string }
				Generated string `json:"generated_config"`
			}
		} `json:"resource_changes"`
	}
	if text != nil {
		if err := json.Unmarshal(text, &made); err != nil {
			return diag.Errorf(diag.CodeBackendReadFailed, nil, "Failed to read the generated configuration", "The plan for programs that the service has is not what it should be: %s.", diag.Reason(err))
		}
	}
	p := &plan.Plan{}
	for _, c := range made.Changes {
		if g := c.Change.Generated; g != "" {
			p.Changes = append(p.Changes, &plan.Change{Import: &plan.Import{ID: c.Change.Importing.ID, GeneratedConfig: strings.TrimRight(g, "\n") + "\n"}})
		}
	}
	if len(p.Changes) == 0 {
		return nil
	}
	ds := engine.WriteGenerated(p, o.c.Path(o.q.Generate))
	if !ds.HasErrors() {
		o.say(view.Generated(o.c.Report.Names, o.q.Generate))
	}
	return ds
}
