// Package measure measures every command: it provides telemetry and profiles of the program
// itself.
package measure

import (
	"context"
	"crypto/rand"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/net/otlp"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/internal/settings/tracelog"
)

// # Telemetry
//
// The variables are those of Terragrunt. The command is one span, and the code that does the
// work begins child spans. Every started program receives the ID of the span in which it runs.

// telemetryPatience is the longest time that the end of a command waits for telemetry
// receivers.
const telemetryPatience = 3 * time.Second

// Measured runs a command and sends its telemetry to the configured receivers.
func Measured(c *command.Call, args []string, run func(context.Context) int) int {
	return measured(c, args, func() (*unitflags.Flags, string, error) {
		f, words, err := unitflags.Take(args, c.Env)
		if err != nil {
			return nil, "", err
		}
		return f, commandOf(c, words), nil
	}, run)
}

// Requested is Measured for a command whose flags are already set.
func Requested(c *command.Call, f *unitflags.Flags, run func(context.Context) int) int {
	return measured(c, nil, func() (*unitflags.Flags, string, error) { return f, c.Command.Name, nil }, run)
}

// measured is Measured for words whose flags read returns, with the name of the command's span.
func measured(c *command.Call, args []string, read func() (*unitflags.Flags, string, error), run func(context.Context) int) int {
	log, end := tracelog.Open(c.Env, c.Launch, c.Stderr, c.Now)
	defer end()
	if c.Log = log; log.Core() {
		run = logged(c, args, run)
	}
	if !wantsTelemetry(c) {
		if log.Core() {
			tracer := telemetry.New(telemetry.Options{Now: c.Now, Random: rand.Reader, Spans: log.Span})
			return run(tracer.With(c.Report.Context))
		}
		return run(c.Report.Context)
	}
	f, name, err := read()
	if err != nil {
		return run(c.Report.Context) // the command reports the error
	}
	env := c.Env
	if unitflags.PlainFolder(c) {
		env = slices.DeleteFunc(slices.Clone(env), ofTerragrunt)
	}
	settings, odd, err := otlp.Read(env, f.Tries("otel-logs"))
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeCLITelemetry, nil, "Invalid telemetry settings", "The variables that say where telemetry goes cannot be used: %s.", err))
	}
	if len(odd) > 0 {
		c.Report.WarnBeside(diag.Warnf(diag.CodeCLITelemetry, nil, "Unknown exporter of telemetry", "Some variables name what there is not:\n  - %s.", strings.Join(odd, ".\n  - ")))
	}
	if !settings.On() {
		return run(c.Report.Context)
	}
	dir := c.Path(f.Working)
	sink, err := otlp.Open(otlp.Options{
		Settings: settings, Env: c.Env, Dir: dir, Console: c.Stdout, Now: c.Now, Name: view.Program, Version: release.Version,
	})
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeCLITelemetry, nil, "Telemetry cannot be sent", "What is wanted cannot be made ready: %s.", err))
	}
	tracer := telemetry.New(telemetry.Options{
		Now: c.Now, Random: rand.Reader, Parent: settings.Parent, Redact: c.Report.Redactor.Text, Spans: both(sink.Spans(), log), Logs: sink.Logs(), Measures: sink.Measures(),
	})
	ctx, span := telemetry.Start(tracer.With(c.Report.Context), name)
	code := spanned(ctx, c, span.Text("dir", dir), run)
	soon, end := context.WithTimeout(context.WithoutCancel(c.Report.Context), telemetryPatience)
	defer end()
	if err := sink.Close(soon); err != nil {
		c.Report.WarnBeside(diag.Warnf(diag.CodeCLITelemetry, nil, "Telemetry was not delivered", "The command itself is not touched by it:\n  - %s.", strings.ReplaceAll(diag.Reason(err), "\n", ".\n  - ")))
	}
	return code
}

// logged adds log lines at the start and the end of a command. They contain only names of
// flags, since other words may be secrets.
func logged(c *command.Call, args []string, run func(context.Context) int) func(context.Context) int {
	return func(ctx context.Context) int {
		began := c.Now()
		c.Log.Printf(tracelog.Info, "%s version: %s, %s %s/%s", view.Product, release.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		flagName := regexp.MustCompile(`^--?[a-z][a-z-]{0,40}$`) // values may begin with a dash too
		var flags []string
		for _, a := range args {
			if name, _, _ := strings.Cut(a, "="); flagName.MatchString(name) {
				flags = append(flags, name)
			}
		}
		c.Log.Printf(tracelog.Info, "command: %s, with %d words, of which flags: %s", c.Command.Name, len(args), strings.Join(flags, " "))
		c.Log.Printf(tracelog.Debug, "working directory: %s", c.Dir)
		code := run(ctx)
		c.Log.Printf(tracelog.Info, "the command ended with status %d after %s", code, c.Now().Sub(began).Round(time.Millisecond))
		return code
	}
}

// both returns a function that passes spans to receivers and to the log.
func both(spans func(*telemetry.Span), log *tracelog.Log) func(*telemetry.Span) {
	if !log.Core() {
		return spans
	}
	return func(s *telemetry.Span) {
		log.Span(s)
		if spans != nil {
			spans(s)
		}
	}
}

// commandOf returns the name of the command. For run, it returns the name of the command that
// run runs.
func commandOf(c *command.Call, words []string) string {
	if c.Command.Name == "run" {
		if cmd, _, ok := c.Table.Find(words); ok {
			return cmd.Name
		}
	}
	return c.Command.Name
}

// spanned runs a command in its span. Each started program receives the ID of the span in its
// context. A program that several units share receives the ID of this span.
func spanned(ctx context.Context, c *command.Call, span *telemetry.Span, run func(context.Context) int) int {
	c.Run = telemetry.Programs(c.Run)
	if span.Traced() {
		c.Env = c.Env.With(telemetry.Variable + "=" + span.Parent())
	}
	c.Report.Context = ctx
	code := run(ctx)
	units.Ended(span, code)
	span.End()
	return code
}

// wantsTelemetry reports whether a variable requests telemetry.
func wantsTelemetry(c *command.Call) bool {
	return c.Env.Get(otlp.TracesExporter) == "otlp" || !unitflags.PlainFolder(c) && slices.ContainsFunc(c.Env, ofTerragrunt)
}

// ofTerragrunt reports whether an entry of the environment is a variable of Terragrunt about
// telemetry.
func ofTerragrunt(v string) bool {
	return strings.HasPrefix(v, "TG_TELEMETRY_") || strings.HasPrefix(v, unitflags.OldTelemetry)
}
