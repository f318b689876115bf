package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

type hclValidateOptions struct {
	inputs, json, showPath bool
	units                  *unitFlags
}

func hclValidateCommand(ctx context.Context, s *session, args []string) int {
	o := &hclValidateOptions{}
	var err error
	if o.units, args, err = takeUnitFlags(args, s.Env); err != nil {
		return s.usageError("hcl validate", "Failed to parse command-line flags", err.Error())
	}
	f := newFlags("hcl validate")
	f.BoolVar(&o.inputs, "inputs", false, "")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.showPath, "show-config-path", false, "")
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 0 {
		return s.usageError("hcl validate", "Too many command line arguments", "The command takes flags alone.")
	}
	if o.units.strict && !o.inputs {
		return s.usageError("hcl validate", "Failed to parse command-line flags", "--strict is about inputs: it goes with --inputs.")
	}
	if o.inputs && (o.json || o.showPath) {
		return s.usageError("hcl validate", "Failed to parse command-line flags", "--inputs goes with neither --json nor --show-config-path.")
	}
	s.workIn(o.units)
	eo, ds := s.estateOptions(o.units, "validate", nil, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	s.aside(ds)
	if o.inputs {
		return s.validateInputs(ctx, eo, o)
	}
	e, ds := s.openLeniently(ctx, eo)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	return s.showInvalid(o, e, e.Validate(ctx).Once())
}

// openLeniently opens an estate in which units may be broken.
func (s *session) openLeniently(ctx context.Context, o estate.Options) (*estate.Estate, diag.List) {
	o.Look.Lenient = true
	return s.open(ctx, o)
}

// showInvalid tells what is wrong, in the way that was asked for.
func (s *session) showInvalid(o *hclValidateOptions, e *estate.Estate, ds diag.List) int {
	errs := ds.Errors()
	code := 0
	if len(errs) > 0 {
		code = 1
	}
	p := s.printer(e.Sources())
	switch {
	case o.showPath:
		if code > 0 {
			s.showPaths(o.json, errs)
		}
	case o.json:
		if len(ds) > 0 {
			s.writeJSON((&diag.JSON{Set: e.Sources()}).Objects(ds))
		}
	default:
		_ = p.Print(s.Stdout, ds)
	}
	if code > 0 {
		s.tell(diag.Errorf(nil, "Unit files are not valid", "Errors in unit files: %d.", len(errs)))
	}
	return code
}

func (s *session) showPaths(asJSON bool, errs diag.List) {
	var paths []string
	for _, m := range errs {
		if m.At != nil {
			paths = append(paths, m.At.Filename)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if asJSON {
		s.writeJSON(paths)
		return
	}
	for _, path := range paths {
		fmt.Fprintln(s.Stdout, path)
	}
}

// writeJSON writes a value as one line of JSON.
func (s *session) writeJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.tell(diag.Errorf(nil, "Failed to write JSON", "%s.", err))
		return
	}
	fmt.Fprintf(s.Stdout, "%s\n", b)
}

// validateInputs compares the inputs of every unit with the variables of its module.
func (s *session) validateInputs(ctx context.Context, eo estate.Options, o *hclValidateOptions) int {
	e, ds := s.openLeniently(ctx, eo.Tolerate())
	defer e.Close(ctx)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	ds = nil
	for _, u := range e.Units {
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
	_ = s.printer(e.Sources()).Print(s.Stderr, ds.Once())
	if ds.HasErrors() {
		return 1
	}
	return 0
}

// infoCommand is `info print`.
func infoCommand(ctx context.Context, s *session, args []string) int {
	binary := s.Env.Get("TG_TF_PATH")
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--tf-path="); ok {
			binary = v
		} else if a == "--tf-path" && i+1 < len(args) {
			binary = args[i+1]
		}
	}
	f, rest, err := takeUnitFlags(args, s.Env)
	if err != nil {
		return s.usageError("info print", "Failed to parse command-line flags", err.Error())
	}
	if len(rest) > 0 {
		return s.usageError("info print", "Too many command line arguments", "The command takes flags alone.")
	}
	s.workIn(f)
	f.idle = slices.DeleteFunc(f.idle, func(text string) bool { // it is what the command prints
		return strings.HasPrefix(text, "--tf-path:") || strings.HasPrefix(text, "TG_TF_PATH:")
	})
	o, ds := s.estateOptions(f, "print", nil, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	s.aside(ds)
	var e *estate.Estate
	var units []*estate.Unit
	if f.all || len(f.filters) > 0 {
		e, ds = s.openLeniently(ctx, o.Tolerate())
		defer e.Close(ctx)
		units = slices.DeleteFunc(slices.Clone(e.Units), func(u *estate.Unit) bool { return u.Broken != nil })
	} else {
		var u *estate.Unit
		if e, u, ds = estate.OpenUnit(ctx, o.Tolerate(), s.unitPath(f), f.module); u != nil {
			units = append(units, u)
		}
	}
	if len(units) == 0 && ds.HasErrors() {
		return s.failWith(e, ds)
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
			return s.fail(diag.Errorf(nil, "Failed to write JSON", "%s.", err))
		}
		fmt.Fprintf(s.Stdout, "%s\n", b)
	}
	if ds = ds.Once(); len(ds) > 0 {
		_ = s.printer(e.Sources()).Print(s.Stderr, ds)
	}
	return 0 // as Terragrunt: what can be told of a broken unit is told
}

func hclValidateUsage() string {
	return usageText("Usage: "+view.Program+" [global options] hcl validate [options]\n\n"+
		"  Checks all unit and stack files below the working folder.",
		option("--inputs", "Compare the inputs of units with the variables of their modules instead."),
		option("--strict", "With --inputs, make inputs that a module does not declare errors."),
		option("--json", "The messages as JSON."),
		option("--show-config-path", "Print the paths of the files with errors alone."),
		option("--filter=QUERY", "Take the units that a query matches. May be repeated."),
		option("--feature=NAME=VALUE", "Set a feature flag. May be repeated."),
		option("--working-dir=PATH", "The folder to work in."))()
}

func infoUsage() string {
	return usageText("Usage: "+view.Program+" [global options] info print [options]\n\n"+
		"  Tells as JSON which file is the unit's, where its module is put and runs,\n  and with what role and program.",
		append([]string{option("--tf-path=PATH", "The program to name in terraform_binary.")}, unitOptions()...)...)()
}
