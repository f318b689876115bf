package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/unit"
)

// Validate declares hcl validate.
func Validate() command.Command {
	return command.Command{
		Name: "hcl validate", Synopsis: "Check whether unit files are valid", Usage: "[options]", Units: command.TakesUnitFlags,
		Help: "Checks all unit and stack files below the working directory.",
		Prepare: func() (flag.Flags, command.Run) {
			o := &hclValidateOptions{units: &unitflags.Flags{}}
			fs := flag.Flags{flag.Bool(&o.inputs, "inputs", "Compare the inputs of units with the variables of their modules instead.")}.WithTwoDashesShown()
			all := o.units.Declare().Hide().Show("strict", "filter", "feature", "working-dir")
			all.Named("strict").Help = "With --inputs, make inputs that a module does not declare errors."
			fs = append(append(fs, flag.Flags{
				flag.Bool(&o.json, "json", "Print messages as JSON."),
				flag.Bool(&o.showPath, "show-config-path", "Print the paths of the files with errors alone."),
			}.WithTwoDashesShown()...), all...)
			return fs, func(ctx context.Context, c *command.Call) int { return runHCLValidate(ctx, c, o) }
		},
	}
}

func runHCLValidate(ctx context.Context, c *command.Call, o *hclValidateOptions) int {
	if err := o.units.Settle(c.Env); err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	if len(c.Args) > 0 {
		return c.UsageError("Too many command line arguments", "The command takes flags alone.")
	}
	if o.units.Strict && !o.inputs {
		return c.UsageError("Failed to parse command-line flags", "--strict is about inputs: it goes with --inputs.")
	}
	if o.inputs && (o.json || o.showPath) {
		return c.UsageError("Failed to parse command-line flags", "--inputs goes with neither --json nor --show-config-path.")
	}
	units.WorkIn(c, o.units)
	eo, ds := units.LookOptions(c, o.units, "validate", nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.AboveStatus(ds)
	if o.inputs {
		return validateInputs(ctx, c, eo, o)
	}
	e, ds := units.OpenLeniently(ctx, c, eo)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	ds = e.Validate(ctx)
	for _, u := range e.Found.Units {
		for _, m := range u.Invalid {
			if m.Code == diag.CodeEstateCycle {
				ds = append(ds, m)
			}
		}
	}
	return showInvalid(c, o, e, withoutUnits(ds.Once()))
}

// withoutUnits turns errors about dependency blocks with paths that do not exist into warnings,
// since the unit may be in a stack that is not generated yet. Terragrunt does not report them.
func withoutUnits(ds diag.List) diag.List {
	out := make(diag.List, len(ds))
	for i, m := range ds {
		if missing, ok := m.Extra.(unit.NotFound); ok && missing.Label != "" {
			c := *m // cells share their messages
			c.Severity = diag.Warning
			m = &c
		}
		out[i] = m
	}
	return out
}

type hclValidateOptions struct {
	inputs, json, showPath bool
	units                  *unitflags.Flags
}

// showInvalid prints errors in the requested format.
func showInvalid(c *command.Call, o *hclValidateOptions, e *estate.Estate, ds diag.List) int {
	ds = c.Report.Redactor.List(ds)
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
			writeJSON(c, (&diag.JSON{Set: e.Sources(), Names: c.Report.Names}).Objects(ds))
		}
	default:
		_ = p.Print(c.Stdout, ds)
	}
	if code > 0 {
		c.Report.Tell(diag.Errorf(diag.CodeCLIInvalidUnits, nil, "Unit files are not valid", "Errors in unit files: %d.", len(errs)))
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
		c.Report.Tell(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "%s.", err))
		return
	}
	fmt.Fprintf(c.Stdout, "%s\n", b)
}

// validateInputs compares the inputs of every unit with the variables of its module.
func validateInputs(ctx context.Context, c *command.Call, eo estate.Options, o *hclValidateOptions) int {
	eo.Tolerant = true
	e, ds := units.OpenLeniently(ctx, c, eo)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
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
			m := diag.Warnf(diag.CodeCLIUnusedInputs, nil, "Unused inputs", "The module of the unit %s declares no variables for these inputs: %s.", u.Called(), strings.Join(got.Unused, ", "))
			if o.units.Strict {
				m[0].Severity = diag.Error
			}
			ds = append(ds, m...)
		}
		if len(got.Missing) > 0 {
			ds = append(ds, diag.Errorf(diag.CodeCLIMissingInputs, nil, "Missing inputs", "The module of the unit %s needs values for these variables: %s.", u.Called(), strings.Join(got.Missing, ", "))...)
		}
	}
	_ = c.Report.Printer(e.Sources()).Print(c.Stderr, c.Report.Redactor.List(ds.Once()))
	if ds.HasErrors() {
		return 1
	}
	return 0
}
