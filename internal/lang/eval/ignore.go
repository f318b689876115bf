package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Ignored is the value of lifecycle.ignore_changes in an instance.
type Ignored struct {
	All     bool            // changes to every argument are ignored
	Paths   []hcl.Traversal // relative to the instance
	Unknown *source.Range   // the expression with an unknown value; nil if all values are known
}

// Ignored evaluates lifecycle.ignore_changes. An unknown value is no error, since it only matters
// for an instance that exists.
func (d *Desired) Ignored(t *demand.Task) (Ignored, diag.List) {
	life := &d.Resource.code.cfg.Lifecycle
	if life.Ignore == nil {
		return Ignored{All: life.IgnoreAll, Paths: life.IgnoreChanges}, nil
	}
	r := &ignoring{t: t, d: d, scope: d.Scope(cty.NilVal)}
	r.add(life.Ignore)
	return r.out, r.ds
}

// UnknownIgnored returns the error that the value of ignore_changes is unknown.
func (d *Desired) UnknownIgnored(at *source.Range) diag.List {
	return diag.Errorf(diag.CodeEvalIgnoreChanges, at, "Invalid ignore_changes argument", "The value of this expression is not known before an apply, so that no plan can tell which changes of %s to ignore. Use values that are known while planning, such as variables, or plan without this instance: -exclude=%s", d.Addr(), d.Addr())
}

// ignoring evaluates an ignore_changes argument.
type ignoring struct {
	t     *demand.Task
	d     *Desired
	scope lang.Scope
	out   Ignored
	ds    diag.List
}

func (r *ignoring) add(x *config.Ignore) {
	switch {
	case x.All:
		r.out.All = true
	case x.Path != nil:
		r.path(x)
	case x.Condition != nil:
		v, ok := r.eval(x.Condition, cty.Bool)
		switch {
		case !ok:
		case v.IsNull():
			r.fail(x.Condition.Range(), "The condition is null; it must be true or false.")
		case v.True():
			r.add(x.Then)
		default:
			r.add(x.Else)
		}
	case x.Value != nil:
		r.value(x)
	}
	for _, item := range x.Items {
		r.add(item)
	}
}

// eval evaluates an expression. It returns false without a known value.
func (r *ignoring) eval(x hcl.Expression, want cty.Type) (cty.Value, bool) {
	at := x.Range()
	v, ds := lang.Eval(r.t, r.scope, x, want)
	r.ds = append(r.ds, ds...)
	switch {
	case ds.HasErrors():
		return v, false
	case value.ContainsMark(v, value.Sensitive):
		r.fail(at, "The value is sensitive, or derived from a sensitive value. Plans show which changes are ignored, so that the value would become visible.")
		return v, false
	case value.ContainsMark(v, value.Ephemeral):
		r.fail(at, "The value is ephemeral, so it may differ between plan and apply.")
		return v, false
	}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		r.out.Unknown = &at
		return v, false
	}
	return v, true
}

func (r *ignoring) fail(at source.Range, detail string) {
	r.ds = append(r.ds, diag.Errorf(diag.CodeEvalIgnoreChanges, &at, "Invalid ignore_changes argument", "%s", detail)...)
}

// path adds a path of the configuration.
func (r *ignoring) path(x *config.Ignore) {
	out := make(hcl.Traversal, 0, len(x.Path))
	for _, step := range x.Path {
		if step.Key == nil {
			out = append(out, step.Traverser)
			continue
		}
		v, ok := r.eval(step.Key, cty.DynamicPseudoType)
		if !ok {
			return
		}
		if v.IsNull() || v.Type() != cty.String && v.Type() != cty.Number {
			r.fail(step.Key.Range(), "An index in a path must be a string or a number.")
			return
		}
		out = append(out, hcl.TraverseIndex{Key: v, SrcRange: step.Key.Range()})
	}
	r.out.Paths = append(r.out.Paths, out)
}

// value adds the paths that an expression returns as text. A null list ignores nothing.
func (r *ignoring) value(x *config.Ignore) {
	v, ok := r.eval(x.Value, cty.DynamicPseudoType)
	if !ok || v.IsNull() {
		return
	}
	if v.Type() == cty.String {
		if !x.Element && v.AsString() == "all" {
			r.out.All = true
			return
		}
		r.text(v.AsString(), x.At)
		return
	}
	paths, err := convert.Convert(v, cty.List(cty.String))
	if x.Element || err != nil {
		form := "a list of strings, or the string \"all\""
		if x.Element {
			form = "a string"
		}
		r.fail(x.At, "The value of this expression must be "+form+". Each string is an attribute of the resource or a path in it, such as \"tags\" or \"tags[\\\"Name\\\"]\".")
		return
	}
	for _, p := range paths.AsValueSlice() {
		if p.IsNull() {
			r.fail(x.At, "An element is null; it must be the text of a path.")
			continue
		}
		r.text(p.AsString(), x.At)
	}
}

func (r *ignoring) text(text string, at source.Range) {
	p := config.IgnoredPath(text, at)
	if p == nil {
		hint := ""
		if text == "*" {
			hint = " Use the string \"all\" instead of the list to ignore all changes."
		}
		r.ds = append(r.ds, &diag.Message{Code: diag.CodeEvalIgnoreChanges, Severity: diag.Error, Summary: "Invalid ignore_changes argument", At: &at,
			Detail: "A string in this value is not the path of an attribute, such as \"tags\" or \"tags[\\\"Name\\\"]\"." + hint})
		return
	}
	r.out.Paths = append(r.out.Paths, p)
}
