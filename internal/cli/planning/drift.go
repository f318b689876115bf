package planning

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/accepted"
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
				o.Plan.Mode, o.Drift = o.Plan.Mode|plan.RefreshOnly, true
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
	fs = append(fs, flag.Bool(&o.ShowAccepted, "show-accepted", "List the drift that "+accepted.FileName+" accepts."))
	return append(fs, flags.Markdown(&o.Markdown)...)
}

// DriftOver returns the form of drift for many units: one refresh-only plan of all.
func DriftOver() *flags.Over {
	return &flags.Over{Flags: driftFlags, Settle: func(o *flags.Request) { o.Plan.Mode, o.Drift = o.Plan.Mode|plan.RefreshOnly, true }, Refused: map[string]string{"state": flags.OneFile}}
}

// LoadAccepted reads the list of accepted drift for the command drift.
func LoadAccepted(c *command.Call, o *Flags) (ds diag.List) {
	if o.Drift {
		o.Plan.Accept, ds = accepted.Load(filepath.Clean(c.ReportPath(".")), c.Report.Set, c.Now())
	}
	return ds
}

// UnitDrift is the accepted drift of a unit. Unit is "" for a single directory.
type UnitDrift struct {
	Unit  string
	Drift []plan.AcceptedDrift
}

// ReportAccepted prints the accepted drift of a run, and returns warnings about entries of the list.
// read is as in accepted.Warnings.
func ReportAccepted(c *command.Call, o *Flags, units []UnitDrift, read func(plan.Acceptance) bool) diag.List {
	var all []plan.AcceptedDrift
	var b strings.Builder
	for _, u := range units {
		all = append(all, u.Drift...)
		stream := c.Report.Stream.For(u.Unit, c.Report.Set)
		for _, a := range u.Drift {
			stream.Accepted(a)
			b.WriteString("  " + strings.TrimPrefix(u.Unit+": ", ": ") + a.Address)
			if len(a.Attributes) > 0 {
				b.WriteString(" " + strings.Join(a.Attributes, ", "))
			} else {
				b.WriteString(" is gone")
			}
			for _, e := range a.By {
				fmt.Fprintf(&b, "\n    %s:%d: %s", e.File, e.Line, e.Reason)
				if e.Expires != "" {
					b.WriteString(" (until " + e.Expires + ")")
				}
			}
			b.WriteString("\n")
		}
	}
	if h := c.Report.Human; h != nil && len(all) > 0 {
		text := fmt.Sprintf("The list of accepted drift contains the drift of %s.", view.Numbered(len(all), "object"))
		if !o.ShowAccepted {
			text += " -show-accepted lists it."
		}
		h.Say("\n" + text + "\n")
		if o.ShowAccepted {
			h.Copy("\n" + b.String())
		}
	}
	return accepted.Warnings(o.Plan.Accept, all, read)
}

// AcceptedWarnings returns the warnings of ReportAccepted, and prints nothing.
func AcceptedWarnings(o *Flags, units []UnitDrift, read func(plan.Acceptance) bool) diag.List {
	var all []plan.AcceptedDrift
	for _, u := range units {
		all = append(all, u.Drift...)
	}
	return accepted.Warnings(o.Plan.Accept, all, read)
}

// readByDrift returns which entries of the list of accepted drift are about objects that drift in one
// directory has read. ds are the messages of the plan.
func (o *Flags) readByDrift(ds diag.List) func(plan.Acceptance) bool {
	if ds.HasErrors() || o.Limited() {
		return nil
	}
	return func(e plan.Acceptance) bool { return e.Unit != "" || o.Plan.Accept.Dir == "" }
}

// Limited reports whether the plan leaves out a part of the configuration, or does not read everything.
func (o *Flags) Limited() bool {
	return len(o.Scope.Targets)+len(o.Scope.TargetFiles)+len(o.Scope.Excludes)+len(o.Scope.ExcludeFiles) > 0 || o.Plan.MinimalRefresh || o.Plan.RefreshMaxAge > 0
}
