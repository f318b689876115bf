package cli

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

type getOptions struct {
	json   jsonFlags
	vars   []vars.Flag
	update bool
}

func getCommand(ctx context.Context, s *session, args []string) int {
	var o getOptions
	var testDir string
	f := newFlags("get")
	o.json.add(f)
	addVars(f, &o.vars)
	f.BoolVar(&o.update, "update", false, "")
	f.StringVar(&testDir, "test-directory", "tests", "")
	if !s.parse(f, args) || !s.useJSON(o.json) {
		return 1
	}
	defer s.finish()
	if f.NArg() > 0 {
		return s.usageError("get", "Unexpected argument", "Too many command line arguments. Did you mean to use -chdir?")
	}
	return s.status(s.installModules(ctx, moduleInstall{vars: o.vars, upgrade: o.update, files: s.files()}))
}

func getUsage() string {
	return usageText("Usage: "+view.Program+" [global options] get [options]\n\n"+
		"  Downloads and installs modules needed for the configuration in the current\n  working directory, directly or by other modules. What is installed already\n  and fits is left alone.\n\n"+
		"  \""+view.Program+" init\" does this too, so you should rarely need this command.",
		option("-update", "Look for newer versions of the modules that are there already and install them."),
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-json-into=path", "Write the machine-readable output to a file, besides the output for people."),
		option("-test-directory=path", "The folder of test files, \"tests\" by default."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		option("-var-file=path", "Load variable values from a file. May be repeated."))()
}
