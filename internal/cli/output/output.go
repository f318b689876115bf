// Package output implements the command output, which prints the outputs in the state of the
// root module.
package output

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Command declares output.
func Command() command.Command {
	return command.Command{
		Name: "output", Synopsis: "Show output values from your root module", Usage: "[options] [NAME]",
		Uses:  command.State,
		Units: command.InUnit | command.OverEstate | command.OnlyReads,
		Help: `Reads an output variable from a Terrace state file and prints
the value. With no additional arguments, output will display all
the outputs for the root module. If NAME is not specified, all
outputs are printed.`,
		Args:     []command.Arg{{Name: "NAME", Help: "The output to print.", Optional: true, Complete: flag.Outputs}},
		Examples: []command.Example{{Line: "output -raw bucket", Text: "Print one string as it is, for a script."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &outputOptions{Request: &flags.Request{}}
			return o.flags(), func(ctx context.Context, c *command.Call) int {
				o.name = c.Arg(0)
				switch {
				case len(c.Args) > 1:
					return c.UsageError("Unexpected argument", "The output command expects exactly one argument with the name of an output variable or no arguments to show all outputs.")
				case o.Json.On && o.Json.Into != "":
					return c.UsageError("Invalid output format", "The -json and -json-into arguments are mutually exclusive")
				case o.Json.On && o.raw:
					return c.UsageError("Invalid output format", "The -raw and -json options are mutually-exclusive.")
				case o.raw && o.name == "":
					return c.UsageError("Output name required", "You must give the name of a single output value when using the -raw option.")
				}
				return runOutput(ctx, c, o)
			}
		},
	}
}

type outputOptions struct {
	*flags.Request
	name string
	raw  bool
}

func (o *outputOptions) flags() flag.Flags {
	fs := flag.Flags{
		flag.Bool(&o.Json.On, "json", "Produce output in a machine-readable JSON format, with the values of sensitive outputs."),
		flag.Text(&o.Json.Into, "json-into", "path", "").Hide(),
		flag.Bool(&o.raw, "raw", "Print the raw string of a single string, number or boolean value."),
		flag.Bool(&o.Reveal, "show-sensitive", "Show sensitive values."),
		flag.Text(&o.State.Path, "state", "path", "Path to the state file to read. Ignored with remote state.").Completes(flag.Files),
	}
	return append(append(fs, flag.Vars(&o.Vars)...), flag.NoColor())
}

// Over returns the form of output for many units: it prints the outputs of all units, either
// below the name of each unit or as one JSON document. With the name of an output, or flags
// about one state, output runs once for each unit.
func Over() *flags.Over {
	return &flags.Over{
		Flags:    func(r *flags.Request) flag.Flags { return (&outputOptions{Request: r}).flags() },
		Together: []string{"json", "show-sensitive", "var", "var-file", "no-color"}, Alone: true,
	}
}

func runOutput(ctx context.Context, c *command.Call, o *outputOptions) int {
	st, ds := c.CurrentState(ctx, o.Vars, o.State.Path)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.Human.Errs = c.Stderr
	if len(ds) > 0 {
		_ = c.Report.Human.Printer.Print(c.Stderr, c.Report.Redactor.List(ds)) // Stdout contains only the outputs, for other programs
	}
	outputs := map[string]*state.Output{}
	if st != nil {
		outputs = st.Outputs
	}
	if o.Json.Into != "" {
		if ds := o.writeInto(c, outputs); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	if o.name != "" {
		return oneOutput(c, o, outputs)
	}
	if o.Json.On {
		return printOutputs(c, outputs)
	}
	if len(outputs) == 0 {
		return c.Report.Status(noOutputs())
	}
	_ = view.Outputs(c.Stdout, outputs, o.Reveal)
	return 0
}

func noOutputs() diag.List {
	return diag.Warnf(diag.CodeCLINoOutputs, nil, "No outputs found", "The state file either has no outputs defined, or all the defined outputs are empty. Please define an output in your configuration with the `output` keyword and run `%s refresh` for it to become available.", view.Program)
}

func printOutputs(c *command.Call, outputs map[string]*state.Output) int {
	doc, ds := document(outputs)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	fmt.Fprintf(c.Stdout, "%s\n", doc)
	return 0
}

// document returns all outputs as JSON.
func document(outputs map[string]*state.Output) ([]byte, diag.List) {
	m, err := view.JSONOutputs(outputs, true)
	var doc []byte
	if err == nil {
		doc, err = json.MarshalIndent(m, "", "  ")
	}
	if err != nil {
		return nil, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write outputs", "The outputs cannot be written as JSON: %s.", err)
	}
	return doc, nil
}

// valueDocument returns the value of an output as JSON.
func valueDocument(out *state.Output) ([]byte, diag.List) {
	doc, err := ctyjson.Marshal(out.Value, out.Value.Type())
	if err != nil {
		return nil, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the output", "The output cannot be written as JSON: %s.", err)
	}
	return doc, nil
}

func oneOutput(c *command.Call, o *outputOptions, outputs map[string]*state.Output) int {
	out, ok := outputs[o.name]
	if !ok && len(outputs) == 0 && !o.Json.On {
		return c.Report.Status(noOutputs())
	}
	if !ok {
		return c.Fail(diag.Errorf(diag.CodeCLIOutput, nil, fmt.Sprintf("Output %q not found", o.name), "The output variable requested could not be found in the state file. If you recently added this to your configuration, be sure to run `%s apply`, since the state won't be updated with new output variables until that command is run.%s", view.Program, lang.Suggest(o.name, outputs)))
	}
	switch {
	case o.Json.On:
		doc, ds := valueDocument(out)
		if ds.HasErrors() {
			return c.Fail(ds)
		}
		fmt.Fprintf(c.Stdout, "%s\n", doc)
	case o.raw:
		text, err := convert.Convert(out.Value, cty.String)
		if err != nil || text.IsNull() {
			return c.Fail(diag.Errorf(diag.CodeCLIRawOutput, nil, "Unsupported value for raw output", "The -raw option only supports strings, numbers, and boolean values, but output value %q is %s.\n\nUse the -json option for machine-readable representations of output values that have complex types.", o.name, friendly(out.Value)))
		}
		fmt.Fprint(c.Stdout, text.AsString())
	default:
		fmt.Fprintln(c.Stdout, view.Value(out.Value))
	}
	return 0
}

func friendly(v cty.Value) string {
	if v.IsNull() {
		return "null"
	}
	return v.Type().FriendlyName()
}

// writeInto writes the file of -json-into: what -json would print. If there is no such output,
// the file is empty, so that the content of an earlier run does not stay there.
func (o *outputOptions) writeInto(c *command.Call, outputs map[string]*state.Output) (ds diag.List) {
	var doc []byte
	if out, ok := outputs[o.name]; o.name == "" {
		doc, ds = document(outputs)
	} else if ok {
		doc, ds = valueDocument(out)
	}
	if ds.HasErrors() {
		return ds
	}
	if len(doc) > 0 {
		doc = append(doc, '\n')
	}
	if err := os.WriteFile(c.Path(o.Json.Into), doc, 0o600); err != nil {
		return diag.Errorf(diag.CodeCLIFlags, nil, "Invalid argument", "The file of -json-into cannot be written: %s.", err)
	}
	return nil
}
