package inspect

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/internal/base/digraph"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// DAGGraph declares dag graph.
func DAGGraph() command.Command {
	return command.Command{
		Name: "dag graph", Synopsis: "Draw the units' dependencies in DOT", Usage: "[options]",
		Units: command.TakesUnitFlags,
		Help: `Draws the units below the working directory and what they need, in DOT, as a
flowchart of Mermaid (--format=mermaid), or as SVG, an image for browsers.`,
		Prepare: func() (flag.Flags, command.Run) {
			o := &listOptions{units: &unitflags.Flags{}}
			fs := o.declare("dag graph", flag.Bool(&o.svg, "svg", "Print one self-contained SVG image, for light and dark backgrounds."),
				flag.Text(&o.format, "format", "FORMAT", "dot, mermaid or svg."))
			return fs, func(ctx context.Context, c *command.Call) int {
				if !o.settle(c) {
					return 1
				}
				return runDAGGraph(ctx, c, o)
			}
		},
	}
}

// runDAGGraph draws the dependencies of units, in DOT or as SVG.
func runDAGGraph(ctx context.Context, c *command.Call, o *listOptions) int {
	switch {
	case o.svg || o.format == "svg" || o.format == "mermaid":
	case o.format == "text" || o.format == "dot":
		o.format = "dot"
		return listUnits(ctx, c, o, false)
	default:
		return c.UsageError("Invalid format", "The formats are dot, mermaid and svg.")
	}
	e, ds := openToList(ctx, c, o.units, o.as, discovery.Settings{}, o.noHidden)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	units.Beside(c, e, ds)
	if o.format == "mermaid" && !o.svg {
		if err := digraph.Mermaid(c.Stdout, drawing(e), nil); err != nil {
			return c.Fail(flags.NotWritten(err))
		}
		return 0
	}
	if err := digraph.SVG(c.Stdout, fmt.Sprintf("%d units in %s", len(e.Found.Units), filepath.Base(c.Dir)), drawing(e)); err != nil {
		return c.Fail(flags.NotWritten(err))
	}
	return 0
}

// drawing returns the graph of the units, the stacks, and dependencies outside of the estate.
func drawing(e *estate.Estate) []digraph.Node {
	var nodes []digraph.Node
	at := map[string]int{}
	for _, x := range e.Found.Entries(false, false) {
		n := digraph.Node{Name: x.Name}
		switch {
		case x.Unit == nil:
			n.Kind = "stack"
		case x.Unit.Excluded != "":
			n.Kind, n.Title = "excluded", "left out, since "+x.Unit.Excluded
		case len(x.Unit.Broken) > 0:
			n.Kind, n.Title = "excluded", "cannot be read"
		case x.Unit.Outside:
			n.Kind = "outside"
		}
		if x.Unit != nil {
			at[x.Unit.ID] = len(nodes)
		}
		nodes = append(nodes, n)
	}
	for _, u := range e.Found.Units {
		i := at[u.ID]
		for _, n := range u.Needs {
			nodes[i].Needs = append(nodes[i].Needs, at[n.ID])
		}
		for _, id := range u.External {
			if _, ok := at[id]; !ok {
				at[id] = len(nodes)
				nodes = append(nodes, digraph.Node{Name: e.Found.Name(id), Kind: "outside"})
			}
			nodes[i].Needs = append(nodes[i].Needs, at[id])
		}
	}
	return nodes
}
