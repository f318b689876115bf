package plan

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// What apply does as plan does.

// ConfigValue evaluates an instance's configuration as plan did, with
// ignore_changes in force against the prior value. It returns the value
// without marks, and the paths that are sensitive.
func ConfigValue(t *demand.Task, d *eval.Desired, s *schema.Resource, prior cty.Value) (cty.Value, []cty.Path, diag.List) {
	v, sensitive, ds := configValue(t, d, s)
	if ds.HasErrors() {
		return v, nil, ds
	}
	life := d.Resource.Config().Lifecycle
	return ignoreChanges(life.IgnoreChanges, life.IgnoreAll, prior, v, s), sensitive, ds
}

// WithSensitive marks the given paths and those of the schema as sensitive.
func WithSensitive(v cty.Value, paths []cty.Path, s *schema.Resource) cty.Value {
	return withSensitive(v, paths, s)
}

// SensitivePaths joins the given paths, as far as they lead somewhere, with those of the schema.
func SensitivePaths(s *schema.Resource, v cty.Value, given []cty.Path) []cty.Path {
	return sensitivePaths(s, v, present(v, given))
}

// Present keeps the paths that lead somewhere in a value.
func Present(v cty.Value, paths []cty.Path) []cty.Path { return present(v, paths) }

// SamePaths reports whether two lists hold the same paths.
func SamePaths(a, b []cty.Path) bool { return samePaths(a, b) }

// Conditions is what came of conditions, for the results in state.
type Conditions = checkResult

// ResourceConditions is what came of the conditions of an instance.
func ResourceConditions(d *eval.Desired, out []eval.Outcome) Conditions {
	return checkResult{state.CheckResource, d.Resource.Addr().Config().String(), d.Addr().String(), out}
}

// RunChecks evaluates the check blocks of every module instance. data tells why
// the data source of a check could not be read, "" if it could, and whether
// anything is known of it; a check of which nothing is known is left out.
func RunChecks(t *demand.Task, ev *eval.Evaluator, data func(*eval.Desired) (failure string, known bool)) ([]Conditions, diag.List) {
	var out []checkResult
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
			outcomes = append(failures, outcomes...)
			ds = append(ds, more...)
			out = append(out, checkResult{state.CheckBlock, checkAddr(m, "check."+c.Config().Name), name, outcomes})
		}
		for name, outcomes := range m.OutputRules() {
			out = append(out, checkResult{state.CheckOutput, checkAddr(m, "output."+name), moduleName(m, "output."+name), outcomes})
		}
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

// checkData has the data source of a check read.
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

// MergeChecks puts newer results in place of older ones of the same objects.
func MergeChecks(old []state.CheckResult, newer []Conditions) []state.CheckResult {
	if len(newer) == 0 {
		return old
	}
	byObject := map[string]checkResult{}
	var order []string
	for _, r := range newer {
		k := string(r.kind) + " " + r.object
		if have, again := byObject[k]; again {
			have.outcomes = append(slices.Clone(have.outcomes), r.outcomes...)
			byObject[k] = have
			continue
		}
		byObject[k] = r
		order = append(order, k)
	}
	var joined []checkResult
	for _, k := range order {
		joined = append(joined, byObject[k])
	}
	fresh := GroupChecks(joined)
	out := slices.Clone(old)
	for _, f := range fresh {
		i := slices.IndexFunc(out, func(c state.CheckResult) bool { return c.Kind == f.Kind && c.Addr == f.Addr })
		if i < 0 {
			out = append(out, f)
			continue
		}
		merged := out[i]
		merged.Objects = slices.Clone(merged.Objects)
		merged.Status = state.CheckPass
		for _, o := range f.Objects {
			j := slices.IndexFunc(merged.Objects, func(x state.CheckObject) bool { return x.Addr == o.Addr })
			if j < 0 {
				merged.Objects = append(merged.Objects, o)
			} else {
				merged.Objects[j] = o
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

// RemovedProvisioners returns the destroy provisioners that a removed block
// gives for an instance, and their connection.
func RemovedProvisioners(tree *module.Tree, early module.Options, a addr.Instance) ([]*config.Provisioner, *config.Block) {
	all, _ := readRemoved(tree, early)
	for _, s := range all {
		if s.covers(a) {
			return s.block.Provisioners, s.block.Connection
		}
	}
	return nil, nil
}

// CheckStatements holds moved and removed blocks to their rules.
func CheckStatements(tree *module.Tree, early module.Options) diag.List {
	stmts, ds := moveStatements(tree, early)
	ds = append(ds, checkMoves(tree, stmts)...)
	_, more := readRemoved(tree, early)
	return append(ds, more...)
}

// EvalBody reads a body with a schema and evaluates it to a value without marks.
func EvalBody(t *demand.Task, body hcl.Body, b *schema.Block, s lang.Scope) (cty.Value, diag.List) {
	c, ds := lang.CompileBody(body, b)
	if ds.HasErrors() {
		return cty.UnknownVal(b.ImpliedType()), ds
	}
	v, more := c.Eval(t, s)
	v, _ = v.UnmarkDeep()
	return v, append(ds, more...)
}

// UnknownFunction stands for a function of a provider that is not configured:
// its result is unknown.
func UnknownFunction() function.Function { return unknownFunction() }
