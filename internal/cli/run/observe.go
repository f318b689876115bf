package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// A reporter reports the progress of a run.
type reporter struct {
	*command.Call
	command         string // plan, apply, destroy, validate or init
	op              estate.Op
	destroy, reveal bool
	causes          bool // the text of plans names causes
	unasked         bool // an apply in rounds prints the plan of each unit, because it asks no question
	estate          *estate.Estate
	shown           *display
	page            *planpage.Pager
	kept            *savedplan.Files
	ruled           *ruled
}

// reporter returns a reporter for an operation of the run.
func (r *estateRun) reporter(op estate.Op) *reporter {
	return &reporter{Call: r.Call, command: r.name, op: op, destroy: r.op.Plan.Mode == plan.Destroy, reveal: r.op.Reveal, causes: r.op.Plan.Causes, unasked: r.op.Rounds > 0 && r.saved == nil && r.approved(), estate: r.estate, shown: &r.shown, page: &r.page, kept: r.kept, ruled: &r.ruled}
}

// observer returns the observer that reports the progress of the run.
func (t *reporter) observer(ctx context.Context) estate.Observer {
	return runObserver{reporter: t, ctx: ctx}
}

// runObserver reports the progress of a run.
type runObserver struct {
	estate.Silent
	*reporter
	ctx context.Context
}

func (t runObserver) Started(u *estate.Unit) {
	t.shown.live.Start(u.Name, map[estate.Op]string{estate.Validate: "validating", estate.Init: "getting ready"}[t.op])
	if t.op == estate.Plan || t.op == estate.Apply {
		t.shown.live.Note(u.Name, "planning")
	}
}

func (t runObserver) Event(e event.Event) {
	text := view.Text(e, t.op == estate.Apply)
	t.watch(e, text)
	if text != "" {
		if t.Report.Human != nil && !t.Report.Human.Concise && t.op == estate.Apply {
			t.line("stdout", e.Unit, text)
		}
	}
	t.streamOf(e.Unit).Event(e)
}

func (t runObserver) Planned(u *estate.Unit, e *engine.Engine, p *plan.Plan) {
	if t.op == estate.Plan {
		t.ruled.take(u, p)
		t.planned(t.ctx, u, e, p)
	} else {
		t.streamOf(u.Name).Plan(p)
		t.show(t.ctx, u, e, p)
		t.shown.live.Note(u.Name, "applying")
	}
}

// Applied writes the result of a unit's apply to the stream.
func (t runObserver) Applied(res *estate.Result, s *state.State) {
	st := t.streamOf(res.Unit.Name)
	st.Summary(t.command, plan.Counts(res.Counts))
	if s != nil && t.command != "destroy" {
		st.Outputs(s.Outputs)
	}
}

func (t runObserver) Hook(u *estate.Unit, name string) {
	if name != "" {
		name = "hook " + name
	}
	t.shown.live.Meanwhile(u.Name, name)
}

func (t runObserver) Ended(res *estate.Result) {
	t.ended(res)
	if t.command == "plan" {
		t.page.Note(t.ctx, t.estate, res)
	}
}

func (t runObserver) Again(u *estate.Unit, v retry.Decision, failed diag.List) {
	text := fmt.Sprintf("failed, and is tried again in %s, as the %s says: %s", v.Sleep, v.Rule(), failed[0].Summary)
	t.streamOf(u.Name).Log(text)
	t.line("warn", u.Name, text)
}

func (t runObserver) Log(u *estate.Unit, line string) {
	line = t.Report.Redactor.Text(line)
	t.streamOf(u.Name).Log(line)
	if t.shown.live != nil {
		line = view.Foreign(line)
	}
	t.line("stdout", u.Name, line)
}

