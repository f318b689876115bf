package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Info declares info print.
func Info() command.Command {
	return command.Command{
		Name: "info print", Synopsis: "Show the files, directories, role and program of a unit", Usage: "[options]", Units: command.TakesUnitFlags,
		Help: `Prints, as JSON, the configuration file of the unit, the directory that its
module is downloaded to and runs in, the IAM role, and the program that runs
it.`,
		Prepare: func() (flag.Flags, command.Run) {
			f, binary := &unitflags.Flags{}, ""
			tf := flag.Text(&binary, "tf-path", "PATH", "The program to name in terraform_binary.").WithTwoDashes().Variables("TG_TF_PATH").Completes(flag.Files)
			return append(flag.Flags{tf}, f.DeclareFor(true).Without("tf-path").Show("all")...), func(ctx context.Context, c *command.Call) int {
				if err := f.Settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "The command takes flags alone.")
				}
				units.WorkIn(c, f)
				return runInfo(ctx, c, f, binary)
			}
		},
	}
}

func runInfo(ctx context.Context, c *command.Call, f *unitflags.Flags, binary string) int {
	o, ds := units.LookOptions(c, f, "print", nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.AboveStatus(ds)
	o.Tolerant = true
	var e *estate.Estate
	var list []*estate.Unit
	if f.All || len(f.Filters) > 0 {
		e, ds = units.OpenLeniently(ctx, c, o)
		defer e.Close(ctx)
		list = slices.DeleteFunc(slices.Clone(e.Found.Units), func(u *estate.Unit) bool { return u.Broken != nil })
	} else {
		var u *estate.Unit
		if e, u, ds = units.OpenUnit(ctx, c, o, units.UnitPath(c, f), f.Module); u != nil {
			list = append(list, u)
		}
	}
	if len(list) == 0 && ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	for _, u := range list {
		info, more := e.Info(ctx, u)
		ds = append(ds, more...)
		switch {
		case binary != "":
			info.TerraformBinary = binary
		case info.TerraformBinary == "":
			info.TerraformBinary = view.Program
		}
		b, err := json.MarshalIndent(info, "", "  ")
		if err != nil {
			return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "%s.", err))
		}
		fmt.Fprintf(c.Stdout, "%s\n", b)
	}
	if ds = ds.Once(); len(ds) > 0 {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, c.Report.Redactor.List(ds))
	}
	return 0 // print the known facts about an invalid unit, as Terragrunt does
}
