package initialize

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/internal/workdir/setup"
)

// Get declares get.
func Get() command.Command {
	return command.Command{
		Name: "get", Synopsis: "Install or upgrade remote Terrace modules", Usage: "[options]",
		Uses:  command.Modules,
		Units: command.InUnit | command.Uninitialized | command.OnlyReads,
		Help: `Downloads and installs modules needed for the configuration in the current
working directory, directly or by other modules. What is installed already
and fits is left alone.

"terrace init" does this too, so you should rarely need this command.`,
		Prepare: func() (flag.Flags, command.Run) {
			o, testDir := &getOptions{}, ""
			fs := flag.Flags{flag.Bool(&o.update, "update", "Look for newer versions of the modules that are there already and install them.")}
			fs = append(append(fs, o.json.Flags()...), flags.TestDirectory(&testDir))
			fs = append(fs, flag.Vars(&o.vars)...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				if len(c.Args) > 0 {
					return c.UsageError("Unexpected argument", c.NoArguments())
				}
				tests, ds := testrun.Load(c.OnDisk(), testDir, c.Report.Set, nil)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				return c.Report.Status(append(ds, setup.InstallModules(ctx, c.Directory.Anew(), initView{c}, setup.Modules{Vars: o.vars, Upgrade: o.update, Tests: tests})...))
			}
		},
	}
}

type getOptions struct {
	json   flags.JSON
	vars   []workdir.VarFlag
	update bool
}
