package run

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// # Spans
//
// Names and attributes of spans are those of Terragrunt where both do the same. Terragrunt runs
// init, plan and apply as programs; the spans of these have the attributes of such a program here
// too.

// phase begins the span of a step that the engine runs for a unit, such as "init" or "validate".
func (s *Site) phase(ctx context.Context, what string) (context.Context, *telemetry.Span) {
	ctx, span := telemetry.Start(ctx, "run_terrace")
	if span != nil {
		span.Text("binary", "terrace").Text("args", "["+what+"]").Text("dir", s.dir.Path)
	}
	return ctx, span
}

// span begins the same span as phase and returns a function that ends it, as workdir.Steps
// requires.
func (s *Site) span(ctx context.Context, what string) (context.Context, func(diag.List)) {
	ctx, span := s.phase(ctx, what)
	return ctx, func(ds diag.List) { ended(span, ds) }
}

// over ends a span and adds the messages of the step.
func over(s *telemetry.Span, ds diag.List) {
	s.Messages(ds)
	s.End()
}

// ended ends the span of a step that Terragrunt runs as a program. It adds the exit status: 1 if
// ds has errors, otherwise 0.
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

// about adds the attributes of the unit to the span.
func about(s *telemetry.Span, u *discovery.Unit) *telemetry.Span {
	if s == nil || u.Unit == nil {
		return s
	}
	return s.Text("unit_path", u.Dir).Text("unit_name", u.Name)
}

// trace begins the span of a unit's turn.
func (x *execution) trace(ctx context.Context, u *discovery.Unit) (context.Context, *telemetry.Span) {
	ctx, s := telemetry.Start(ctx, "runner_pool_task")
	about(s, u).Text("terragrunt_config_path", u.Path).Text("working_dir", u.Dir).Text("terraform_command", x.Command)
	return ctx, s
}

// traced ends the span of a unit's turn.
func traced(s *telemetry.Span, res *report.Result) {
	if s == nil {
		return
	}
	s.Outcome("outcome", string(res.Status))
	s.OutcomeCount("exit_code", res.Code)
	s.Messages(res.Diags)
	switch {
	case res.Status == report.EarlyExit:
		s.Fail("early exit", res.Reason)
	case res.Status == report.Failed && !res.Diags.HasErrors():
		s.Fail("error", res.Reason)
	}
	s.End()
}

// traceRun begins the span of a run over all units, and returns the function that ends it.
func (x *execution) traceRun(ctx context.Context, workers int, results []*report.Result) (context.Context, func()) {
	ctx, s := telemetry.Start(ctx, "runner_pool_controller")
	if s == nil {
		return ctx, func() {}
	}
	s.Count("total_tasks", len(results)).Count("concurrency", workers).Flag("fail_fast", x.o.Queue.FailFast).Flag("ignore_dependency_order", x.o.Queue.IgnoreOrder)
	return ctx, func() {
		n := map[report.Status]int{}
		for _, res := range results {
			if res != nil { // nil: the scheduler did not run the unit in this process
				n[res.Status]++
			}
		}
		s.OutcomeCount("tasks_succeeded", n[report.Succeeded])
		s.OutcomeCount("tasks_failed", n[report.Failed])
		s.OutcomeCount("tasks_early_exit", n[report.EarlyExit])
		if n[report.Failed]+n[report.EarlyExit] > 0 {
			s.Fail("error", "not all units succeeded")
		}
		s.End()
	}
}
