package discovery

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/unit"
)

// ByItself is why most units are excluded.
const ByItself = "its exclude block says so"

// Excludes reports whether an exclude block is about a command.
func Excludes(x *unit.Exclude, command string) bool {
	return slices.ContainsFunc(x.Actions, func(a string) bool {
		return a == command || a == "all" || a == "all_except_output" && command != "output"
	})
}

// Protected reports whether a unit may not be destroyed. u and t are to take all outputs
// for unknown.
func Protected(t *demand.Task, u *unit.Unit) (bool, diag.List) {
	sc, ds := u.Scalars(t)
	if ds.HasErrors() || sc == nil || sc.PreventDestroy == nil {
		return false, ds
	}
	v, _ := sc.PreventDestroy.Value.Unmark()
	return v.IsKnown() && !v.IsNull() && v.Type().FriendlyName() == "bool" && v.True(), ds
}

// A verdict is what a unit says of its part in the command.
type verdict struct {
	exclude *unit.Exclude
	guarded bool
	ds      diag.List
}

func (f *finder) judge(ctx context.Context, u *Unit) (v verdict) {
	v.exclude, v.ds = u.Exclude(f.loader.Task(ctx))
	if f.s.Destroy && !f.s.Lenient {
		guarded, more := Protected(f.static.Task(ctx), u.In(f.static))
		v.guarded, v.ds = guarded, append(v.ds, more...)
	}
	return v
}

// exclude marks the units that take no part by their own word.
func (f *finder) exclude(ctx context.Context) diag.List {
	all := parallel.Map(len(f.Units), 0, func(i int) verdict {
		u := f.Units[i]
		switch {
		case u.Broken != nil:
			return verdict{}
		case u.early != nil:
			return u.early.verdict
		}
		return f.judge(ctx, u)
	})
	var ds diag.List
	needed := map[*Unit]bool{} // by a unit that is excluded with its dependencies; not transitive, as in Terragrunt
	guarded := map[*Unit]bool{}
	for i, v := range all {
		ds = append(ds, v.ds...)
		u := f.Units[i]
		if x := v.exclude; x != nil && x.If && Excludes(x, f.s.Command) {
			u.Excluded = ByItself
			if x.ExcludeDependencies && !f.s.Lenient { // what lists units lists these, as in Terragrunt
				for _, n := range u.Needs {
					needed[n] = true
				}
			}
		}
		if v.guarded {
			guarded[u] = true
		}
	}
	closure(guarded, needs)
	for _, u := range f.Units {
		switch {
		case u.Excluded != "":
		case u.Removed && u.Broken == nil && (!f.s.Removals || f.s.Command != "plan" && f.s.Command != "apply"):
			u.Excluded = "it is no longer there, and only plan and, with --filter-allow-destroy, apply are about such units"
		case needed[u]:
			u.Excluded = "a unit that needs it is excluded with its dependencies"
		case guarded[u]:
			u.Excluded = "it is protected by prevent_destroy, or needed by a unit that is"
		}
	}
	return ds
}
