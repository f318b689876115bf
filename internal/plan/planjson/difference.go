package planjson

import (
	"encoding/json"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// Difference writes the two sides of a failed condition. Secret values are null, although
// OpenTofu writes them; separate members mark them as sensitive.
func Difference(d *diag.Difference) json.RawMessage {
	before, after := value.NewPathSet(d.BeforeSecret), value.NewPathSet(d.AfterSecret)
	w := new(writer)
	w.begin('{')
	w.name("before")
	w.value(hide(d.Before, before))
	w.name("after")
	w.value(hide(d.After, after))
	w.name("after_unknown")
	if d.After.IsWhollyKnown() {
		w.raw("false")
	} else {
		w.tree(d.After, nil, isUnknown)
	}
	w.name("before_sensitive")
	w.tree(d.Before, before, isMarked)
	w.name("after_sensitive")
	w.tree(d.After, after, isMarked)
	w.end('}')
	return w.b
}

// hide replaces secret parts by null.
func hide(v cty.Value, p *value.PathSet) cty.Value {
	switch {
	case p == nil:
		return v
	case p.Marked():
		return cty.NullVal(cty.DynamicPseudoType)
	}
	switch kindOf(v) {
	case named:
		parts := map[string]cty.Value{}
		each(v, func(name string, e cty.Value) { parts[name] = hide(e, p.Named(name)) })
		return cty.ObjectVal(parts)
	case listed:
		var parts []cty.Value
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			parts = append(parts, hide(e, p.At(len(parts))))
		}
		return cty.TupleVal(parts)
	}
	return v
}
