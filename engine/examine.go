package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/validate"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty/function"
)

// An Examiner finds errors in configuration that does not run yet: its directory may not exist,
// modules and providers may not be installed, and files that it reads may be created later. It
// only reports errors that every run would have. It is safe for concurrent use.
type Examiner struct{ functions map[string]function.Function }

// NewExaminer returns an Examiner. now returns the time that functions such as timestamp() use.
func NewExaminer(now func() time.Time) *Examiner {
	all := maps.Clone(funcs.Table(funcs.Config{Now: now, PureOnly: true}))
	unknown := resourceclient.UnknownFunction()
	for name := range all {
		switch base := strings.TrimPrefix(name, "core::"); {
		case strings.HasPrefix(base, "file"), base == "templatefile", base == "abspath", base == "pathexpand":
			all[name] = unknown
		}
	}
	return &Examiner{all}
}

// Module returns the errors in a root module and all modules that it calls. It calls the
// built-in provider only. It reports nothing if a module source depends on values.
func (x *Examiner) Module(ctx context.Context, o Options) diag.List {
	o.ReadState = func(context.Context, ReadStateRequest) (*state.State, diag.List) { return nil, nil } // no state is read
	e, ds := Open(ctx, o)
	if e == nil {
		return ds.Errors()
	}
	defer e.Close()
	if e.tree == nil || computedSources(e.tree) {
		return nil
	}
	ds = slices.DeleteFunc(ds.Errors(), module.NeedsInstall)
	if ds.HasErrors() {
		return ds
	}
	return validate.Run(ctx, validate.Input{
		Tree: e.tree, Providers: e.pool, Functions: x.functions, Provisioners: o.Provisioners,
		Without: func(a addr.Provider) bool { return !a.IsBuiltIn() },
	}).Errors()
}

// computedSources reports whether a module source or version depends on values.
func computedSources(t *module.Tree) bool {
	found := false
	t.Walk(func(n *module.Node) {
		for _, c := range n.Config.Calls {
			for _, s := range []*config.Setting{c.Source, c.Version} {
				found = found || s != nil && len(s.Expr.Variables()) > 0
			}
		}
	})
	return found
}

// Inputs returns errors for given values of root variables that fail the variables' validation
// rules. It ignores rules whose result is unknown.
func (x *Examiner) Inputs(ctx context.Context, root *config.Module, given map[string]InputValue) diag.List {
	values := map[string]eval.Input{}
	some := false
	for name, in := range given {
		v := root.Variables[name]
		if v == nil {
			continue
		}
		if got, ds := inputValue(v, in); !ds.HasErrors() {
			values[name] = got
			some = some || len(v.Validations) > 0
		}
	}
	if !some {
		return nil
	}
	return eval.CheckInputs(ctx, root, values, x.functions).Errors()
}
