package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/cli/project"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// observer tells what goes on in a run.
func (r *estateRun) observer(ctx context.Context, op estate.Op) estate.Observer {
	return estate.Observer{
		Started: func(u *estate.Unit) {
			r.shown.live.Start(u.Name, map[estate.Op]string{estate.Validate: "validating", estate.Init: "getting ready"}[op])
			if op == estate.Plan || op == estate.Apply {
				r.shown.live.Note(u.Name, "planning")
			}
		},
		Event: func(e engine.Event) {
			text := view.Text(e, op == estate.Apply)
			r.watch(e, text)
			if text != "" {
				if r.Report.Human != nil && !r.Report.Human.Concise && op == estate.Apply {
					r.line("stdout", e.Unit, text)
				}
			}
			r.streamOf(e.Unit).Event(e)
		},
		Planned: func(u *estate.Unit, e *engine.Engine, p *engine.Plan) {
			if op == estate.Plan {
				r.planned(ctx, u, e, p)
			} else {
				r.streamOf(u.Name).Plan(p)
				r.shown.live.Note(u.Name, "applying")
			}
		},
		Applied: r.applied,
		Hook: func(u *estate.Unit, name string) {
			if name != "" {
				name = "hook " + name
			}
			r.shown.live.Meanwhile(u.Name, name)
		},
		Ended: func(res *estate.Result) {
			r.ended(op, res)
			if r.name == "plan" {
				r.notePage(ctx, res)
			}
		},
		Again: func(u *estate.Unit, v retry.Decision, failed diag.List) {
			text := fmt.Sprintf("failed, and is tried again in %s, as the retry block %s says: %s", v.Sleep, v.Retry, failed[0].Summary)
			r.streamOf(u.Name).Log(text)
			r.line("warn", u.Name, text)
		},
		Log: func(u *estate.Unit, line string) {
			r.streamOf(u.Name).Log(line)
			if r.shown.live != nil {
				line = view.Foreign(line)
			}
			r.line("stdout", u.Name, line)
		},
	}
}

// watch has the live view show what is being done with an object.
func (r *estateRun) watch(e engine.Event, text string) {
	switch e.Kind {
	case event.RefreshDone, event.ReadDone, event.ImportDone, event.ApplyDone, event.ApplyError, event.OpenDone, event.OpenDeferred, event.RenewDone, event.CloseDone:
		r.shown.live.Over(e.Unit, e.Object.String(), text)
	default:
		if text != "" {
			r.shown.live.Doing(e.Unit, e.Object.String(), text)
		}
	}
}

// line prints a line of the log about a unit, if its level is shown: on standard error, as
// Terragrunt does. What commands print goes where they print it.
func (r *estateRun) line(level, unit, text string) {
	if lines := r.shown.log.Lines(level, unit, text); lines != "" {
		telemetry.Log(r.Report.Context, level, strings.TrimRight(text, "\n"), unit)
		if level == "stdout" {
			r.Report.Human.Say(lines)
		} else {
			r.Report.Human.Aside(lines)
		}
	}
}

// goLive shows on a terminal what runs, until the returned function is called.
func (r *estateRun) goLive(units int) (stop func()) {
	if r.Report.Human == nil || !r.Report.Redraws() || r.Report.Automated() {
		return func() {}
	}
	r.shown.live = view.NewLive(r.Report.Human.Out, r.Terminal.Width, r.Terminal.Height, r.Now, units)
	out := r.Report.Human.Redirect(r.shown.live)
	live := r.shown.live
	r.Interrupts.WhenKilled(func() {
		live.Hide()
		r.estate.Abandon()
	})
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ended by stop
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.shown.live.Refresh()
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
		live.Hide()
		r.Interrupts.WhenKilled(r.estate.Abandon)
		r.Report.Human.Redirect(out)
		r.shown.live = nil
	}
}

// streamOf is the stream with the unit on every line; nil without -json.
func (r *estateRun) streamOf(unit string) *view.Stream {
	return r.Report.Stream.For(unit, r.estate.Sources())
}

// applied tells what an apply of a unit came to.
func (r *estateRun) applied(res *estate.Result, s *state.State) {
	st := r.streamOf(res.Unit.Name)
	st.Summary(r.name, plan.Counts(res.Counts))
	if s != nil && r.name != "destroy" {
		st.Outputs(s.Outputs)
	}
}

// planned keeps the text of a plan while its provider schemas can be read.
func (r *estateRun) planned(ctx context.Context, u *estate.Unit, e *engine.Engine, p *engine.Plan) {
	r.streamOf(u.Name).Plan(p)
	sc := project.NewSchemas(ctx, e)
	var plain []view.Piece
	if r.saves() || r.f.HTML != "" {
		plain = view.Pieces(view.Style{}, p, sc, false)
		r.page.plan(u.Name, newSecrets(e.Root().Variables, p), plain, r.f.HTML != "")
	}
	if r.saves() {
		r.notePlan(u, e, p, sc, plain)
	}
	if r.Report.Human != nil && p.HasChanges() {
		if plain == nil || r.Report.Human.Style != (view.Style{}) || r.op.Reveal {
			plain = view.Pieces(r.Report.Human.Style, p, sc, r.op.Reveal)
		}
		r.shown.folds.add(u.Name, plain)
	}
}

