package planning

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
)

// Drift declares the command drift, which is a refresh-only plan.
func Drift() command.Command {
	return command.Command{
		Name: "drift", Synopsis: "Show what has changed outside of Terrace", Usage: "[options]",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.NeedsInputs | command.OverEstate,
		Help: `Read all objects in the state, and report which of them were changed outside of
Terrace. Neither infrastructure nor state is changed: "apply -refresh-only"
accepts the changes into the state, and "apply" undoes them. With --all, there
is one report for all units, which lists a change that several units have in
common once. -json prints the report as events, and --html writes it as a page.`,
		Examples: []command.Example{
			{Line: "drift -detailed-exitcode", Text: "Exit with status 2 if anything has changed, for scheduled CI jobs."},
			{Line: "drift --all --html drift.html", Text: "Check all units, and write a page."},
		},
		Exits: []command.Exit{
			{Code: 0, Help: "All objects were read; with -detailed-exitcode, and nothing has changed."},
			{Code: 1, Help: "There was an error."},
			{Code: 2, Help: "With -detailed-exitcode: something has changed."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o := &Flags{}
			return driftFlags(&o.Request), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "To specify a working directory, use the global -chdir flag.")
				}
				if !o.Json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				o.Plan.Mode |= plan.RefreshOnly
				return runPlan(ctx, c, o)
			}
		},
	}
}

func driftFlags(o *flags.Request) flag.Flags {
	fs := o.Planning(true)
	for i := range fs {
		switch fs[i].Name {
		case "destroy", "refresh-only", "refresh", "replace":
			fs[i] = fs[i].Hide()
		}
	}
	fs = append(fs, flag.Bool(&o.Detailed, "detailed-exitcode", "Return detailed exit codes when the command exits: 0 means that nothing has changed, 1 an error, 2 that something has."))
	return append(fs, flags.Markdown(&o.Markdown)...)
}

// DriftOver returns the form of drift for many units: one refresh-only plan of all.
func DriftOver() *flags.Over {
	return &flags.Over{Flags: driftFlags, Settle: func(o *flags.Request) { o.Plan.Mode |= plan.RefreshOnly }, Refused: map[string]string{"state": flags.OneFile}}
}
