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
// Their names and attributes are Terragrunt's where it does the same. What it has a
// program do (init, plan, apply) is a span as that of a program here too.

// phase begins the span of what the engine does for a unit.
func (s *Site) phase(ctx context.Context, what string) (context.Context, *telemetry.Span) {
	ctx, span := telemetry.Start(ctx, "run_terrace")
	if span != nil {
		span.Text("binary", "terrace").Text("args", "["+what+"]").Text("dir", s.dir.Path)
	}
	return ctx, span
}

// span is phase with how it ends, as operation.Steps have it.
func (s *Site) span(ctx context.Context, what string) (context.Context, func(diag.List)) {
	ctx, span := s.phase(ctx, what)
	return ctx, func(ds diag.List) { ended(span, ds) }
}

// over ends the span of something that reported messages.
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

// traceRun begins the span of a run over all units, and returns how to end it.
func (x *execution) traceRun(ctx context.Context, workers int, results []*report.Result) (context.Context, func()) {
	ctx, s := telemetry.Start(ctx, "runner_pool_controller")
	if s == nil {
		return ctx, func() {}
	}
	s.Count("total_tasks", len(results)).Count("concurrency", workers).Flag("fail_fast", x.o.Queue.FailFast).Flag("ignore_dependency_order", x.o.Queue.IgnoreOrder)
	return ctx, func() {
		n := map[report.Status]int{}
		for _, res := range results {
			if res != nil { // else the scheduler gave the unit no turn here
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
