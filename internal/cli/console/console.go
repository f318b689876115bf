// Package console implements the command console, which evaluates expressions in the root
// module.
//
// Main function: Command. The one rule: the console changes nothing. A script ends at its
// first error, and an interactive session continues.
package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

type options struct {
	lock  flag.Lock
	state string
	scope string
	into  string
	json  bool
	plan  bool
	input bool
	vars  []workdir.VarFlag
}

// Command declares console.
func Command() command.Command {
	return command.Command{
		Name: "console", Synopsis: "Try expressions at an interactive command prompt", Usage: "[options]",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.NeedsInputs | command.OneUnit | command.OnlyReads,
		Help: `Evaluate expressions in the root module, with the values of variables and of
the current state. With -scope, the names are those of another module. Objects
that are not in the state are unknown; with -plan, they have their planned
values. Nothing is changed.

At a terminal, the arrow keys recall earlier lines, the tab key completes
names, and an expression continues over several lines until its brackets are
closed. Expressions from a pipe are read the same way, and the first error
ends the command. In a unit, inputs, dependency, feature, include, values and
the locals of the unit can be used too.

"explain ADDRESS", typed there, tells where a value comes from, as the command
explain does.`,
		Examples: []command.Example{
			{Line: "console -var-file=prod.tfvars", Text: "Try expressions with the values of a file."},
			{Line: "console -plan", Text: "Evaluate expressions with the values of a plan."},
			{Line: "console -scope='module.app[\"eu\"]'", Text: "Evaluate expressions in an instance of a called module."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o := &options{input: true}
			fs := flag.Flags{
				flag.Bool(&o.plan, "plan", "Make a plan first, and evaluate with the values of it."),
				flag.Text(&o.scope, "scope", "module", "The address of a module instance, in which expressions are evaluated, such as module.network. Defaults to the root module."),
				flag.Text(&o.state, "state", "path", "A legacy option of the local backend: the state file.").Completes(flag.Files),
				flag.Bool(&o.input, "input", "Do not ask for input. Variables without a value are unknown."),
			}
			fs = append(append(fs, flag.Vars(&o.vars)...), o.lock.Flags().Hide()...)
			fs = append(fs, flag.Bool(&o.json, "json", "").Hide(),
				flag.Text(&o.into, "json-into", "path", "Write what is printed to a file too, as JSON, one object a line.").Completes(flag.Files))
			return fs, func(ctx context.Context, c *command.Call) int {
				switch {
				case len(c.Args) > 0:
					return c.UsageError("Too many command line arguments", "The console command expects no arguments.")
				case o.json:
					return c.UsageError("Output only in json is not allowed", "To have what the console prints as JSON, use -json-into, which writes a file.")
				case !c.Report.UseJSON(false, o.into):
					return 1
				}
				defer c.Report.Finish()
				return run(ctx, c, o)
			}
		},
	}
}

func run(ctx context.Context, c *command.Call, o *options) int {
	scope, err := addr.ParseModuleInstance(o.scope)
	if err != nil && o.scope != "" {
		return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid scope", "The value of -scope must be the address of a module instance, such as module.network or module.app[\"eu\"]: %s.", err))
	}
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: !o.plan, Input: o.input})
	if p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	s, more := readState(ctx, p, o)
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	missing := p.SelectProviders(ctx, s)
	if o.plan && missing.HasErrors() { // otherwise, an expression that needs the provider reports that it is missing
		return c.Fail(append(ds, missing...))
	}
	p.WarnUninitialized(missing)
	if !o.plan && !missing.HasErrors() {
		if invalid := p.Engine.ValidateBySchemas(ctx).Errors(); len(invalid) > 0 {
			c.Report.Tell(invalid)
			fmt.Fprint(c.Stderr, "\nBecause of these errors, some expressions may fail or have unexpected values.\n\n")
		}
	}
	co := engine.ConsoleOptions{Variables: p.Vars, State: p.Translate(s), Plan: o.plan, Scope: scope}
	if c.Unit != nil && scope == "" {
		co.Fallback = beyond(ctx, c, p)
	}
	engine, more := p.Engine.Console(ctx, co)
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	defer func() { c.Report.Tell(engine.Close()) }()
	c.Report.Tell(ds)
	l := &loop{Call: c, engine: engine, explain: func(ctx context.Context, address string) (*explanation.Explanation, diag.List) {
		return explain(ctx, p, o, s, address)
	}}
	if c.System.Terminal.In && c.System.Terminal.Out {
		return l.interactive(ctx)
	}
	return l.piped(ctx)
}

