package discovery

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/unit"
)

// ByItself is the reason of units that their own exclude block excludes.
const ByItself = "its exclude block says so"

// Excludes reports whether an exclude block applies to a command.
func Excludes(x *unit.Exclude, command string) bool {
	return slices.ContainsFunc(x.Actions, func(a string) bool {
		return a == command || a == "all" || a == "all_except_output" && command != "output"
	})
}

// Protected reports whether prevent_destroy protects a unit. u and t must evaluate with all
// outputs unknown.
func Protected(t *demand.Task, u *unit.Unit) (bool, diag.List) {
	sc, ds := u.Scalars(t)
	if ds.HasErrors() || sc == nil || sc.PreventDestroy == nil {
		return false, ds
	}
	v, _ := sc.PreventDestroy.Value.Unmark()
	return v.IsKnown() && !v.IsNull() && v.Type().FriendlyName() == "bool" && v.True(), ds
}

// A verdict is the result of a unit's exclude block and prevent_destroy attribute.
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

// exclude marks the units that their own files, or those of other units, exclude from the
// command.
func (f *finder) exclude(ctx context.Context) diag.List {
	all := parallel.Map(len(f.Units), 0, func(i int) verdict {
		u := f.Units[i]
		switch {
		case u.Broken != nil:
			return verdict{}
		case u.judged != nil:
			return *u.judged
		}
		return f.judge(ctx, u)
	})
	var ds diag.List
	needed := map[*Unit]bool{} // dependencies of units that are excluded with their dependencies; not transitive, as in Terragrunt
	guarded := map[*Unit]bool{}
	for i, v := range all {
		ds = append(ds, v.ds...)
		u := f.Units[i]
		if x := v.exclude; x != nil && x.If && Excludes(x, f.s.Command) {
			u.Excluded = ByItself
			if x.ExcludeDependencies && !f.s.Lenient { // commands that list units list these, as in Terragrunt
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
