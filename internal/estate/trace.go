package estate

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Spans
//
// Their names and attributes are Terragrunt's where it does the same. What it has a
// program do (init, plan, apply) is a span as that of a program here too.

// phase begins the span of what the engine does for a unit.
func (w *work) phase(ctx context.Context, what string) (context.Context, *telemetry.Span) {
	ctx, s := telemetry.Start(ctx, "run_terrace")
	if s != nil {
		s.Text("binary", "terrace").Text("args", "["+what+"]").Text("dir", w.u.place.dir)
	}
	return ctx, s
}

// over ends the span of something that told messages.
func over(s *telemetry.Span, ds diag.List) {
	s.Messages(ds)
	s.End()
}

// ended ends the span of what is a program elsewhere, which has an exit status.
func ended(s *telemetry.Span, ds diag.List) {
	if s == nil {
		return
	}
	code := 0
	if ds.HasErrors() {
		code = 1
	}
	s.OutcomeCount("exit_code", code)
	over(s, ds)
}

// about says which unit a span is about.
func (u *Unit) about(s *telemetry.Span) *telemetry.Span {
	if s == nil || u.Unit == nil {
		return s
	}
	return s.Text("unit_path", u.Dir).Text("unit_name", u.Name)
}

// trace begins the span of a unit's turn.
func (r *Run) trace(ctx context.Context, u *Unit) (context.Context, *telemetry.Span) {
	ctx, s := telemetry.Start(ctx, "runner_pool_task")
	u.about(s).Text("terragrunt_config_path", u.Path).Text("working_dir", u.Dir).Text("terraform_command", r.e.o.Request.Command)
	return ctx, s
}

// traced ends the span of a unit's turn.
func traced(s *telemetry.Span, res *Result) {
	if s == nil {
		return
	}
	s.Outcome("outcome", string(res.Status))
	s.OutcomeCount("exit_code", res.Code)
	s.Messages(res.Diags)
	switch {
	case res.Status == EarlyExit:
		s.Fail("early exit", res.Reason)
	case res.Status == Failed && !res.Diags.HasErrors():
		s.Fail("error", res.Reason)
	}
	s.End()
}

// traceRun begins the span of a run over all units, and returns how to end it.
func (r *Run) traceRun(ctx context.Context, workers int) (context.Context, func()) {
	ctx, s := telemetry.Start(ctx, "runner_pool_controller")
	if s == nil {
		return ctx, func() {}
	}
	s.Count("total_tasks", len(r.e.Units)).Count("concurrency", workers).Flag("fail_fast", r.o.Queue.FailFast).Flag("ignore_dependency_order", r.o.Queue.IgnoreOrder)
	return ctx, func() {
		n := map[Status]int{}
		for _, res := range r.results {
			n[res.Status]++
		}
		s.OutcomeCount("tasks_succeeded", n[Succeeded])
		s.OutcomeCount("tasks_failed", n[Failed])
		s.OutcomeCount("tasks_early_exit", n[EarlyExit])
		if n[Failed]+n[EarlyExit] > 0 {
			s.Fail("error", "not all units succeeded")
		}
		s.End()
	}
}

// outputs serves the unit language with the outputs of a dependency.
func (e *Estate) outputs(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	_, s := telemetry.Start(t.Context(), "dependency_output_fetch")
	if s == nil {
		return e.readOutputs(t, target, at)
	}
	s.Text("target", target).Text("caller", at.Filename)
	strategy := "state"
	if u := e.byID[target]; e.run != nil && u != nil {
		if _, ok := e.run.outputsOf(u); ok {
			strategy = "memory"
		}
	}
	s.Outcome("strategy", strategy)
	v, ok, ds := e.readOutputs(t, target, at)
	over(s, ds)
	return v, ok, ds
}