// readState reads the state of the workspace, or of a file. It returns nil if there is none.
func readState(ctx context.Context, p *project.Project, o *options) (*state.State, diag.List) {
	place, ds := p.Backend(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	s, more := p.Call.ReadWorkspace(ctx, place, p.Workspace, workdir.StateFiles{Path: o.state})
	return s, append(ds, more...)
}

// beyond returns a function that resolves references to objects of the unit, which the module
// does not have.
func beyond(ctx context.Context, c *command.Call, p *project.Project) func(hcl.Traversal) (cty.Value, int, diag.List, bool) {
	return func(ref hcl.Traversal) (cty.Value, int, diag.List, bool) {
		switch ref.RootName() {
		case "inputs", "dependency", "feature", "include", "values":
		case "local":
			if len(ref) > 1 {
				if a, ok := ref[1].(hcl.TraverseAttr); ok && p.Engine.Root().Locals[a.Name] != nil {
					return cty.NilVal, 0, nil, false
				}
			}
		default:
			return cty.NilVal, 0, nil, false
		}
		v, ds := c.Unit.Refer(ctx, ref)
		return v, len(ref), ds, true
	}
}

// explain explains a value, with the settings of the console.
func explain(ctx context.Context, p *project.Project, o *options, s *state.State, address string) (*explanation.Explanation, diag.List) {
	c := p.Call
	all, _ := workdir.GatherVariables(workdir.VarSources{Dir: c.Dir, FS: c.View, Env: c.Env, Flags: o.vars}) // errors were reported at the start
	if o.scope != "" {
		address = o.scope + "." + address
	}
	given := engine.ExplainOptions{Variables: p.Vars, Lost: all.Lost, State: p.Translate(s)}
	if c.Unit != nil {
		c.Unit.Explain(&given)
	}
	return p.Engine.Explain(ctx, address, given)
}

// loop reads statements and prints their results.
type loop struct {
	*command.Call
	engine  *engine.Console
	explain func(ctx context.Context, address string) (*explanation.Explanation, diag.List)
}

// help is the output of the statement help.
const help = `Type an expression and press Enter to see its value, as the root module would
have it: "aws_instance.a.id" is an attribute of an object in the state,
"var.x" a variable, "upper(\"x\")" calls a function, and "type(x)" describes the
type of a value. An expression goes on until its brackets are closed.

"explain local.tags" tells which file and line set a value, and what that
replaced.

To leave, type "exit", or press Control-C or Control-D.
`

// statement runs a statement. ends means that it was the last.
func (l *loop) statement(ctx context.Context, text string) (ends bool, ds diag.List) {
	switch strings.TrimSpace(text) {
	case "exit":
		return true, nil
	case "help":
		l.Report.Human.Say(help)
		return false, nil
	case "":
		l.Report.Human.Say("\n")
		return false, nil
	}
	if address, ok := strings.CutPrefix(strings.TrimSpace(text), "explain "); ok {
		x, ds := l.explain(ctx, strings.TrimSpace(address))
		if ds.HasErrors() {
			return false, ds
		}
		var b strings.Builder
		_ = x.Print(&b)
		l.Report.Copy(source.HideCredentials(b.String()))
		return false, ds
	}
	l.Report.Set.Add(&source.File{Path: inputName, Bytes: []byte(text)})
	x, hclDiags := hclsyntax.ParseExpression([]byte(text), inputName, hcl.InitialPos)
	if ds = diag.FromHCL(hclDiags); ds.HasErrors() {
		return false, ds
	}
	hclnative.ResolveTypes(x)
	v, ds := l.engine.Eval(ctx, x)
	if ds.HasErrors() {
		return false, ds
	}
	answer := ""
	if ty, ok := funcs.DescribedType(v); ok {
		answer = funcs.TypeString(ty)
	} else if funcs.ContainsType(v) {
		at := x.Range()
		return false, diag.Errorf(diag.CodeCLITypeFunction, &at, "Invalid use of type function", "The function type describes the type of a value, and its result cannot be a part of another.")
	} else {
		answer = view.Value(v)
	}
	l.Report.Copy(answer + "\n")
	return false, ds
}

// inputName is the file name in the positions of statements.
const inputName = "<console-input>"

// piped runs the statements in a pipe or a file, up to the first error.
func (l *loop) piped(ctx context.Context) int {
	in := bufio.NewReader(l.System.Stdin)
	text := ""
	for {
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return l.Fail(diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the input", "%s.", err))
		}
		text += line
		if err == nil && !closed(text) {
			continue
		}
		if text != "" {
			ends, ds := l.statement(ctx, text)
			if l.Report.Tell(ds); ds.HasErrors() {
				return 1
			}
			if ends {
				return 0
			}
		}
		if text = ""; err != nil {
			return 0
		}
	}
}

// interactive runs the statements that a user types.
func (l *loop) interactive(ctx context.Context) int {
	edit := l.System.Terminal.Edit(completer(l.engine.Names()))
	text := ""
	for {
		prompt := "> "
		if text != "" {
			prompt = ": "
		}
		line, err := edit.ReadLine(prompt)
		if err != nil {
			fmt.Fprintln(l.Stdout)
			return 0
		}
		if text += line; !closed(text + "\n") {
			text += "\n"
			continue
		}
		if strings.TrimSpace(text) != "" {
			ends, ds := l.statement(ctx, text+"\n")
			if l.Report.Tell(ds); ends {
				return 0
			}
		}
		text = ""
	}
}
