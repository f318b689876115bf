// Package backendcmd implements the commands on backends, such as backend doctor.
package backendcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state/statefile"
)

// Doctor declares backend doctor.
func Doctor() command.Command {
	return command.Command{
		Name: "backend doctor", Synopsis: "Check the configured backend", Usage: "[options]", Uses: command.Backends, Units: command.InUnit | command.OnlyReads,
		Help: `Checks the backend of the working directory end to end: credentials, listing
and reading, whether a lock excludes a second one, conditional writes, and,
where the service reports them, versioning, encryption at rest and the clock.
Prints what is missing and which permission it needs. The state is not touched.

Where init has yet to run, since something is missing, the backend that the
configuration names is checked, with what -backend-config adds.`,
		Examples: []command.Example{{Line: "backend doctor", Text: "Check the backend that init configured, or is to configure."}},
		Exits:    []command.Exit{{Code: 0, Help: "Nothing is missing."}, {Code: 1, Help: "Something is missing, or could not be checked."}},
		Prepare: func() (flag.Flags, command.Run) {
			var given []workdir.VarFlag
			var options []string
			var json flags.JSON
			fs := append(json.Flags(), flag.Vars(&given)...)
			fs = append(fs, flag.List(&options, "backend-config", "path", "What init is given, where it has yet to run: a file with assignments or a 'key=value'. May be repeated.").Completes(flag.Files))
			return fs, func(ctx context.Context, c *command.Call) int {
				if !json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return examineBackend(ctx, c, given, options)
			}
		},
	}
}

func examineBackend(ctx context.Context, c *command.Call, given []workdir.VarFlag, options []string) int {
	b, ds := c.WhereState(ctx, given)
	pending := slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == selection.InitCode })
	switch {
	case pending: // init may fail because of the problem to find
		places, more := c.PendingPlaces(ctx, given, options)
		if more.HasErrors() {
			return c.Fail(append(ds, more...))
		}
		b, ds = places[0], more
	case ds.HasErrors():
		return c.Fail(ds)
	}
	workspace, more := c.Directory.Workspace()
	if ds = append(ds, more...); ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.Tell(ds)
	missing := 0
	title := fmt.Sprintf("Backend %q, workspace %q", b.Config.Type, workspace)
	if pending {
		title += ", not initialized yet"
	}
	c.Report.Human.Say(title + "\n\n")
	info := store.LockInfo{Operation: "doctor", Who: c.Who(), Version: statefile.Version, Created: c.Now()}
	doctor.Run(ctx, b.Opened, workspace, c.StoreOptions(ctx, b, workdir.StateFiles{}), info, func(f backend.Finding) {
		mark := "ok     "
		switch {
		case f.Skipped:
			mark = "skipped"
		case !f.OK:
			mark = "missing"
			missing++
		}
		line := strings.TrimSuffix(fmt.Sprintf("  %s  %s: %s", mark, f.What, f.Detail), ": ")
		if f.Permission != "" {
			line += "\n           needs " + f.Permission
		}
		c.Report.Human.Say(line + "\n")
		c.Report.Stream.Typed(f.What, "backend_check", map[string]any{"what": f.What, "ok": f.OK, "skipped": f.Skipped, "detail": f.Detail, "permission": f.Permission})
	})
	if missing > 0 {
		return c.Fail(diag.Errorf(diag.CodeCLIBackendDoctor, nil, "Backend is not as it should be", "Of what was looked at, this much is missing or could not be looked at: %d. See above.", missing))
	}
	return 0
}
