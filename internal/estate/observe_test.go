package estate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/state"
)

// An observer is told which hook runs and when it has ended. It receives the state after a
// successful apply only.
func TestObserver(t *testing.T) {
	var reported []string
	o := options(tree(t, `
-- a/terragrunt.hcl --
terraform {
  before_hook "tidy" {
    commands = ["apply"]
    execute  = ["tidy"]
  }
}
-- a/main.tf --
resource "terraform_data" "x" {}
output "o" { value = "O" }
-- b/terragrunt.hcl --
dependencies { paths = ["../a"] }
-- b/main.tf --
resource "terraform_data" "x" {
  lifecycle {
    postcondition {
      condition     = self.id == ""
      error_message = "It has an id."
    }
  }
}
`), "apply")
	o.Machine.Run = func(_ context.Context, c sys.Command) error {
		reported = append(reported, "runs "+c.Path)
		return nil
	}
	results := open(t, o).Run(t.Context(), estate.RunOptions{Op: estate.Apply, Limits: estate.Limits{Units: 1}, Observe: estate.Watch{
		OnHook: func(u *estate.Unit, name string) { reported = append(reported, u.Name+" hook "+name) },
		OnApplied: func(r *estate.Result, s *state.State) {
			reported = append(reported, fmt.Sprint(r.Unit.Name, " applied, ", r.Counts.Add, " added, ", len(s.Outputs), " output"))
		},
		OnEnded: func(r *estate.Result) { reported = append(reported, r.Unit.Name+" "+string(r.Status)) },
	}})
	want := "a hook tidy\nruns tidy\na hook \na applied, 1 added, 1 output\na succeeded\nb failed"
	if d := cmp.Diff(want, strings.Join(reported, "\n")); d != "" {
		t.Error(d, statuses(results))
	}
}

// apartWatch receives the standard error of hooks apart.
type apartWatch struct {
	estate.Observer
	onLogErr func(u *estate.Unit, line string)
}

func (w apartWatch) LogErr(u *estate.Unit, line string) { w.onLogErr(u, line) }

// An observer receives the lines of a hook while it runs, in their order, or the two streams
// separately. It does not receive suppressed output.
func TestObserverOfHookLines(t *testing.T) {
	for _, apart := range []bool{false, true} {
		var reported []string
		o := options(tree(t, `
-- a/terragrunt.hcl --
terraform {
  before_hook "loud" {
    commands = ["plan"]
    execute  = ["loud"]
  }
  before_hook "quiet" {
    commands        = ["plan"]
    execute         = ["quiet"]
    suppress_stdout = true
  }
}
-- a/main.tf --
`), "plan")
		o.Machine.Run = func(_ context.Context, c sys.Command) error {
			fmt.Fprint(c.Stdout, c.Path, " out\n")
			fmt.Fprint(c.Stderr, c.Path, " err\n")
			reported = append(reported, "still runs")
			return nil
		}
		var watch estate.Observer = estate.Watch{OnLog: func(u *estate.Unit, line string) { reported = append(reported, u.Name+": "+line) }}
		want := []string{"a: loud out", "a: loud err", "still runs", "a: quiet err", "still runs"}
		if apart {
			watch = apartWatch{watch, func(u *estate.Unit, line string) { reported = append(reported, u.Name+"! "+line) }}
			want[1], want[3] = "a! loud err", "a! quiet err"
		}
		results := open(t, o).Run(t.Context(), estate.RunOptions{Op: estate.Plan, Observe: watch})
		if d := cmp.Diff(want, reported); d != "" {
			t.Error(d, statuses(results))
		}
	}
}

// noTurns is a scheduler that runs no unit in this process, as if workers ran all of them.
type noTurns struct{}

func (noTurns) Run(context.Context, []schedule.Task, schedule.Rules, schedule.Work) {}

// A run whose units all run elsewhere ends its spans like any other run.
func TestSpansOfUnitsWithoutTurn(t *testing.T) {
	o := options(tree(t, `
-- a/terragrunt.hcl --
-- a/main.tf --
`), "plan")
	var spans []string
	tracer := telemetry.New(telemetry.Options{
		Now: time.Now, Random: strings.NewReader(strings.Repeat("r", 1000)), Spans: func(s *telemetry.Span) { spans = append(spans, s.Name) },
	})
	open(t, o).Run(tracer.With(t.Context()), estate.RunOptions{Op: estate.Plan, Scheduler: noTurns{}})
	if !slices.Contains(spans, "runner_pool_controller") {
		t.Errorf("the span of the run did not end: %q", spans)
	}
}