// ended tells how a unit's turn ended.
func (r *estateRun) ended(op estate.Op, res *estate.Result) {
	ds := r.Report.Filter(res.Diags)
	r.shown.live.End(res.Unit.Name, res.Status == estate.Failed)
	if st := r.streamOf(res.Unit.Name); st != nil {
		if res.Set != nil {
			st = r.Report.Stream.For(res.Unit.Name, res.Set)
		}
		st.Tell(ds)
		for _, d := range res.Deferred {
			st.Typed(d.String(), "deferred", map[string]any{"address": d.Address, "reason": d.Reason, "at": rangeJSON(d.At), "waits_for": waitsJSON(d.Waits)})
		}
		st.Typed(res.Unit.Name+": "+string(res.Status), "unit_complete", map[string]any{
			"result": string(res.Status), "reason": res.Reason, "cause": res.Cause, "deferred": len(res.Deferred), "elapsed_seconds": res.Ended.Sub(res.Started).Seconds(),
			"changes": countsJSON(res.Counts),
		})
	}
	if r.Report.Human == nil {
		return
	}
	if len(ds) > 0 {
		r.tellUnit(res, ds)
	}
	r.line("info", res.Unit.Name, sentence(op, res, r.op.Destroy))
}

func rangeJSON(at *source.Range) any {
	if at == nil {
		return nil
	}
	return map[string]any{"filename": at.Filename, "line": at.Start.Line, "column": at.Start.Column}
}

func waitsJSON(all []estate.Wait) []map[string]any {
	out := []map[string]any{}
	for _, w := range all {
		out = append(out, map[string]any{"unit": w.Unit, "reference": w.Ref, "input": w.Input, "at": rangeJSON(&w.At)})
	}
	return out
}

// tellUnit prints messages of a unit with the text that they are about.
func (r *estateRun) tellUnit(res *estate.Result, ds diag.List) {
	ds = r.shown.repeats.drop(ds)
	named := make(diag.List, len(ds))
	for i, m := range ds {
		c := *m // units share messages about files that they share
		if c.Address = strings.TrimSpace(c.Address + " in unit " + res.Unit.Name); m.Address == "" {
			c.Address = "unit " + res.Unit.Name
		}
		named[i] = &c
	}
	inUnit, inModule := apart(res, named)
	r.Report.Human.With(r.Report.Printer(r.estate.Sources()), inUnit)
	r.Report.Human.With(r.Report.Printer(res.Set), inModule)
}

func (r *estateRun) tellEstate(ds diag.List) {
	if len(ds) == 0 {
		return
	}
	if r.name == "output" { // what others read from Stdout stays clean
		_ = r.Report.Printer(r.estate.Sources()).Print(r.Stderr, r.Report.Filter(ds))
		return
	}
	r.Report.AsideWith(r.estate.Sources(), ds)
}

func (r *estateRun) failEstate(e *estate.Estate, ds diag.List) int {
	r.estate = e
	r.tellEstate(ds)
	var results []*estate.Result // for those who wait for the report
	if e != nil {
		results = e.NotRun(ds)
	}
	if err := r.writeReports(results); err != nil {
		r.Report.Tell(diag.Errorf(nil, "Failed to write the report", "%s.", err))
	}
	return 1
}

// sentence tells in a line what came of a unit. destroying says that the run destroys
// what the units manage.
func sentence(op estate.Op, res *estate.Result, destroying bool) string {
	n := plan.Counts{Add: res.Counts.Add, Change: res.Counts.Change, Destroy: res.Counts.Destroy, Import: res.Counts.Import, Forget: res.Counts.Forget}
	text := ""
	switch {
	case res.Status == estate.EarlyExit:
		return "not run: " + earlyWhy(res)
	case res.Status == estate.Excluded:
		return "excluded: " + cmp.Or(res.Cause, "its exclude block says so")
	case res.Status == estate.Failed:
		return "failed: " + res.Cause
	case res.Reason == "error ignored":
		text := "failed, which the ignore block " + res.Cause + " takes for success"
		if res.Message != "" {
			text += ": " + res.Message
		}
		return text
	case op == estate.Validate:
		return "valid"
	case op == estate.Init:
		return "ready"
	case op == estate.Apply && (destroying || res.Unit.Removed):
		return destroyed(n)
	case op == estate.Apply:
		return fmt.Sprintf("applied: %d added, %d changed, %d destroyed", n.Add, n.Change, n.Destroy)
	case len(res.Deferred) == 1 && res.Deferred[0].Address == "":
		return "deferred: " + res.Deferred[0].String()
	case !res.Changes:
		return "no changes"
	case n != plan.Counts{} || len(res.Deferred) == 0:
		text = "plan: " + strings.TrimSuffix(view.Summary(n), ".")
	}
	if len(res.Deferred) > 0 {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d deferred", len(res.Deferred))
	}
	return text
}

// destroyed tells what a destroy did.
func destroyed(n plan.Counts) string {
	text := "nothing to destroy"
	switch {
	case n.Destroy == 1:
		text = "destroyed 1 object"
	case n.Destroy > 1:
		text = fmt.Sprintf("destroyed %d objects", n.Destroy)
	case n.Forget > 0:
		text = "destroyed nothing"
	}
	if n.Forget > 0 {
		text += fmt.Sprintf(", forgot %d", n.Forget)
	}
	return text
}

func earlyWhy(res *estate.Result) string {
	if res.Reason == "ancestor error" {
		if res.Blocker.Name == "" {
			return "another unit failed"
		}
		if res.Blocker.Kept {
			return "it needs " + res.Blocker.Name + ", which was not run"
		}
		return "it needs " + res.Blocker.Name + ", which failed"
	}
	return res.Cause
}