// watch updates the activity of an object in the live view.
func (t *reporter) watch(e event.Event, text string) {
	switch e.Kind {
	case event.RefreshDone, event.ReadDone, event.ImportDone, event.ApplyDone, event.ApplyError, event.OpenDone, event.OpenDeferred, event.RenewDone, event.CloseDone:
		t.shown.live.Over(e.Unit, e.Object.String(), text)
	default:
		if text != "" {
			t.shown.live.Activity(e.Unit, e.Object.String(), text)
		}
	}
}

// line prints a log line about a unit if the log level includes it. Lines of level "stdout" go
// to Stdout, and all others to Stderr, as in Terragrunt.
func (t *reporter) line(level, unit, text string) {
	text = t.Report.Redactor.Text(text)
	if lines := t.shown.log.Lines(level, unit, text); lines != "" {
		telemetry.Log(t.Report.Context, level, strings.TrimRight(text, "\n"), unit)
		if level == "stdout" {
			t.Report.Human.Copy(lines)
		} else {
			t.Report.Human.AboveStatus(lines)
		}
	}
}

// goLive shows the live view on a terminal until the caller calls stop.
func (t *reporter) goLive(units int) (stop func()) {
	if t.Report.Human == nil || !t.Report.Redraws() || t.Report.Automated() {
		return func() {}
	}
	t.shown.live = view.NewLive(t.Report.Human.Out, t.System.Terminal.Width, t.System.Terminal.Height, t.Now, units)
	out := t.Report.Human.Redirect(t.shown.live)
	live := t.shown.live
	t.Interrupts.WhenKilled(func() {
		live.Hide()
		t.estate.Abandon()
	})
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // stop ends it
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.shown.live.Refresh()
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
		live.Hide()
		t.Interrupts.WhenKilled(t.estate.Abandon)
		t.Report.Human.Redirect(out)
		t.shown.live = nil
	}
}

// streamOf returns the stream whose lines contain the unit. It is nil without -json.
func (t *reporter) streamOf(unit string) *view.Stream {
	return t.Report.Stream.For(unit, t.estate.Sources())
}

// planned renders a plan now, because provider schemas are not available later.
func (t *reporter) planned(ctx context.Context, u *estate.Unit, e *engine.Engine, p *plan.Plan) {
	t.streamOf(u.Name).Plan(p)
	sc := project.NewSchemas(ctx, e)
	var plain []view.Piece
	if t.kept.Wanted() || t.page.Writes() {
		plain = view.Pieces(view.Style{Names: t.Report.Names}, p, sc, false)
		t.page.Plan(u.Name, e.Root().Variables, p, plain)
	}
	if t.kept.Wanted() {
		t.kept.Plan(u, e, p, sc, plain)
	}
	if t.Report.Human != nil && p.HasChanges() {
		if plain == nil || t.Report.Human.Style != (view.Style{Names: t.Report.Names}) || t.reveal {
			plain = view.Pieces(t.Report.Human.Style, p, sc, t.reveal)
		}
		t.shown.summary.Folds.Add(u.Name, view.ShowCauses(t.Report.Human.Style, plain, t.causes))
	}
	if t.causes {
		t.shown.summary.Folds.AddOrigins(u.Name, view.AllOrigins(p))
	}
}

// show prints the plan of one round of a unit before it is applied, if nobody is asked.
func (t *reporter) show(ctx context.Context, u *estate.Unit, e *engine.Engine, p *plan.Plan) {
	h := t.Report.Human
	if h == nil || !t.unasked || !p.HasChanges() {
		return
	}
	pieces := view.Pieces(h.Style, p, project.NewSchemas(ctx, e), t.reveal)
	changes := unitview.NewFolds()
	changes.Add(u.Name, view.ShowCauses(h.Style, pieces, t.causes))
	var text strings.Builder // printed at once, because other units print at the same time
	changes.Write(&view.Human{Out: &text, Style: h.Style}, []string{u.Name}, 0)
	h.Copy(text.String())
}

