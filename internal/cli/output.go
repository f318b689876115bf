package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

type outputOptions struct {
	name      string
	json, raw bool
	reveal    bool
	state     string
	into      string
	vars      []vars.Flag
}

func outputCommand(ctx context.Context, s *session, args []string) int {
	var o outputOptions
	f := newFlags("output")
	f.BoolVar(&o.json, "json", false, "")
	f.StringVar(&o.into, "json-into", "", "")
	f.BoolVar(&o.raw, "raw", false, "")
	f.BoolVar(&o.reveal, "show-sensitive", false, "")
	f.StringVar(&o.state, "state", "", "")
	addVars(f, &o.vars)
	if !s.parse(f, args) {
		return 1
	}
	o.name = f.Arg(0)
	switch {
	case f.NArg() > 1:
		return s.usageError("output", "Unexpected argument", "The output command expects exactly one argument with the name of an output variable or no arguments to show all outputs.")
	case o.json && o.raw:
		return s.usageError("output", "Invalid output format", "The -raw and -json options are mutually-exclusive.")
	case o.raw && o.name == "":
		return s.usageError("output", "Output name required", "You must give the name of a single output value when using the -raw option.")
	}
	return runOutput(ctx, s, &o)
}

func runOutput(ctx context.Context, s *session, o *outputOptions) int {
	st, ds := s.currentState(ctx, o.vars, o.state)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	s.human.Errs = s.Stderr
	if len(ds) > 0 {
		_ = s.human.Printer.Print(s.Stderr, ds) // what others read from Stdout stays clean
	}
	outputs := map[string]*state.Output{}
	if st != nil {
		outputs = st.Outputs
	}
	if o.into != "" {
		if ds := writeOutputsInto(s, o.into, outputs); ds.HasErrors() {
			return s.fail(ds)
		}
	}
	if o.name != "" {
		return oneOutput(s, o, outputs)
	}
	if o.json {
		return printOutputs(s, outputs)
	}
	if len(outputs) == 0 {
		return s.status(noOutputs())
	}
	_ = view.Outputs(s.Stdout, outputs, o.reveal)
	return 0
}

func noOutputs() diag.List {
	return diag.Warnf(nil, "No outputs found", "The state file either has no outputs defined, or all the defined outputs are empty. Please define an output in your configuration with the `output` keyword and run `%s refresh` for it to become available. If you are using interpolation, please verify the interpolated value is not empty. You can use the `%[1]s console` command to assist.", view.Program)
}

func printOutputs(s *session, outputs map[string]*state.Output) int {
	m, err := view.JSONOutputs(outputs, true)
	var doc []byte
	if err == nil {
		doc, err = json.MarshalIndent(m, "", "  ")
	}
	if err != nil {
		return s.fail(diag.Errorf(nil, "Failed to write outputs", "The outputs cannot be written as JSON: %s.", err))
	}
	fmt.Fprintf(s.Stdout, "%s\n", doc)
	return 0
}

func oneOutput(s *session, o *outputOptions, outputs map[string]*state.Output) int {
	out, ok := outputs[o.name]
	if !ok && len(outputs) == 0 && !o.json && !o.raw {
		return s.status(noOutputs())
	}
	if !ok {
		return s.fail(diag.Errorf(nil, fmt.Sprintf("Output %q not found", o.name), "The output variable requested could not be found in the state file. If you recently added this to your configuration, be sure to run `%s apply`, since the state won't be updated with new output variables until that command is run.", view.Program))
	}
	switch {
	case o.json:
		doc, err := ctyjson.Marshal(out.Value, out.Value.Type())
		if err != nil {
			return s.fail(diag.Errorf(nil, "Failed to write the output", "The output cannot be written as JSON: %s.", err))
		}
		fmt.Fprintf(s.Stdout, "%s\n", doc)
	case o.raw:
		text, err := convert.Convert(out.Value, cty.String)
		if err != nil || text.IsNull() {
			return s.fail(diag.Errorf(nil, "Unsupported value for raw output", "The -raw option only supports strings, numbers, and boolean values, but output value %q is %s.\n\nUse the -json option for machine-readable representations of output values that have complex types.", o.name, friendly(out.Value)))
		}
		fmt.Fprint(s.Stdout, text.AsString())
	default:
		fmt.Fprintln(s.Stdout, view.Value(out.Value))
	}
	return 0
}

func friendly(v cty.Value) string {
	if v.IsNull() {
		return "null"
	}
	return v.Type().FriendlyName()
}

// currentState reads the state of the selected workspace, or that of a file,
// without changing anything.
func (s *session) currentState(ctx context.Context, flags []vars.Flag, path string) (*state.State, diag.List) {
	b, ds := s.whereState(ctx, flags)
	if ds.HasErrors() {
		return nil, ds // also where a file is named: another backend has the last word
	}
	if path != "" {
		file, ds := s.localFile(ctx)
		if ds.HasErrors() {
			return nil, ds
		}
		return s.shownIn(ctx, file, store.Default, stateFlags{path: path})
	}
	name, more := s.workspaceName()
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	st, more := s.shownIn(ctx, b, name, stateFlags{})
	return st, append(ds, more...)
}

func writeOutputsInto(s *session, path string, outputs map[string]*state.Output) diag.List {
	if !s.useJSON(jsonFlags{into: path}) {
		return diag.Errorf(nil, "Invalid argument", "The file of -json-into cannot be opened.")
	}
	defer s.finish()
	s.stream.Outputs(outputs)
	return nil
}

func outputUsage() string {
	return usageText("Usage: "+view.Program+" [global options] output [options] [NAME]\n\n"+
		"  Reads an output variable from a "+view.Product+" state file and prints\n  the value. With no additional arguments, output will display all\n  the outputs for the root module. If NAME is not specified, all\n  outputs are printed.",
		option("-json", "Produce output in a machine-readable JSON format, with the values of sensitive outputs."),
		option("-raw", "Print the raw string of a single string, number or boolean value."),
		option("-show-sensitive", "Show sensitive values."),
		option("-state=path", "Path to the state file to read. Ignored with remote state."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module."),
		option("-var-file=path", "Load variable values from a file."),
		option("-no-color", "No color in the output."))()
}
