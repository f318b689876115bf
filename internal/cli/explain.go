package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/state"
)

type explainOptions struct {
	address string
	json    bool
	vars    []vars.Flag
	state   string
}

func explainCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.explainFlags(args)
	if !ok {
		return 1
	}
	x, ds := s.explain(ctx, o, engine.ExplainOptions{})
	if ds.HasErrors() {
		return s.fail(ds)
	}
	if len(ds) > 0 {
		_ = s.human.Printer.Print(s.Stderr, s.filter(ds)) // what others read from Stdout stays clean
	}
	return s.printExplanation(x, o.json)
}

func (s *session) explainFlags(args []string) (*explainOptions, bool) {
	o := &explainOptions{}
	f := newFlags("explain")
	f.BoolVar(&o.json, "json", false, "")
	f.StringVar(&o.state, "state", "", "")
	addVars(f, &o.vars)
	if !s.parse(f, args) {
		return nil, false
	}
	if f.NArg() != 1 {
		s.usageError("explain", "Address required", "The explain command expects exactly one argument: the address of what to explain, such as var.region or aws_instance.web.ami.")
		return nil, false
	}
	o.address = f.Arg(0)
	return o, true
}

func (s *session) printExplanation(x *engine.Explanation, asJSON bool) int {
	if !asJSON {
		_ = x.Print(s.Stdout)
		return 0
	}
	doc, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return s.fail(diag.Errorf(nil, "Failed to write JSON", "The explanation cannot be written: %s.", err))
	}
	fmt.Fprintf(s.Stdout, "%s\n", doc)
	return 0
}

// explain answers with what given says besides what the folder holds.
func (s *session) explain(ctx context.Context, o *explainOptions, given engine.ExplainOptions) (*engine.Explanation, diag.List) {
	p, ds := s.loadInstalled(ctx, loadOptions{vars: o.vars, partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.close()
	st, more := p.stateToExplain(ctx, o)
	if more.HasErrors() {
		return nil, append(ds, more...)
	}
	all, _ := vars.Gather(vars.Sources{Dir: s.Dir, Env: s.Env, Flags: o.vars})
	given.Variables, given.Lost, given.State = p.vars, all.Lost, st
	given.Installed = func() { p.selectProviders(ctx, st) } // those that are not installed are asked for nothing
	x, more := p.engine.Explain(ctx, o.address, given)
	return x, append(ds, more...)
}

// loadInstalled loads a configuration without the modules that are not here, or
// that have mistakes in them, which is a warning.
func (s *session) loadInstalled(ctx context.Context, o loadOptions) (*project, diag.List) {
	p, ds := s.load(ctx, o)
	missing := func(m *diag.Message) bool {
		return m.Severity == diag.Warning || module.Missing(m) || m.At != nil && filepath.Dir(m.At.Filename) != "."
	}
	if p != nil || slices.ContainsFunc(ds, func(m *diag.Message) bool { return !missing(m) }) {
		return p, ds
	}
	o.rootOnly = true
	p, more := s.load(ctx, o)
	if p == nil {
		return nil, more
	}
	for _, m := range ds {
		m.Severity = diag.Warning
	}
	return p, ds
}

// stateToExplain reads the state if there is one. That it cannot be read matters
// only if the user named it.
func (p *project) stateToExplain(ctx context.Context, o *explainOptions) (*state.State, diag.List) {
	where := p.backend
	if o.state != "" {
		where = p.localFile
	}
	b, ds := where(ctx)
	if ds.HasErrors() {
		return nil, nil
	}
	st, ds := p.shownIn(ctx, b, p.workspace, stateFlags{path: o.state})
	switch {
	case ds.HasErrors() && o.state != "":
		return nil, ds
	case st == nil && o.state != "":
		return nil, diag.Errorf(nil, "No state found", "There is no state in %s.", o.state)
	case ds.HasErrors() || st == nil:
		return nil, nil
	}
	return p.translate(st), nil
}

func explainUsage() string {
	return usageText("Usage: "+view.Program+" [global options] explain [options] ADDRESS\n\n"+
		"  Tells where a value comes from: which file and line set it, what it\n  overrides, and the way there through references, module calls, conditions\n  and merges.\n\n"+
		"  ADDRESS names an argument of a resource, data source, module call or\n  provider configuration, a local value, a variable or an output, or a part of\n  one: aws_instance.web.tags[\"Name\"], module.app[\"a\"].var.size, local.tags.env,\n  provider.aws.west.region. Nested blocks are counted from 0, those that\n  dynamic blocks make too: aws_security_group.web.ingress[1].from_port.\n\n"+
		"  In the folder of a unit, ADDRESS may also name a part of the unit, such as\n  inputs.tags.team or remote_state.config.key, and --module and --config choose\n  the unit.\n\n"+
		"  Neither providers nor a state are needed. Values that only providers know\n  are taken from the state if there is one. Sensitive values are never shown:\n  what a provider alone calls sensitive is known if it is installed; otherwise\n  its arguments with names such as password or token are taken for sensitive.",
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-state=path", "Path to the state file to read values from."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module."),
		option("-var-file=path", "Load variable values from a file."),
		option("-no-color", "No color in the output."))()
}
