package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

type providerAddr = addr.Provider

// showPlans prints the plans of units; equal ones are told once.
func (r *estateRun) showPlans(results []*estate.Result) {
	if r.human == nil {
		return
	}
	units := map[string][]string{}
	var order []string
	for _, res := range results {
		if text := r.texts[res.Unit.Name]; text != "" {
			if units[text] == nil {
				order = append(order, text)
			}
			units[text] = append(units[text], res.Unit.Name)
		}
	}
	for _, text := range order {
		names := units[text]
		r.human.Say("\n")
		if len(names) == 1 {
			r.human.Strong("# Unit " + names[0] + "\n")
		} else {
			r.human.Strong(fmt.Sprintf("# The same in %d units: %s\n", len(names), shortList(names)))
		}
		r.human.Say(text)
	}
	for _, res := range results {
		if res.Deferred != "" {
			r.human.Say("\nUnit " + res.Unit.Name + " is deferred: " + res.Deferred + ".\n")
		}
	}
}

const mostNames = 10

func shortList(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}

// table prints the units with their counts, and how many of each result there are.
func (r *estateRun) table(results []*estate.Result) {
	var b strings.Builder
	b.WriteString("\n")
	counts := map[estate.Status]int{}
	var total estate.Counts
	var first, last time.Time
	var deferred int
	for _, res := range results {
		counts[res.Status]++
		if res.Deferred != "" {
			deferred++
		}
		total.Add += res.Counts.Add
		total.Change += res.Counts.Change
		total.Destroy += res.Counts.Destroy
		if first.IsZero() || res.Started.Before(first) {
			first = res.Started
		}
		if res.Ended.After(last) {
			last = res.Ended
		}
	}
	fmt.Fprintf(&b, "❯❯ Run Summary  %d units  %s\n", len(results), last.Sub(first).Round(time.Millisecond))
	for _, st := range []struct {
		status estate.Status
		name   string
	}{{estate.Succeeded, "Succeeded"}, {estate.Failed, "Failed"}, {estate.EarlyExit, "Early Exits"}, {estate.Excluded, "Excluded"}} {
		if counts[st.status] > 0 {
			fmt.Fprintf(&b, "   %-12s %d\n", st.name, counts[st.status])
		}
	}
	if deferred > 0 {
		fmt.Fprintf(&b, "   %-12s %d\n", "Deferred", deferred)
	}
	if r.name == "plan" || r.name == "apply" || r.name == "destroy" {
		r.rows(&b, results, total)
	}
	r.human.Say(b.String())
}

// rows are the units that something is done in.
func (r *estateRun) rows(b *strings.Builder, results []*estate.Result, total estate.Counts) {
	fmt.Fprintf(b, "\n   %-*s  %6s %6s %7s\n", r.width, "Unit", "add", "change", "destroy")
	for _, res := range results {
		n := res.Counts
		note := ""
		switch {
		case res.Status != estate.Succeeded:
			note = "  " + string(res.Status)
		case res.Deferred != "":
			note = "  deferred"
		case n == estate.Counts{} && !res.Changes && !r.f.summaryPerUnit:
			continue
		}
		fmt.Fprintf(b, "   %-*s  %6d %6d %7d%s\n", r.width, res.Unit.Name, n.Add, n.Change, n.Destroy, note)
	}
	fmt.Fprintf(b, "   %-*s  %6d %6d %7d\n", r.width, "Total", total.Add, total.Change, total.Destroy)
}

func (r *estateRun) summaryJSON(results []*estate.Result) {
	counts := map[string]int{}
	var total estate.Counts
	for _, res := range results {
		counts[string(res.Status)]++
		total.Add += res.Counts.Add
		total.Change += res.Counts.Change
		total.Destroy += res.Counts.Destroy
	}
	r.stream.Typed(fmt.Sprintf("%d units", len(results)), "estate_summary", map[string]any{
		"operation": r.name, "units": len(results), "results": counts,
		"changes": map[string]int{"add": total.Add, "change": total.Change, "remove": total.Destroy},
	})
}

// outputs prints the outputs of every unit.
func (r *estateRun) outputs(ctx context.Context) int {
	all, ds := r.estate.Outputs(ctx)
	if ds.HasErrors() {
		return r.failEstate(r.estate, ds)
	}
	r.tellEstate(ds)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	if r.op.json.on {
		doc := map[string]any{}
		for _, name := range names {
			m, err := view.JSONOutputs(all[name], true)
			if err != nil {
				return r.fail(diag.Errorf(nil, "Failed to write outputs", "The outputs of %s cannot be written as JSON: %s.", name, err))
			}
			doc[name] = m
		}
		b, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			return r.fail(diag.Errorf(nil, "Failed to write outputs", "The outputs cannot be written as JSON: %s.", err))
		}
		fmt.Fprintf(r.Stdout, "%s\n", b)
		return 0
	}
	for _, name := range names {
		if len(all[name]) > 0 {
			fmt.Fprintf(r.Stdout, "# %s\n", name)
			_ = view.Outputs(r.Stdout, all[name], r.op.reveal)
		}
	}
	return 0
}
