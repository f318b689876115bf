package eval

import (
	"maps"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// deprecate marks a value that comes from a deprecated object.
func (ev *Evaluator) deprecate(v cty.Value, from, message string) cty.Value {
	ev.deprecated.Store(true)
	return v.Mark(value.Deprecation{Message: message, Source: from})
}

// used returns warnings about deprecated parts of a value that is used at a source range. It
// removes their marks, so that readers of the result do not repeat the warnings.
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
		ds = append(ds, diag.Warnf(diag.CodeEvalDeprecatedSource, &at, "Value derived from a deprecated source", "%s", d.Sentence())...)
	}
	return value.WithoutDeprecations(v), ds
}

// An oldPart describes the deprecated parts of a type.
type oldPart struct {
	old     bool // the part itself is deprecated; for nested blocks, each block is
	message string
	single  bool                // one object instead of a collection
	parts   map[string]*oldPart // parts of the object or of each element that are deprecated or contain deprecated parts
}

func newPart(deprecated string) *oldPart {
	p := &oldPart{old: deprecated != "", parts: map[string]*oldPart{}}
	if deprecated != schema.NoMessage {
		p.message = deprecated
	}
	return p
}

// add adds a part under its name if it contains anything deprecated.
func (p *oldPart) add(name string, part *oldPart) {
	if part.old || len(part.parts) > 0 {
		p.parts[name] = part
	}
}

func (p *oldPart) attributes(all map[string]*schema.Attribute) {
	for name, a := range all {
		part := newPart(a.Deprecated)
		if a.Nested != nil {
			part.attributes(a.Nested.Attributes)
			part.single = a.Nested.Nesting == schema.Single || a.Nested.Nesting == schema.Group
		}
		p.add(name, part)
	}
}

func oldBlock(b *schema.Block) *oldPart {
	p := newPart(b.Deprecated)
	p.attributes(b.Attributes)
	for name, nb := range b.Blocks {
		part := oldBlock(nb.Block)
		part.single = nb.Nesting == schema.Single || nb.Nesting == schema.Group
		p.add(name, part)
	}
	return p
}

// deprecatedParts returns the deprecated parts of a resource type.
func (ev *Evaluator) deprecatedParts(s *schema.Resource) *oldPart {
	if have, ok := ev.oldParts.Load(s); ok {
		return have.(*oldPart)
	}
	p := oldBlock(s.Block)
	ev.oldParts.Store(s, p)
	return p
}

// markDeprecated marks the deprecated parts of an instance's value, or the whole value if the
// type is deprecated.
func (d *Desired) markDeprecated(t *demand.Task, v cty.Value) cty.Value {
	if d.Resource.code.listing != nil {
		return v // its value is not of the type of its schema
	}
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return v
	}
	p := d.Resource.Mod.ev.deprecatedParts(s)
	if len(p.parts) > 0 {
		v = p.markObject(d.Resource.Mod.ev, v, d.Resource.Addr().String())
	}
	if p.old {
		v = d.Resource.Mod.ev.deprecate(v, d.Resource.Addr().String(), p.message)
	}
	return v
}

// markObject marks the parts of an object.
func (p *oldPart) markObject(ev *Evaluator, v cty.Value, path string) cty.Value {
	obj, marks := v.Unmark()
	if !obj.IsKnown() || obj.IsNull() || !obj.Type().IsObjectType() {
		return v
	}
	all := obj.AsValueMap()
	for name, part := range p.parts {
		if x, ok := all[name]; ok {
			all[name] = part.mark(ev, x, path+"."+name)
		}
	}
	return cty.ObjectVal(all).WithMarks(marks)
}

// mark marks a part. An empty collection of blocks does not count as a use.
func (p *oldPart) mark(ev *Evaluator, v cty.Value, path string) cty.Value {
	x, marks := v.Unmark()
	ty := x.Type()
	switch {
	case len(p.parts) == 0 && (p.single || !ty.IsCollectionType() || !ty.ElementType().IsObjectType()):
	case !x.IsKnown() || x.IsNull():
		return v
	case p.single:
		v = p.markObject(ev, v, path)
	case ty.IsSetType() && x.LengthInt() > 0: // elements of a set cannot have marks
		for _, d := range p.sources(path + "[...]") {
			v = ev.deprecate(v, d.Source, d.Message)
		}
		return v
	case x.CanIterateElements():
		return p.markElements(ev, x, path).WithMarks(marks)
	}
	if p.old {
		v = ev.deprecate(v, path, p.message)
	}
	return v
}

// markElements marks each element of a list, map or tuple of objects.
func (p *oldPart) markElements(ev *Evaluator, v cty.Value, path string) cty.Value {
	one := func(k string, e cty.Value) cty.Value {
		at := path + "[" + k + "]"
		if e = p.markObject(ev, e, at); p.old {
			e = ev.deprecate(e, at, p.message)
		}
		return e
	}
	switch {
	case v.LengthInt() == 0:
		return v
	case v.Type().IsMapType():
		all := v.AsValueMap()
		for k, e := range all {
			all[k] = one(strconv.Quote(k), e)
		}
		return cty.MapVal(all)
	case v.Type().IsListType() || v.Type().IsTupleType():
		all := v.AsValueSlice()
		for i, e := range all {
			all[i] = one(strconv.Itoa(i), e)
		}
		if v.Type().IsTupleType() {
			return cty.TupleVal(all)
		}
		return cty.ListVal(all)
	}
	return v
}

// sources returns the deprecations in a part.
func (p *oldPart) sources(path string) []value.Deprecation {
	var out []value.Deprecation
	if p.old {
		out = append(out, value.Deprecation{Message: p.message, Source: path})
	}
	for _, name := range slices.Sorted(maps.Keys(p.parts)) {
		out = append(out, p.parts[name].sources(path+"."+name)...)
	}
	return out
}
