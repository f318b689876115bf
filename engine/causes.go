package engine

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/addr"
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
	ends := x.Ends(t)
	for _, c := range p.Changes {
		if c.Deposed != "" || c.After == cty.NilVal || c.After.IsNull() || c.Op == plan.NoOp || c.Op == plan.Forget {
			continue
		}
		name := c.Addr.String()
		c.Causes = nil
		cause := func(part changedPart) {
			end, more := ends.Of(name + value.PathString(part.path))
			if more.HasErrors() || ctx.Err() != nil {
				return
			}
			if at, ok := setAt(end, part); ok {
				at.Forces = forces(c, part.path)
				c.Causes = append(c.Causes, at)
			}
		}
		switch c.Reason {
		case plan.ReplaceTainted, plan.ReplaceByRequest:
			c.Causes = append(c.Causes, plan.Cause{Forces: true})
		case plan.ReplaceByTriggers:
			cause(changedPart{path: plan.TriggersPath()})
		}
		for _, part := range changedParts(c.Before, c.After, wholly(c.BeforeSensitive, c.AfterSensitive)) {
			cause(part)
		}
	}
}

// AddOrigins sets the origins of all values of the objects and outputs of a plan, and of the data sources
// that it read, in the way of AddCauses.
func (e *Engine) AddOrigins(ctx context.Context, p *plan.Plan, o ExplainOptions) {
	x, t, ds := e.explainer(ctx, o)
	if ds.HasErrors() { // as planning reported
		return
	}
	ends := x.Ends(t)
	origins := func(name string, before, after cty.Value, whole func(cty.Path) bool, forced func(cty.Path) bool) (out []plan.Cause) {
		for _, part := range allParts(before, after, whole) {
			end, more := ends.Of(name + value.PathString(part.path))
			if more.HasErrors() || ctx.Err() != nil {
				continue
			}
			if at, ok := setAt(end, part.changedPart); ok && !(at.File == "" && part.removed) {
				at.Forces, at.Kept = forced(part.path), part.kept
				out = append(out, at)
			}
		}
		return out
	}
	for _, c := range p.Changes {
		if c.Deposed == "" && c.After != cty.NilVal && !c.After.IsNull() {
			c.Origins = origins(c.Addr.String(), c.Before, c.After, wholly(c.BeforeSensitive, c.AfterSensitive), func(path cty.Path) bool { return forces(c, path) })
		}
	}
	p.DataRead = nil
	if p.Prior != nil {
		planned := map[addr.Instance]bool{} // data sources that are read during apply
		for _, c := range p.Changes {
			planned[c.Addr] = true
		}
		for a := range p.Prior.Instances() {
			if a.Resource.Mode != addr.Data || planned[a] {
				continue
			}
			if v := x.Known(a); v != cty.NilVal && !v.IsNull() { // the plan does not change its values
				v, marks := v.UnmarkDeepWithPaths()
				var secret []cty.Path
				for _, m := range marks {
					secret = append(secret, m.Path)
				}
				all := origins(a.String(), v, v, wholly(secret), func(cty.Path) bool { return false })
				p.DataRead = append(p.DataRead, plan.DataRead{Addr: a, Origins: all})
			}
		}
	}
	for _, o := range p.Outputs {
		if o.After != cty.NilVal && !o.After.IsNull() {
			secret := o.BeforeSensitive || o.AfterSensitive
			o.Origins = origins("output."+o.Name, o.Before, o.After, func(cty.Path) bool { return secret }, func(cty.Path) bool { return false })
		}
	}
}

// wholly returns a function that reports whether the value at a path is sensitive as a whole. The keys and
// names in such a value are secret too, so that its parts are not listed.
func wholly(secret ...[]cty.Path) func(cty.Path) bool {
	return func(path cty.Path) bool {
		for _, all := range secret {
			if slices.ContainsFunc(all, path.Equals) {
				return true
			}
		}
		return false
	}
}

