package inspect

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// strictList declares info strict list.
func strictList() command.Command {
	return command.Command{
		Name: "info strict list", Synopsis: "List the strict controls", Usage: "[options] [NAME]",
		Help: `Lists the names that --strict-control accepts, with their status and effect.
Completed controls have no effect, because what they forbid is always an error.`,
		Args: []command.Arg{{Name: "NAME", Help: "The control to show.", Optional: true}},
		Prepare: func() (flag.Flags, command.Run) {
			all := false
			fs := flag.Flags{flag.Bool(&all, "all", "Also list completed controls.")}.WithTwoDashesShown()
			return fs, func(_ context.Context, c *command.Call) int {
				if len(c.Args) > 1 {
					return c.UsageError("Too many command line arguments", "The command takes at most one name.")
				}
				w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
				found := false
				for _, s := range unitflags.StrictControls() {
					if len(c.Args) == 0 && s.Completed && !all || len(c.Args) == 1 && s.Name != c.Arg(0) {
						continue
					}
					found = true
					status := "Active"
					if s.Completed {
						status = "Completed"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, status, s.Help)
				}
				if !found {
					return c.UsageError("No such strict control", fmt.Sprintf("There is no strict control %q. --all lists all controls.", c.Arg(0)))
				}
				_ = w.Flush() // command.Call reports errors of standard output
				return 0
			}
		},
	}
}
