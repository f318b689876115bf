package run

import (
	"context"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/estate"
)

// bareIncludes returns errors for include blocks without a label, if the strict control
// bare-include is on.
func bareIncludes(ctx context.Context, e *estate.Estate, f *unitflags.FlagUse, units ...*estate.Unit) diag.List {
	if !f.Strictly("bare-include") {
		return nil
	}
	var ds diag.List
	for _, u := range units {
		if _, bare := e.Found.Included(e.Task(ctx), u)[""]; bare {
			ds = append(ds, diag.Errorf(diag.CodeCLIBareInclude, nil, "Include without a label", "The unit %s has an include block without a label, which the strict control bare-include makes an error. Give it one, as in include \"root\".", u.Called())...)
		}
	}
	return ds
}

// mayDestroy lists the units that depend on the unit to destroy, and asks for approval. It
// does nothing without --destroy-dependencies-check.
func mayDestroy(ctx context.Context, c *command.Call, f *unitflags.Flags) (bool, diag.List) {
	if !f.CheckDependents {
		return true, nil
	}
	around := *f
	around.Selection = unitflags.Selection{
		Filtering: unitflags.Filtering{NoFiltersFile: true, Filters: []string{"...^{.}"}},
		Config:    f.Config, Features: f.Features, FeaturesFrom: f.FeaturesFrom, GraphRoot: f.GraphRoot,
	}
	o, ds := units.Options(c, &around, "destroy", nil, nil)
	if ds.HasErrors() {
		return false, ds
	}
	o.Discovery.Lenient = true
	e, ds := units.Open(ctx, c, o)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return false, ds
	}
	if len(e.Found.Units) == 0 {
		return true, nil
	}
	names := strings.Join(unitsByName(e.Found.Units), ", ")
	if f.NonInteractive {
		return true, diag.Warnf(diag.CodeCLINeeded, nil, "Other units need this one", "The unit that is destroyed is needed by: %s.", names)
	}
	answer, err := c.Prompt.Ask(ctx, prompt.Question{Title: "\nThe unit is needed by: " + names + ".\nDo you want to destroy it all the same?", Text: onlyAccepted(c)})
	if err != nil {
		return false, diag.Errorf(diag.CodeCLINotApproved, nil, "Destruction was not approved", "Other units need it, and nobody approved its destruction: %s. Run the command in a terminal, or with --non-interactive.", err)
	}
	return approves(c, answer), nil
}

func unitsByName(units []*estate.Unit) []string {
	out := make([]string, 0, len(units))
	for _, u := range units {
		out = append(out, u.Name)
	}
	return out
}
