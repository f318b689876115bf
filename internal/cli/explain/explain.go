// Package explain implements the command explain, which reports the origin of a value. In the
// directory of a unit, it includes the unit's inputs.
package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// Command declares explain.
func Command() command.Command {
	return command.Command{
		Name: "explain", Synopsis: "Show where a value comes from", Usage: "[options] ADDRESS",
		Uses:  command.State,
		Units: command.InUnit | command.Uninitialized | command.OnlyReads,
		Help: `Shows where a value comes from: the file and line that set it, what it
overrides, and the path to it through references, module calls, conditions
and merges.

ADDRESS names an argument of a resource, data source, module call or
provider configuration, a local value, a variable or an output, or a part of
one: aws_instance.web.tags["Name"], module.app["a"].var.size, local.tags.env,
provider.aws.west.region. Nested blocks are counted from 0, those that
dynamic blocks make too: aws_security_group.web.ingress[1].from_port.

In the directory of a unit, ADDRESS may also name a part of the unit, such as
inputs.tags.team or remote_state.config.key, and --module and --config choose
the unit.

With -code, a message is explained instead of a value: what it means and what
to do. CODE is the code of the message, as in -json output, or its first line;
all codes are shown, in JSON as an array, that such a message may have.

Neither providers nor a state are needed. Values that only providers know
are taken from the state if there is one. Sensitive values are never shown.
If a provider is not installed, its schema is not known, and arguments with
names such as password or token are treated as sensitive.`,
		Args:     []command.Arg{{Name: "ADDRESS", Help: "What to explain.", Complete: flag.Explained}},
		Examples: []command.Example{{Line: "explain local.tags", Text: "Show which file and line set a local value."}, {Line: "explain -code eval/cycle", Text: "Show what the messages about cycles mean."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &Options{}
			return o.Flags(), func(ctx context.Context, c *command.Call) int {
				if o.Code != "" {
					return explainCode(c, o)
				}
				if !o.Settle(c) {
					return 1
				}
				return runExplain(ctx, c, o)
			}
		},
	}
}

func (o *Options) Flags() flag.Flags {
	fs := flag.Flags{
		flag.Text(&o.Code, "code", "CODE", "Explain the messages that have this code.").Completes(flag.Codes),
		flag.Bool(&o.Json, "json", "Produce output in a machine-readable JSON format."),
		flag.Text(&o.state, "state", "path", "Path to the state file to read values from.").Completes(flag.Files),
	}
	return append(append(fs, flag.Vars(&o.Vars)...), flag.NoColor())
}

// Settle sets the address from the arguments. If they are invalid, it reports an error and
// returns false.
func (o *Options) Settle(c *command.Call) (ok bool) {
	if len(c.Args) != 1 {
		c.UsageError("Address required", "The explain command expects exactly one argument: the address of what to explain, such as var.region or aws_instance.web.ami.")
		return false
	}
	o.Address = c.Arg(0)
	return true
}

type Options struct {
	Address string
	Code    string // a message code to explain instead of an address
	Json    bool
	Vars    []workdir.VarFlag
	state   string
}

func runExplain(ctx context.Context, c *command.Call, o *Options) int {
	x, ds := Explain(ctx, c, o, engine.ExplainOptions{})
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if len(ds) > 0 {
		_ = c.Report.Human.Printer.Print(c.Stderr, c.Report.Filter(ds)) // Stdout contains only the answer, for other programs
	}
	return printExplanation(c, x, o.Json)
}

func printExplanation(c *command.Call, x *explanation.Explanation, asJSON bool) int {
	for _, s := range x.Steps {
		s.Text = c.Report.Redactor.Text(s.Text)
	}
	if !asJSON {
		var b strings.Builder
		_ = x.Print(&b)
		_, _ = io.WriteString(c.Stdout, source.HideCredentials(b.String()))
		return 0
	}
	doc, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "The explanation cannot be written: %s.", err))
	}
	fmt.Fprintf(c.Stdout, "%s\n", source.HideCredentials(string(doc)))
	return 0
}

// Explain returns the explanation. given contains the values and settings that do not come
// from the directory.
func Explain(ctx context.Context, c *command.Call, o *Options, given engine.ExplainOptions) (*explanation.Explanation, diag.List) {
	p, ds := project.LoadInstalled(ctx, c, workdir.LoadOptions{Vars: o.Vars, Partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	st, more := stateToExplain(ctx, p, o)
	if more.HasErrors() {
		return nil, append(ds, more...)
	}
	all, _ := workdir.GatherVariables(workdir.VarSources{Dir: c.Dir, FS: c.View, Env: c.Env, Flags: o.Vars, Read: c.Files})
	given.Variables, given.Lost, given.State = p.Vars, all.Lost, st
	given.Installed = func() { p.SelectProviders(ctx, st) } // providers that are not installed are skipped
	x, more := p.Engine.Explain(ctx, o.Address, given)
	return x, append(ds, more...)
}

// stateToExplain reads the state, and returns nil if there is none. A read error is an error
// only if the user named the state.
func stateToExplain(ctx context.Context, p *project.Project, o *Options) (*state.State, diag.List) {
	where := p.Backend
	if o.state != "" {
		where = func(ctx context.Context) (*workdir.OpenedBackend, diag.List) {
			enc, ds := p.Encryption(ctx)
			if ds.HasErrors() {
				return nil, ds
			}
			return p.Call.LocalFile(ctx, enc)
		}
	}
	b, ds := where(ctx)
	if ds.HasErrors() {
		return nil, nil
	}
	st, ds := p.Call.ReadWorkspace(ctx, b, p.Workspace, workdir.StateFiles{Path: o.state})
	switch {
	case ds.HasErrors() && o.state != "":
		return nil, ds
	case st == nil && o.state != "":
		return nil, diag.Errorf(diag.CodeStateNone, nil, "No state found", "There is no state in %s.", o.state)
	case ds.HasErrors() || st == nil:
		return nil, nil
	}
	return p.Translate(st), nil
}