// forces reports whether a part of an object forces its replacement.
func forces(c *plan.Change, path cty.Path) bool {
	if c.Op != plan.DeleteThenCreate && c.Op != plan.CreateThenDelete && c.Op != plan.ForgetThenCreate {
		return false
	}
	return c.Reason == plan.ReplaceByTriggers && path.Equals(plan.TriggersPath()) ||
		slices.ContainsFunc(c.ReplacePaths, func(p cty.Path) bool { return path.HasPrefix(p) || p.HasPrefix(path) })
}

// setAt returns the cause of a part whose explanation ends in a step. A known value that the
// configuration does not set has a cause without a place. ok is false if there is no cause.
func setAt(end *explanation.Step, part changedPart) (c plan.Cause, ok bool) {
	switch {
	case end == nil:
		return c, false
	case end.Kind == explanation.Provider || end.Kind == explanation.NotSet:
		return plan.Cause{Path: part.path, Removed: part.removed}, part.known
	case end.At == nil:
		return c, false
	}
	return plan.Cause{Path: part.path, File: end.At.File, Line: end.At.Line}, true
}

// A changedPart is a part of an object that differs.
type changedPart struct {
	path    cty.Path
	known   bool // the new value is known
	removed bool // the new value is null
}

// changedParts returns the parts of an object that differ, sorted by path. Values of the same shape
// are compared by their parts. An object's attributes, and those of its nested blocks, are
// separate parts also if there was no object before. A value for which whole is true is one part.
func changedParts(before, after cty.Value, whole func(cty.Path) bool) (out []changedPart) {
	var compare func(path cty.Path, b, a cty.Value, blocks bool)
	compare = func(path cty.Path, b, a cty.Value, blocks bool) {
		ty := a.Type()
		switch {
		case b != cty.NilVal && b.RawEquals(a), b == cty.NilVal && a.IsKnown() && a.IsNull():
			return
		case !a.IsKnown() || a.IsNull():
			out = append(out, changedPart{path, a.IsKnown(), a.IsKnown()})
			return
		}
		known := b != cty.NilVal && b.IsKnown() && !b.IsNull()
		switch {
		case whole(path):
			out = append(out, changedPart{path: path, known: true})
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
				out = append(out, changedPart{path: path, known: true})
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
			out = append(out, changedPart{path: path, known: true})
		}
	}
	compare(nil, before, after, true)
	return out
}

// A valuePart is a value of an object that has no parts, or whose parts have no origins of their own.
type valuePart struct {
	changedPart
	kept bool // equal to the value before
}

// allParts returns the values of an object, sorted by path: those in attributes, maps, lists and nested
// blocks. A set is one value, and so is a value for which whole is true.
func allParts(before, after cty.Value, whole func(cty.Path) bool) (out []valuePart) {
	var walk func(path cty.Path, b, a cty.Value)
	walk = func(path cty.Path, b, a cty.Value) {
		ty := a.Type()
		if a.IsKnown() && !a.IsNull() && !whole(path) && (ty.IsObjectType() || ty.IsMapType() || ty.IsListType() || ty.IsTupleType()) && a.LengthInt() > 0 {
			for it := a.ElementIterator(); it.Next(); {
				k, v := it.Element()
				old, step := cty.NilVal, cty.PathStep(cty.IndexStep{Key: k})
				if ty.IsObjectType() {
					step = cty.GetAttrStep{Name: k.AsString()}
				}
				if b != cty.NilVal {
					if x, err := step.Apply(b); err == nil {
						old = x
					}
				}
				walk(append(path[:len(path):len(path)], step), old, v)
			}
			return
		}
		out = append(out, valuePart{changedPart{path, a.IsKnown(), a.IsKnown() && a.IsNull()}, b != cty.NilVal && b.RawEquals(a)})
	}
	walk(nil, before, after)
	return out
}
