package unitview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// Sentence returns one line about the result of a unit. destroying means that the run destroys
// the objects that the units manage.
func Sentence(op estate.Op, res *estate.Result, destroying bool) string {
	n := res.Counts
	text := ""
	switch {
	case res.Status == estate.EarlyExit:
		return "not run: " + earlyWhy(res)
	case res.Status == estate.Excluded:
		return "excluded: " + cmp.Or(res.Cause, "its exclude block says so")
	case res.Status == estate.Failed:
		return "failed: " + res.Cause
	case res.Reason == "error ignored":
		text := "failed, which the ignore block " + res.Cause + " takes for success"
		if res.Message != "" {
			text += ": " + res.Message
		}
		return text
	case op == estate.Validate:
		return "valid"
	case op == estate.Init:
		return "ready"
	case op == estate.Apply && (destroying || res.Unit.Removed):
		return destroyed(n)
	case op == estate.Apply:
		return fmt.Sprintf("applied: %d added, %d changed, %d destroyed", n.Add, n.Change, n.Destroy)
	case len(res.Deferred) == 1 && res.Deferred[0].Address == "":
		return "deferred: " + res.Deferred[0].String()
	case !res.Changes:
		return "no changes"
	case n == plan.Counts{} && res.Drift > 0:
		text = view.Numbered(res.Drift, "object") + " changed outside"
	case n != plan.Counts{} || len(res.Deferred) == 0:
		text = "plan: " + strings.TrimSuffix(view.Summary(n), ".")
	}
	if len(res.Deferred) > 0 {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d deferred", len(res.Deferred))
	}
	return text
}

// destroyed returns the line about a destroy.
func destroyed(n plan.Counts) string {
	text := "nothing to destroy"
	switch {
	case n.Destroy == 1:
		text = "destroyed 1 object"
	case n.Destroy > 1:
		text = fmt.Sprintf("destroyed %d objects", n.Destroy)
	case n.Forget > 0:
		text = "destroyed nothing"
	}
	if n.Forget > 0 {
		text += fmt.Sprintf(", forgot %d", n.Forget)
	}
	return text
}

func earlyWhy(res *estate.Result) string {
	if res.Reason == "ancestor error" {
		if res.Blocker.Name == "" {
			return "another unit failed"
		}
		if res.Blocker.Kept {
			return "it needs " + res.Blocker.Name + ", which was not run"
		}
		return "it needs " + res.Blocker.Name + ", which failed"
	}
	return res.Cause
}

// PlaceJSON returns a source range in the form of JSON events, or nil.
func PlaceJSON(at *source.Range) any {
	if at == nil {
		return nil
	}
	return map[string]any{"filename": at.Filename, "line": at.Start.Line, "column": at.Start.Column}
}

// WaitsJSON returns what a deferred change waits for, in the form of JSON events: objects of the
// same unit and outputs of other units.
func WaitsJSON(d estate.Deferral) []map[string]any {
	out := view.WaitsForObjects(d.Objects)
	for _, w := range d.Waits {
		out = append(out, map[string]any{"unit": w.Unit, "reference": w.Ref, "input": w.Input, "at": PlaceJSON(&w.At)})
	}
	return out
}

// SplitByOrigin splits messages into those about unit files and those about the files of the
// module.
func SplitByOrigin(res *estate.Result, ds diag.List) (inUnit, inModule diag.List) {
	of := func(m *diag.Message) bool {
		return m.At != nil && res.Set != nil && res.Set.File(m.At.Filename) != nil
	}
	return slices.DeleteFunc(slices.Clone(ds), of), slices.DeleteFunc(slices.Clone(ds), func(m *diag.Message) bool { return !of(m) })
}

// Names returns the names of the units.
func Names(results []*estate.Result) []string {
	var out []string
	for _, res := range results {
		out = append(out, res.Unit.Name)
	}
	return out
}

// Deferred returns the number of deferred changes.
func Deferred(results []*estate.Result) int {
	n := 0
	for _, res := range results {
		n += len(res.Deferred)
	}
	return n
}

// Changes reports whether any unit has changes.
func Changes(results []*estate.Result) bool {
	return slices.ContainsFunc(results, func(x *estate.Result) bool { return x.Changes })
}
