package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/state"
)

// explainCmd declares explain.
func explainCmd() command.Command {
	return command.Command{
		Name: "explain", Synopsis: "Tell where a value comes from", Usage: "[options] ADDRESS",
		Units: command.InUnit | command.Uninitialized | command.OnlyReads,
		Help: `Tells where a value comes from: which file and line set it, what it
overrides, and the way there through references, module calls, conditions
and merges.

ADDRESS names an argument of a resource, data source, module call or
provider configuration, a local value, a variable or an output, or a part of
one: aws_instance.web.tags["Name"], module.app["a"].var.size, local.tags.env,
provider.aws.west.region. Nested blocks are counted from 0, those that
dynamic blocks make too: aws_security_group.web.ingress[1].from_port.

In the folder of a unit, ADDRESS may also name a part of the unit, such as
inputs.tags.team or remote_state.config.key, and --module and --config choose
the unit.

Neither providers nor a state are needed. Values that only providers know
are taken from the state if there is one. Sensitive values are never shown:
what a provider alone calls sensitive is known if it is installed; otherwise
its arguments with names such as password or token are taken for sensitive.`,
		Args: []command.Arg{{Name: "ADDRESS", Help: "What to explain.", Complete: command.Addresses}},
		Prepare: func() (command.Flags, command.Run) {
			o := &explainOptions{}
			return o.flags(), func(ctx context.Context, c *command.Call) int {
				if !o.settle(c) {
					return 1
				}
				return runExplain(ctx, c, o)
			}
		},
	}
}

func (o *explainOptions) flags() command.Flags {
	fs := command.Flags{
		command.Bool(&o.json, "json", "Produce output in a machine-readable JSON format."),
		command.Text(&o.state, "state", "path", "Path to the state file to read values from.").Completes(command.Files),
	}
	return append(append(fs, flags.Vars(&o.vars)...), flags.NoColor())
}

// settle takes over the address. ok is false after a mistake, which is reported.
func (o *explainOptions) settle(c *command.Call) (ok bool) {
	if len(c.Args) != 1 {
		c.UsageError("Address required", "The explain command expects exactly one argument: the address of what to explain, such as var.region or aws_instance.web.ami.")
		return false
	}
	o.address = c.Arg(0)
	return true
}

type explainOptions struct {
	address string
	json    bool
	vars    []vars.Flag
	state   string
}

func runExplain(ctx context.Context, c *command.Call, o *explainOptions) int {
	x, ds := explain(ctx, c, o, engine.ExplainOptions{})
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if len(ds) > 0 {
		_ = c.Report.Human.Printer.Print(c.Stderr, c.Report.Filter(ds)) // what others read from Stdout stays clean
	}
	return printExplanation(c, x, o.json)
}

func printExplanation(c *command.Call, x *engine.Explanation, asJSON bool) int {
	if !asJSON {
		_ = x.Print(c.Stdout)
		return 0
	}
	doc, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return c.Fail(diag.Errorf(nil, "Failed to write JSON", "The explanation cannot be written: %s.", err))
	}
	fmt.Fprintf(c.Stdout, "%s\n", doc)
	return 0
}

// explain answers with what given says besides what the folder holds.
func explain(ctx context.Context, c *command.Call, o *explainOptions, given engine.ExplainOptions) (*engine.Explanation, diag.List) {
	p, ds := loadInstalled(ctx, c, loadOptions{vars: o.vars, partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.close()
	st, more := p.stateToExplain(ctx, o)
	if more.HasErrors() {
		return nil, append(ds, more...)
	}
	all, _ := vars.Gather(vars.Sources{Dir: c.Dir, FS: virtual(c), Env: c.Env, Flags: o.vars})
	given.Variables, given.Lost, given.State = p.vars, all.Lost, st
	given.Installed = func() { p.selectProviders(ctx, st) } // those that are not installed are asked for nothing
	x, more := p.engine.Explain(ctx, o.address, given)
	return x, append(ds, more...)
}

// loadInstalled loads a configuration without the modules that are not here, or
// that have mistakes in them, which is a warning.
func loadInstalled(ctx context.Context, c *command.Call, o loadOptions) (*project, diag.List) {
	p, ds := load(ctx, c, o)
	missing := func(m *diag.Message) bool {
		return m.Severity == diag.Warning || module.Missing(m) || m.At != nil && filepath.Dir(m.At.Filename) != "."
	}
	if p != nil || slices.ContainsFunc(ds, func(m *diag.Message) bool { return !missing(m) }) {
		return p, ds
	}
	o.rootOnly = true
	p, more := load(ctx, c, o)
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
		where = func(ctx context.Context) (*place, diag.List) { return localFile(ctx, p.Call) }
	}
	b, ds := where(ctx)
	if ds.HasErrors() {
		return nil, nil
	}
	st, ds := shownIn(ctx, p.Call, b, p.workspace, flags.State{Path: o.state})
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
