package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

// hclValidateCmd declares hcl validate.
func hclValidateCmd() command.Command {
	return command.Command{
		Name: "hcl validate", Synopsis: "Check whether unit files are valid", Usage: "[options]", Units: command.TakesUnitFlags,
		Help: "Checks all unit and stack files below the working folder.",
		Prepare: func() (command.Flags, command.Run) {
			o := &hclValidateOptions{units: &unitFlags{}}
			fs := command.Flags{command.Bool(&o.inputs, "inputs", "Compare the inputs of units with the variables of their modules instead.")}.WithTwoDashesShown()
			all := o.units.declare().Hide().Show("strict", "filter", "feature", "working-dir")
			all.Named("strict").Help = "With --inputs, make inputs that a module does not declare errors."
			fs = append(append(fs, command.Flags{
				command.Bool(&o.json, "json", "The messages as JSON."),
				command.Bool(&o.showPath, "show-config-path", "Print the paths of the files with errors alone."),
			}.WithTwoDashesShown()...), all...)
			return fs, func(ctx context.Context, c *command.Call) int { return runHCLValidate(ctx, c, o) }
		},
	}
}

func runHCLValidate(ctx context.Context, c *command.Call, o *hclValidateOptions) int {
	if err := o.units.settle(c.Env); err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	if len(c.Args) > 0 {
		return c.UsageError("Too many command line arguments", "The command takes flags alone.")
	}
	if o.units.strict && !o.inputs {
		return c.UsageError("Failed to parse command-line flags", "--strict is about inputs: it goes with --inputs.")
	}
	if o.inputs && (o.json || o.showPath) {
		return c.UsageError("Failed to parse command-line flags", "--inputs goes with neither --json nor --show-config-path.")
	}
	workIn(c, o.units)
	eo, ds := estateOptions(c, o.units, "validate", nil, nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.Aside(ds)
	if o.inputs {
		return validateInputs(ctx, c, eo, o)
	}
	e, ds := openLeniently(ctx, c, eo)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return failWith(c, e, ds)
	}
	return showInvalid(c, o, e, e.Validate(ctx).Once())
}

// infoCmd declares info print.
func infoCmd() command.Command {
	return command.Command{
		Name: "info print", Synopsis: "Tell with what a unit runs", Usage: "[options]", Units: command.TakesUnitFlags,
		Help: `Tells as JSON which file is the unit's, where its module is put and runs,
and with what role and program.`,
		Prepare: func() (command.Flags, command.Run) {
			f, binary := &unitFlags{}, ""
			tf := command.Text(&binary, "tf-path", "PATH", "The program to name in terraform_binary.").WithTwoDashes().Variables("TG_TF_PATH").Completes(command.Files)
			return append(command.Flags{tf}, f.declareFor(true).Without("tf-path").Show("all")...), func(ctx context.Context, c *command.Call) int {
				if err := f.settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "The command takes flags alone.")
				}
				workIn(c, f)
				return runInfo(ctx, c, f, binary)
			}
		},
	}
}

func runInfo(ctx context.Context, c *command.Call, f *unitFlags, binary string) int {
	o, ds := estateOptions(c, f, "print", nil, nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.Aside(ds)
	o.Tolerant = true
	var e *estate.Estate
	var units []*estate.Unit
	if f.all || len(f.filters) > 0 {
		e, ds = openLeniently(ctx, c, o)
		defer e.Close(ctx)
		units = slices.DeleteFunc(slices.Clone(e.Found.Units), func(u *estate.Unit) bool { return u.Broken != nil })
	} else {
		var u *estate.Unit
		if e, u, ds = estate.OpenUnit(ctx, o, unitPath(c, f), f.module); u != nil {
			units = append(units, u)
		}
	}
	if len(units) == 0 && ds.HasErrors() {
		return failWith(c, e, ds)
	}
	for _, u := range units {
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
			return c.Fail(diag.Errorf(nil, "Failed to write JSON", "%s.", err))
		}
		fmt.Fprintf(c.Stdout, "%s\n", b)
	}
	if ds = ds.Once(); len(ds) > 0 {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, ds)
	}
	return 0 // as Terragrunt: what can be told of a broken unit is told
}

type hclValidateOptions struct {
	inputs, json, showPath bool
	units                  *unitFlags
}

// openLeniently opens an estate in which units may be broken.
func openLeniently(ctx context.Context, c *command.Call, o estate.Options) (*estate.Estate, diag.List) {
	o.Discovery.Lenient = true
	return open(ctx, c, o)
}

// showInvalid tells what is wrong, in the way that was asked for.
func showInvalid(c *command.Call, o *hclValidateOptions, e *estate.Estate, ds diag.List) int {
	errs := ds.Errors()
	code := 0
	if len(errs) > 0 {
		code = 1
	}
	p := c.Report.Printer(e.Sources())
	switch {
	case o.showPath:
		if code > 0 {
			showPaths(c, o.json, errs)
		}
	case o.json:
		if len(ds) > 0 {
			writeJSON(c, (&diag.JSON{Set: e.Sources()}).Objects(ds))
		}
	default:
		_ = p.Print(c.Stdout, ds)
	}
	if code > 0 {
		c.Report.Tell(diag.Errorf(nil, "Unit files are not valid", "Errors in unit files: %d.", len(errs)))
	}
	return code
}

func showPaths(c *command.Call, asJSON bool, errs diag.List) {
	var paths []string
	for _, m := range errs {
		if m.At != nil {
			paths = append(paths, m.At.Filename)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if asJSON {
		writeJSON(c, paths)
		return
	}
	for _, path := range paths {
		fmt.Fprintln(c.Stdout, path)
	}
}

// writeJSON writes a value as one line of JSON.
func writeJSON(c *command.Call, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		c.Report.Tell(diag.Errorf(nil, "Failed to write JSON", "%s.", err))
		return
	}
	fmt.Fprintf(c.Stdout, "%s\n", b)
}

// validateInputs compares the inputs of every unit with the variables of its module.
func validateInputs(ctx context.Context, c *command.Call, eo estate.Options, o *hclValidateOptions) int {
	eo.Tolerant = true
	e, ds := openLeniently(ctx, c, eo)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return failWith(c, e, ds)
	}
	ds = nil
	for _, u := range e.Found.Units {
		if ds = append(ds, u.Broken...); u.Broken != nil {
			continue
		}
		got, more := e.CompareInputs(ctx, u)
		ds = append(ds, more...)
		if got == nil {
			continue
		}
		if len(got.Unused) > 0 {
			m := diag.Warnf(nil, "Unused inputs", "The module of the unit %s declares no variables for these inputs: %s.", u.Name, strings.Join(got.Unused, ", "))
			if o.units.strict {
				m[0].Severity = diag.Error
			}
			ds = append(ds, m...)
		}
		if len(got.Missing) > 0 {
			ds = append(ds, diag.Errorf(nil, "Missing inputs", "The module of the unit %s needs values for these variables: %s.", u.Name, strings.Join(got.Missing, ", "))...)
		}
	}
	_ = c.Report.Printer(e.Sources()).Print(c.Stderr, ds.Once())
	if ds.HasErrors() {
		return 1
	}
	return 0
}
