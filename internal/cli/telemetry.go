package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/internal/telemetry/otlp"
)

// # Telemetry
//
// The variables are those of Terragrunt. The whole command is one span, whose children
// are begun by those who do the work; every program that is started is told of the
// span that it runs in.

// telemetryPatience is how long the end of a command waits at most for receivers.
const telemetryPatience = 3 * time.Second

// measured runs a command and tells those who want telemetry what it did.
func (s *session) measured(args []string, run func(context.Context) int) int {
	if !s.wantsTelemetry() {
		return run(s.ctx)
	}
	f, words, err := takeUnitFlags(args, s.Env)
	if err != nil {
		return run(s.ctx) // the command tells it
	}
	settings, odd, err := otlp.Read(s.Env, f.tries("otel-logs"))
	if err != nil {
		return s.fail(diag.Errorf(nil, "Invalid telemetry settings", "The variables that say where telemetry goes cannot be used: %s.", err))
	}
	if len(odd) > 0 {
		s.warnBeside(diag.Warnf(nil, "Unknown exporter of telemetry", "Some variables name what there is not:\n  - %s.", strings.Join(odd, ".\n  - ")))
	}
	if !settings.On() {
		return run(s.ctx)
	}
	at := s.System
	if f.working != "" {
		at = at.In(f.working)
	}
	sink, err := otlp.Open(otlp.Options{
		Settings: settings, Env: s.Env, Dir: at.Dir, Console: s.Stdout, Now: s.Now, Name: view.Program, Version: Version,
	})
	if err != nil {
		return s.fail(diag.Errorf(nil, "Telemetry cannot be sent", "What is wanted cannot be made ready: %s.", err))
	}
	tracer := telemetry.New(telemetry.Options{
		Now: s.Now, Random: rand.Reader, Parent: settings.Parent, Spans: sink.Spans(), Logs: sink.Logs(), Measures: sink.Measures(),
	})
	ctx, span := telemetry.Start(tracer.With(s.ctx), s.commandOf(words))
	code := s.spanned(ctx, span.Text("dir", at.Dir), run)
	soon, end := context.WithTimeout(context.WithoutCancel(s.ctx), telemetryPatience)
	defer end()
	if err := sink.Close(soon); err != nil {
		s.warnBeside(diag.Warnf(nil, "Telemetry was not delivered", "The command itself is not touched by it:\n  - %s.", strings.ReplaceAll(err.Error(), "\n", ".\n  - ")))
	}
	return code
}

// commandOf is the name of the command, that of run being what it runs.
func (s *session) commandOf(words []string) string {
	if s.command == "run" {
		if c, _, ok := lookup(words); ok {
			return c.name
		}
	}
	return s.command
}

// spanned runs a command in its span. Programs are told of theirs, and those that run
// for several units of this one.
func (s *session) spanned(ctx context.Context, span *telemetry.Span, run func(context.Context) int) int {
	around := *s.System
	around.Run = telemetry.Programs(s.Run)
	if span.Traced() {
		around.Env = s.Env.With(telemetry.Variable + "=" + span.Parent())
	}
	s.System, s.ctx = &around, ctx
	code := run(ctx)
	ended(span, code)
	span.End()
	return code
}

// oldTelemetry is how the variables began before.
const oldTelemetry = "TERRAGRUNT_TELEMETRY_"

// wantsTelemetry reports whether a variable asks for telemetry.
func (s *session) wantsTelemetry() bool {
	return !s.plainFolder() && slices.ContainsFunc(s.Env, func(v string) bool {
		return strings.HasPrefix(v, "TG_TELEMETRY_") || strings.HasPrefix(v, oldTelemetry)
	})
}

// phase runs what Terragrunt has a program do in the folder of a unit, in a span as
// that of a program.
func (s *session) phase(ctx context.Context, what, dir string, run func(context.Context) int) int {
	ctx, span := telemetry.Start(ctx, "run_"+view.Program)
	if span == nil {
		return run(ctx)
	}
	defer span.End()
	span.Text("binary", view.Program).Text("args", "["+what+"]").Text("dir", dir)
	code := run(ctx)
	ended(span, code)
	return code
}

// ended says what a command ended with. The status 2 tells of changes.
func ended(span *telemetry.Span, code int) {
	span.OutcomeCount("exit_code", code)
	if code != 0 && code != 2 {
		span.Fail("exit", fmt.Sprintf("the command ended with the status %d", code))
	}
}

// open opens the units that a command is about.
func (s *session) open(ctx context.Context, o estate.Options) (*estate.Estate, diag.List) {
	name := "runner_pool_discovery"
	if s.command == "find" || s.command == "list" {
		name = s.command + "_discover"
	}
	ctx, span := telemetry.Start(ctx, name)
	span.Text("working_dir", o.Root).Text("terraform_command", o.Request.Command)
	e, ds := estate.Open(ctx, o)
	span.OutcomeCount("component_count", len(e.Units))
	span.Messages(ds)
	span.End()
	return e, ds
}

// logged hands messages that are told to those who want logs.
func (s *session) logged(ds diag.List) {
	if s.ctx == nil || !telemetry.On(s.ctx) {
		return
	}
	for _, m := range ds {
		level := "warn"
		if m.Severity == diag.Error {
			level = "error"
		}
		telemetry.Log(s.ctx, level, strings.TrimSpace(m.Summary+"\n\n"+m.Detail), "")
	}
}

// warnBeside tells warnings where they do not stand among what a program reads.
func (s *session) warnBeside(ds diag.List) {
	if s.human == nil {
		s.tell(ds)
		return
	}
	s.aside(ds)
}
