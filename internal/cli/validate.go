package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

type validateOptions struct {
	json    jsonFlags
	vars    []vars.Flag
	noTests bool
	testDir string
}

func validateCommand(ctx context.Context, s *session, args []string) int {
	var o validateOptions
	f := newFlags("validate")
	o.json.add(f)
	addVars(f, &o.vars)
	f.BoolVar(&o.noTests, "no-tests", false, "")
	f.StringVar(&o.testDir, "test-directory", "tests", "")
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 1 {
		return s.usageError("validate", "Too many command line arguments", "Expected at most one positional argument.")
	}
	if f.NArg() == 1 {
		s.System = s.System.In(f.Arg(0))
	}
	return runValidate(ctx, s, &o)
}

func runValidate(ctx context.Context, s *session, o *validateOptions) int {
	ds := s.validate(ctx, o.vars)
	doc, code := validateJSON(s, ds)
	if o.json.into != "" {
		if err := os.WriteFile(s.Path(o.json.into), append(doc, '\n'), 0o600); err != nil {
			return s.fail(diag.Errorf(nil, "Invalid argument", "The file of -json-into cannot be written: %s.", err))
		}
	}
	if !o.json.on {
		return validateHuman(s, ds)
	}
	fmt.Fprintf(s.Stdout, "%s\n", doc)
	return code
}

// validate holds the configuration to every rule; values of variables are not
// needed.
func (s *session) validate(ctx context.Context, flags []vars.Flag) diag.List {
	p, ds := s.load(ctx, loadOptions{vars: flags, partial: true})
	if p == nil {
		return ds
	}
	defer p.close()
	if more := p.selectProviders(ctx); more.HasErrors() {
		return append(ds, more...)
	}
	return append(ds, p.engine.Validate(ctx)...)
}

func validateHuman(s *session, ds diag.List) int {
	s.tell(ds)
	if ds.HasErrors() {
		return 1
	}
	s.human.Good("Success!")
	text := " The configuration is valid.\n"
	if len(ds) > 0 {
		text = " The configuration is valid, but there were some\nvalidation warnings as shown above.\n"
	}
	s.human.Say(text)
	return 0
}

func validateJSON(s *session, ds diag.List) ([]byte, int) {
	ds = s.filter(ds)
	j := view.JSONMessages(s.set)
	doc := struct {
		Format   string         `json:"format_version"`
		Valid    bool           `json:"valid"`
		Errors   int            `json:"error_count"`
		Warnings int            `json:"warning_count"`
		Messages []*diag.Object `json:"diagnostics"`
	}{"1.0", !ds.HasErrors(), len(ds.Errors()), len(ds.Warnings()), j.Objects(ds)}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return []byte(`{"format_version":"1.0","valid":false,"error_count":1,"warning_count":0,"diagnostics":[]}`), 1
	}
	if ds.HasErrors() {
		return out, 1
	}
	return out, 0
}

func validateUsage() string {
	return usageText("Usage: "+view.Program+" [global options] validate [options]\n\n"+
		"  Validate the configuration files in a directory, referring only to the\n  configuration and not accessing any remote services such as remote state,\n  provider APIs, etc.\n\n"+
		"  Validate runs checks that verify whether a configuration is syntactically\n  valid and internally consistent, regardless of any provided variables or\n  existing state.",
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-no-tests", "Do not validate test files."),
		option("-test-directory=path", "The folder of test files, \"tests\" by default."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module."),
		option("-var-file=path", "Load variable values from a file."),
		option("-no-color", "No color in the output."))()
}
