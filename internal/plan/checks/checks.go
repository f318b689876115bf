// Package checks converts the results of conditions and check blocks to the form in which plans
// and state record them.
//
// Main type: Result. The one rule: a failed check never stops anything.
package checks

import (
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/state"
)

// Result is the combined result of the conditions of one instance of a block.
type Result struct {
	kind     state.CheckKind
	config   string
	object   string
	outcomes []eval.Outcome
}

// Group converts results to the form of state.
func Group(all []Result) []state.CheckResult {
	var out []state.CheckResult
	index := map[blockKey]int{}
	for _, r := range all {
		k := blockKey{r.kind, r.config}
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, state.CheckResult{Kind: r.kind, Addr: r.config, Status: state.CheckStatus(eval.Pass)})
		}
		obj := state.CheckObject{Addr: r.object, Status: state.CheckStatus(eval.Pass)}
		for _, o := range r.outcomes {
			obj.Status = worse(obj.Status, state.CheckStatus(o.Status))
			if o.Status == eval.Fail {
				obj.Failures = append(obj.Failures, o.Message)
			}
		}
		slices.Sort(obj.Failures)
		out[i].Status = worse(out[i].Status, obj.Status)
		out[i].Objects = append(out[i].Objects, obj)
	}
	state.SortChecks(out)
	return out
}

// worse returns the more severe of two statuses.
func worse(a, b state.CheckStatus) state.CheckStatus {
	rank := func(s state.CheckStatus) int {
		return slices.Index([]state.CheckStatus{state.CheckStatus(eval.Pass), state.CheckStatus(eval.Unknown), state.CheckStatus(eval.Fail), state.CheckStatus(eval.Failed)}, s)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// Of returns the result for an instance with the given outcomes of its conditions.
func Of(d *eval.Desired, out []eval.Outcome) Result {
	return Result{state.CheckResource, d.Resource.Addr().Config().String(), d.Addr().String(), out}
}

// Run evaluates the check blocks of every module instance. data returns the reason for which
// the data source of a check could not be read, or "". known is false if nothing is known about
// the data source; Run then omits the check.
func Run(t *demand.Task, ev *eval.Evaluator, data func(*eval.Desired) (failure string, known bool)) ([]Result, diag.List) {
	var out []Result
	var ds diag.List
	var walk func(m *eval.Module)
	walk = func(m *eval.Module) {
		for _, c := range m.Checks() {
			name, _ := c.Describe()
			failures, known := checkData(t, c, data)
			if !known {
				continue
			}
			outcomes, more := c.Run(t)
			if len(failures) > 0 { // a reported error, because of which nothing more is known
				more = slices.DeleteFunc(more, func(m *diag.Message) bool { return m.Code == eval.CheckOpen })
			}
			outcomes = append(failures, outcomes...)
			ds = append(ds, more...)
			out = append(out, Result{state.CheckBlock, under(m.Addr.Static(), "check."+c.Config().Name), name, outcomes})
		}
		out = append(out, values(m, false)...)
		for _, call := range m.Calls() {
			if ch, ok := call.Children(t); ok {
				for _, child := range ch.All {
					walk(child)
				}
			}
		}
	}
	walk(ev.Root)
	return out, ds
}

// checkData reads the data source of a check.
func checkData(t *demand.Task, c *eval.Check, data func(*eval.Desired) (string, bool)) (failures []eval.Outcome, known bool) {
	r := c.Data()
	if r == nil {
		return nil, true
	}
	in, ok := r.Instances(t)
	if !ok {
		return nil, true
	}
	for _, d := range in.All {
		d.Value(t, nil)
		failure, known := data(d)
		if !known {
			return nil, false
		}
		if failure != "" {
			failures = append(failures, eval.Outcome{Status: eval.Fail, Message: failure})
		}
	}
	return failures, true
}

func moduleName(m *eval.Module, rest string) string {
	if m.Addr == "" {
		return rest
	}
	return string(m.Addr) + "." + rest
}

// Merge replaces older results by newer ones of the same objects.
func Merge(old []state.CheckResult, newer []Result) []state.CheckResult {
	if len(newer) == 0 {
		return old
	}
	byObject := map[blockKey]Result{}
	var order []blockKey
	for _, r := range newer {
		k := blockKey{r.kind, r.object}
		if have, again := byObject[k]; again {
			have.outcomes = append(slices.Clone(have.outcomes), r.outcomes...)
			byObject[k] = have
			continue
		}
		byObject[k] = r
		order = append(order, k)
	}
	var joined []Result
	for _, k := range order {
		joined = append(joined, byObject[k])
	}
	fresh := Group(joined)
	out := slices.Clone(old)
	index := make(map[blockKey]int, len(old))
	for i, c := range old {
		index[blockKey{c.Kind, c.Addr}] = i
	}
	for _, f := range fresh {
		i, known := index[blockKey{f.Kind, f.Addr}]
		if !known {
			out = append(out, f)
			continue
		}
		merged := out[i]
		merged.Objects = slices.Clone(merged.Objects)
		merged.Status = state.CheckPass
		at := make(map[string]int, len(merged.Objects))
		for j, o := range merged.Objects {
			at[o.Addr] = j
		}
		for _, o := range f.Objects {
			if j, ok := at[o.Addr]; ok {
				merged.Objects[j] = o
			} else {
				merged.Objects = append(merged.Objects, o)
			}
		}
		for _, o := range merged.Objects {
			merged.Status = worse(merged.Status, o.Status)
		}
		out[i] = merged
	}
	state.SortChecks(out)
	return out
}

// Soften turns the errors of a check's data source into warnings, since a failed check never
// stops anything. It returns the text of the first error.
func Soften(ds diag.List) (failure string) {
	for _, m := range ds {
		if m.Severity == diag.Error && failure == "" {
			failure = m.Summary + ": " + m.Detail
		}
		m.Severity = diag.Warning
	}
	return failure
}
