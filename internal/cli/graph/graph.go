// Package graph implements the command graph, which prints the dependencies in a configuration
// in the DOT language.
//
// Main function: Command. The one rule: package depgraph decides the content of the graph.
package graph

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/plan/depgraph"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
)

type options struct {
	typ, plan string
	format    string
	cycles    bool
	svg       bool
	vars      []workdir.VarFlag
}

// Command declares graph.
func Command() command.Command {
	return command.Command{
		Name: "graph", Synopsis: "Generate a Graphviz graph of the steps in an operation", Usage: "[options]",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.OnlyReads,
		Help: `Print the dependency graph of the configuration, in the DOT language of
Graphviz, with -format=mermaid as a flowchart for Markdown, or with -svg as an
image for a browser. Nothing is evaluated, and no
provider is started. For the units of an estate, use "dag graph"; for a page
about its plan, "run --all plan --html".`,
		Examples: []command.Example{
			{Line: "graph -svg >graph.svg", Text: "Draw the configuration as an image for a browser."},
			{Line: "graph | dot -Tpng >graph.png", Text: "Draw it with Graphviz."},
			{Line: "graph -format=mermaid", Text: "Print a flowchart for Markdown, which GitHub and GitLab draw."},
			{Line: "graph -type=plan-destroy", Text: "Show the order in which the objects in the state would be destroyed."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o := &options{}
			depth, verbose := 0, false
			fs := flag.Flags{
				flag.Text(&o.plan, "plan", "tfplan", "Draw a saved plan, with the instances that it changes.").Completes(flag.Files),
				flag.Text(&o.typ, "type", "plan", "The operation: plan, plan-refresh-only, plan-destroy or apply. Defaults to plan, or to the operation of the saved plan."),
				flag.Text(&o.format, "format", "dot", "The language of the graph: dot or mermaid. Mermaid has resources, variables and providers only."),
				flag.Bool(&o.cycles, "draw-cycles", "Draw the edges of cycles in color."),
				flag.Bool(&o.svg, "svg", "Print resources, variables and providers and their dependencies as one self-contained SVG image, for light and dark backgrounds."),
				flag.Int(&depth, "module-depth", "n", "Deprecated: it does nothing.").Hide(),
				flag.Bool(&verbose, "verbose", "").Hide(),
			}
			return append(fs, flag.Vars(&o.vars)...), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Unexpected argument", c.NoArguments())
				}
				return run(ctx, c, o)
			}
		},
	}
}

func run(ctx context.Context, c *command.Call, o *options) int {
	in := depgraph.Input{Type: depgraph.Type(o.typ)}
	switch in.Type {
	case "", depgraph.Plan, depgraph.RefreshOnly, depgraph.Destroy, depgraph.Apply:
	default:
		return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Unsupported graph type", `The -type=... argument must be either "plan", "plan-refresh-only", "plan-destroy", or "apply".`))
	}
	switch o.format {
	case "", "dot", "mermaid":
	default:
		return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Unsupported graph format", `The -format=... argument must be either "dot" or "mermaid".`))
	}
	if o.svg && o.format != "" {
		return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Conflicting formats", "Use either -svg or -format."))
	}
	po := workdir.LoadOptions{Vars: o.vars, Partial: true}
	var saved *plan.Plan
	if o.plan != "" {
		f, ds := c.ReadPlanFile(ctx, o.vars, o.plan)
		if ds.HasErrors() {
			return c.Fail(ds)
		}
		saved, po = f.Plan, f.Options(o.vars)
		in.Changes, in.State = saved.Changes, saved.Prior
	}
	p, ds := project.Load(ctx, c, po)
	if p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	in.Tree = p.Engine.Tree()
	switch {
	case in.Type == "" && saved != nil && saved.Mode == plan.Destroy:
		in.Type = depgraph.Destroy
	case in.Type == "" && saved != nil:
		in.Type = depgraph.Apply
	case in.Type == "":
		in.Type = depgraph.Plan
	}
	if in.Type == depgraph.Destroy && saved == nil {
		s, more := p.CurrentState(ctx)
		if ds = append(ds, more...); more.HasErrors() {
			return c.Fail(ds)
		}
		in.State = p.Translate(s)
	}
	c.Report.AsideHere(ds)
	if saved == nil {
		p.WarnUninitialized(p.NeedsInit(ctx))
	}
	g := depgraph.Make(in)
	if cycles := g.Cycles(); len(cycles) > 0 && !o.cycles {
		c.Report.AsideHere(diag.Warnf(diag.CodeCLICycleGraph, nil, "Cycle in the graph", "The graph has %d cycles. Use -draw-cycles to draw them in color.", len(cycles)))
	}
	if o.format == "mermaid" {
		if err := g.Mermaid(c.Stdout, o.cycles); err != nil {
			return c.Fail(flags.NotWritten(err))
		}
		return 0
	}
	if o.svg {
		if err := g.SVG(c.Stdout, filepath.Base(c.KeepDir())); err != nil {
			return c.Fail(flags.NotWritten(err))
		}
		return 0
	}
	fmt.Fprintln(c.Stdout, g.DOT(o.cycles))
	return 0
}
