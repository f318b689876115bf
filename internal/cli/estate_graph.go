package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/digraph"
	"github.com/terrace-iac/terrace/internal/estate"
)

func dagCommand(_ context.Context, s *session, _ []string) int {
	return s.usageError("dag graph", "No command given", "The command is \"dag graph\".")
}

// dagGraphCommand draws what units need, in DOT or as SVG.
func dagGraphCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.listFlags("dag graph", args)
	if !ok {
		return 1
	}
	switch {
	case o.svg || o.format == "svg":
	case o.format == "text" || o.format == "dot":
		o.format = "dot"
		return s.listUnits(ctx, o, false)
	default:
		return s.usageError("dag graph", "Invalid format", "The formats are dot and svg.")
	}
	e, ds := s.openToList(ctx, o.units, o.as, estate.Look{}, o.noHidden)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	s.beside(e, ds)
	if err := digraph.SVG(s.Stdout, fmt.Sprintf("%d units in %s", len(e.Units), filepath.Base(s.Dir)), drawing(e)); err != nil {
		return s.fail(diag.Errorf(nil, "Failed to write the picture", "%s.", err))
	}
	return 0
}

// drawing is the units, the stacks and what lies outside, with what needs what.
func drawing(e *estate.Estate) []digraph.Node {
	var nodes []digraph.Node
	at := map[string]int{}
	for _, x := range e.Entries(false, false) {
		n := digraph.Node{Name: x.Name}
		switch {
		case x.Unit == nil:
			n.Kind = "stack"
		case x.Unit.Excluded != "":
			n.Kind, n.Title = "excluded", "left out, since "+x.Unit.Excluded
		case x.Unit.Broken != nil && len(x.Unit.Broken) > 0:
			n.Kind, n.Title = "excluded", "cannot be read"
		case x.Unit.Outside:
			n.Kind = "outside"
		}
		if x.Unit != nil {
			at[x.Unit.ID] = len(nodes)
		}
		nodes = append(nodes, n)
	}
	for _, u := range e.Units {
		i := at[u.ID]
		for _, n := range u.Needs {
			nodes[i].Needs = append(nodes[i].Needs, at[n.ID])
		}
		for _, id := range u.External {
			if _, ok := at[id]; !ok {
				at[id] = len(nodes)
				nodes = append(nodes, digraph.Node{Name: e.RelativeName(id), Kind: "outside"})
			}
			nodes[i].Needs = append(nodes[i].Needs, at[id])
		}
	}
	return nodes
}

func dagUsage() string {
	return usageText("Usage: "+view.Program+" [global options] dag graph [options]\n\n  Draws the units below the working folder and what they need, in DOT or as\n  SVG, a picture that every browser shows.",
		append([]string{option("--svg", "As SVG, in one piece, for light and dark ground.")}, choiceOptions()...)...)()
}