// ended reports the result of a unit.
func (t *reporter) ended(res *estate.Result) {
	ds := t.Report.Filter(res.Diags)
	t.shown.live.End(res.Unit.Name, res.Status == estate.Failed)
	if st := t.streamOf(res.Unit.Name); st != nil {
		if res.Set != nil {
			st = t.Report.Stream.For(res.Unit.Name, res.Set)
		}
		st.Tell(ds)
		for _, d := range res.Deferred {
			st.Typed(d.String(), "deferred", map[string]any{"address": d.Address, "reason": d.Reason, "at": unitview.PlaceJSON(d.At), "waits_for": unitview.WaitsJSON(d)})
		}
		st.Typed(res.Unit.Name+": "+string(res.Status), "unit_complete", map[string]any{
			"result": string(res.Status), "reason": res.Reason, "cause": res.Cause, "deferred": len(res.Deferred), "elapsed_seconds": res.Ended.Sub(res.Started).Seconds(),
			"changes": unitview.CountsJSON(res.Counts),
		})
	}
	if t.Report.Human == nil {
		return
	}
	if len(ds) > 0 {
		t.tellUnit(res, ds)
	}
	text := unitview.Sentence(t.op, res, t.destroy)
	if skip, instead := t.shown.skips(t.op, res); skip {
		if t.shown.log.Shows("info") {
			t.Report.Human.AboveStatus(instead)
			telemetry.Log(t.Report.Context, "info", t.Report.Redactor.Text(text), res.Unit.Name)
		}
		return
	}
	t.line("info", res.Unit.Name, text)
}

// tellUnit prints messages of a unit, with the source text that they refer to.
func (t *reporter) tellUnit(res *estate.Result, ds diag.List) {
	inUnit, inModule := named(res, t.first(res, ds))
	t.Report.Human.With(t.Report.Printer(t.estate.Sources()), inUnit)
	t.Report.Human.With(t.Report.Printer(res.Set), inModule)
}

// first returns the messages of a unit without the warnings that another unit reported before.
func (t *reporter) first(res *estate.Result, ds diag.List) diag.List {
	if t.Report.Options.ConsolidateWarnings {
		return t.shown.repeats.drop(res.Unit.Called(), ds)
	}
	return ds
}

// printed returns a message of a unit as tellUnit prints it.
func (t *reporter) printed(res *estate.Result, m *diag.Message) string {
	var b strings.Builder
	inUnit, inModule := named(res, diag.List{m})
	_ = t.Report.Printer(t.estate.Sources()).Print(&b, inUnit) // a write to a Builder cannot fail
	_ = t.Report.Printer(res.Set).Print(&b, inModule)
	return b.String()
}

// named returns messages with the name of the unit in their addresses: those about the unit's
// files, and those about its module's files.
func named(res *estate.Result, ds diag.List) (inUnit, inModule diag.List) {
	named := make(diag.List, len(ds))
	for i, m := range ds {
		c := *m // units share messages about shared files, so copy them
		if c.Address = strings.TrimSpace(c.Address + " in unit " + res.Unit.Called()); m.Address == "" {
			c.Address = "unit " + res.Unit.Called()
		}
		named[i] = &c
	}
	return unitview.SplitByOrigin(res, named)
}

func (r *estateRun) tellEstate(ds diag.List) {
	if len(ds) == 0 {
		return
	}
	if r.name == "output" { // Stdout contains only the outputs, for other programs
		_ = r.Report.Printer(r.estate.Sources()).Print(r.Stderr, r.Report.Filter(ds))
		return
	}
	r.Report.AsideWith(r.estate.Sources(), ds)
}

func (r *estateRun) failEstate(e *estate.Estate, ds diag.List) int {
	r.estate = e
	r.tellEstate(ds)
	var results []*estate.Result // for the report file
	if e != nil {
		results = e.NotRun(ds)
	}
	if more := r.page.Failed(r.about(), e, ds); more.HasErrors() {
		r.Report.Tell(more)
	}
	if err := r.writeReports(results); err != nil {
		r.Report.Tell(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the report", "%s.", err))
	}
	return 1
}
