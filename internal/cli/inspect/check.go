package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/markdown"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Check declares estate check.
func Check() command.Command {
	return command.Command{
		Name: "estate check", Synopsis: "Check all units and the values that they pass to each other", Usage: "[options]",
		Units: command.TakesUnitFlags,
		Help: `Checks all units below the working directory, and the outputs that they read
from each other, without state, credentials or providers.`,
		Prepare: func() (flag.Flags, command.Run) {
			f, j, m := &unitflags.Flags{}, flags.JSON{}, request.Markdown{}
			fs := append(flag.Flags{flag.Bool(&j.On, "json", "Print messages as JSON.")}, flags.Markdown(&m)...)
			fs = append(fs, f.DeclareFor(false)...)
			return fs.Show("strict"), func(ctx context.Context, c *command.Call) int {
				if err := f.Settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				f.NoUse("estate check", unitflags.Choosing+" strict")
				units.WorkIn(c, f)
				if !j.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return runEstateCheck(ctx, c, f, m)
			}
		},
	}
}

// runEstateCheck checks all units as a whole, without state and providers.
func runEstateCheck(ctx context.Context, c *command.Call, f *unitflags.Flags, m request.Markdown) int {
	o, ds := units.LookOptions(c, f, "plan", nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	o.Discovery.Generate, o.Discovery.Overlay = !f.NoStackGenerate, &stacks.Overlay{}
	o.Discovery.Whole, o.Checking = true, true
	e, more := units.Open(ctx, c, o)
	defer e.Close(ctx)
	ds = slices.Concat(ds, more, e.Found.Ungenerated, e.CheckLast(ctx, f.Strict))
	ds = ds.Once()
	c.Report.TellFrom(e.Sources(), ds)
	if m.File != "" {
		if more := flags.WriteMarkdown(c, m, checked(c, e, ds)); more.HasErrors() {
			return c.Fail(more)
		}
	}
	if ds.HasErrors() {
		return 1
	}
	c.Report.Human.Good("Success!")
	text := fmt.Sprintf(" %d units fit together.\n", len(e.Found.Units))
	if len(e.Found.Units) == 1 {
		text = " The one unit is right by itself.\n"
	}
	c.Report.Say(text)
	return 0
}

// checked returns the Markdown of the messages of a check.
func checked(c *command.Call, e *estate.Estate, ds diag.List) *markdown.Document {
	dir := c.DirectoryName()
	d := &markdown.Document{
		Mark: "terrace: estate check of " + dir, Subjects: []string{dir}, Title: "Check passed in",
		Messages: flags.MarkdownMessages(c, e.Sources(), c.Report.Filter(ds)), More: "The output of the command contains everything.",
	}
	if n := len(ds.Errors()); n > 0 {
		d.Title = fmt.Sprintf("Check failed with %d errors in", n)
		if n == 1 {
			d.Title = "Check failed with 1 error in"
		}
	}
	if n := len(e.Found.Units); n == 1 {
		d.Lines = []string{"1 unit was checked."}
	} else {
		d.Lines = []string{fmt.Sprintf("%d units were checked.", n)}
	}
	return d
}
