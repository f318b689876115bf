package eval

import (
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// deprecate marks a value that comes from something deprecated.
func (ev *Evaluator) deprecate(v cty.Value, from, message string) cty.Value {
	ev.deprecated.Store(true)
	return v.Mark(value.Deprecation{Message: message, Source: from})
}

// used warns of what is deprecated in a value that is used at a place, and
// takes those marks off: whoever reads the result is told nothing again.
func (ev *Evaluator) used(v cty.Value, at source.Range) (cty.Value, diag.List) {
	if !ev.deprecated.Load() {
		return v, nil
	}
	all := value.Deprecations(v)
	if len(all) == 0 {
		return v, nil
	}
	var ds diag.List
	for _, d := range all {
		ds = append(ds, diag.Warnf(&at, "Value derived from a deprecated source", "This value is derived from %s, which is deprecated with the following message:\n\n%s", d.Source, d.Message)...)
	}
	return value.WithoutDeprecations(v), ds
}

// deprecatedParts lists the arguments and block types that a provider calls
// deprecated, at the top of a type's schema.
func (ev *Evaluator) deprecatedParts(s *schema.Resource) []string {
	if have, ok := ev.oldParts.Load(s); ok {
		return have.([]string)
	}
	var out []string
	for name, a := range s.Block.Attributes {
		if a.Deprecated != "" {
			out = append(out, name)
		}
	}
	for name, nb := range s.Block.Blocks {
		if nb.Block.Deprecated != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	ev.oldParts.Store(s, out)
	return out
}

// markDeprecated marks what the provider calls deprecated in an instance's
// value, as far as it is set.
func (d *Desired) markDeprecated(t *demand.Task, v cty.Value) cty.Value {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return v
	}
	parts := d.Resource.Mod.ev.deprecatedParts(s)
	if len(parts) == 0 {
		return v
	}
	obj, marks := v.Unmark()
	if !obj.IsKnown() || obj.IsNull() || !obj.Type().IsObjectType() {
		return v
	}
	var fresh map[string]cty.Value // nil as long as there is nothing to mark
	for _, name := range parts {
		if !obj.Type().HasAttribute(name) {
			continue
		}
		part := obj.GetAttr(name)
		x, _ := part.Unmark()
		if x.IsKnown() && (x.IsNull() || x.CanIterateElements() && x.LengthInt() == 0) {
			continue
		}
		message := ""
		if a := s.Block.Attributes[name]; a != nil {
			message = a.Deprecated
		} else {
			message = s.Block.Blocks[name].Block.Deprecated
		}
		if fresh == nil {
			fresh = obj.AsValueMap()
		}
		fresh[name] = d.Resource.Mod.ev.deprecate(part, d.Addr().String()+"."+name, message)
	}
	if fresh == nil {
		return v
	}
	return cty.ObjectVal(fresh).WithMarks(marks)
}
