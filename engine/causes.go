package engine

import (
	"context"

	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// AddCauses sets the causes of the changes of a plan. Each cause is the last place of the
// explanation that Explain gives for the changed value. Only new and updated objects have
// causes.
func (e *Engine) AddCauses(ctx context.Context, p *plan.Plan, o ExplainOptions) {
	x, t, ds := e.explainer(ctx, o)
	if ds.HasErrors() { // as planning reported
		return
	}
	for _, c := range p.Changes {
		if c.Deposed != "" || c.After == cty.NilVal || c.After.IsNull() || c.Op == plan.NoOp || c.Op == plan.Forget {
			continue
		}
		for _, part := range changedParts(c.Before, c.After) {
			found, more := x.Explain(t, c.Addr.String()+value.PathString(part.path))
			if more.HasErrors() || ctx.Err() != nil {
				continue // values that only the provider knows are not in the configuration
			}
			if at, ok := setAt(found, c.Op == plan.Update && part.known); ok {
				at.Path = part.path
				c.Causes = append(c.Causes, at)
			}
		}
	}
}

// setAt returns the last place of an explanation. unset means that a value which the
// configuration does not set has a cause without a place. ok is false if there is no cause.
func setAt(x *explanation.Explanation, unset bool) (c plan.Cause, ok bool) {
	if len(x.Steps) == 0 {
		return c, false
	}
	last := x.Steps[len(x.Steps)-1]
	switch {
	case last.Kind == explanation.Provider || last.Kind == explanation.NotSet && last.At == nil:
		return c, unset
	case last.At == nil:
		return c, false
	}
	return plan.Cause{File: last.At.File, Line: last.At.Line}, true
}

// A changedPart is a part of an object that differs. known means that its new value is known.
type changedPart struct {
	path  cty.Path
	known bool
}

// changedParts returns the parts of an object that differ, sorted by path. Values of the same shape
// are compared by their parts. An object's attributes, and those of its nested blocks, are
// separate parts also if there was no object before.
func changedParts(before, after cty.Value) (out []changedPart) {
	var compare func(path cty.Path, b, a cty.Value, blocks bool)
	compare = func(path cty.Path, b, a cty.Value, blocks bool) {
		ty := a.Type()
		switch {
		case b != cty.NilVal && b.RawEquals(a), b == cty.NilVal && a.IsKnown() && a.IsNull():
			return
		case !a.IsKnown() || a.IsNull():
			out = append(out, changedPart{path, a.IsKnown()})
			return
		}
		known := b != cty.NilVal && b.IsKnown() && !b.IsNull()
		switch {
		case ty.IsObjectType() && (known && b.Type().IsObjectType() || !known && blocks):
			for it := a.ElementIterator(); it.Next(); {
				k, v := it.Element()
				name := k.AsString()
				var old cty.Value
				if known && b.Type().HasAttribute(name) {
					old = b.GetAttr(name)
				}
				compare(append(path[:len(path):len(path)], cty.GetAttrStep{Name: name}), old, v, blocks)
			}
		case ty.IsMapType() && known && b.Type().IsMapType():
			old := b.AsValueMap()
			for it := a.ElementIterator(); it.Next(); {
				k, v := it.Element()
				compare(append(path[:len(path):len(path)], cty.IndexStep{Key: k}), old[k.AsString()], v, false)
				delete(old, k.AsString())
			}
			if len(old) > 0 { // an element was removed
				out = append(out, changedPart{path, true})
			}
		case (ty.IsListType() || ty.IsTupleType()) && (known && b.Type().Equals(ty) && b.LengthInt() == a.LengthInt() || !known && blocks && ty.IsListType() && ty.ElementType().IsObjectType()):
			for i := range a.LengthInt() {
				k := cty.NumberIntVal(int64(i))
				var old cty.Value
				if known {
					old = b.Index(k)
				}
				compare(append(path[:len(path):len(path)], cty.IndexStep{Key: k}), old, a.Index(k), blocks)
			}
		default:
			out = append(out, changedPart{path, true})
		}
	}
	compare(nil, before, after, true)
	return out
}
