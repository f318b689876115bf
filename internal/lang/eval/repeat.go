package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/zclconf/go-cty/cty"
)

// Form is the kind of repetition of a block. It determines the value of a reference to the
// block.
type Form uint8

// The forms.
const (
	One      Form = iota // no repetition: the value is the object itself
	Counted              // count: the value is a tuple
	Keyed                // for_each: the value is an object
	Disabled             // enabled = false: the value is null
)

// takes reports whether a block of the form may have an instance with that key.
func (f Form) takes(k addr.Key) bool {
	switch f {
	case Counted:
		return k.Kind == addr.IntKey
	case Keyed:
		return k.Kind == addr.StringKey
	default:
		return k == addr.Key{}
	}
}

// expansion contains the instances of a repeated block.
type expansion struct {
	form    Form
	unknown bool // during validation: one instance represents all
	all     []instance

	// deferred is the reason for which the instances are unknown. Then all contains only those
	// that exist in any case.
	deferred    *Deferral
	placeholder *instance // represents the unknown instances; nil if there are none
}

// postponed returns the expansion of a block whose instances are unknown. certain are the
// instances that exist in any case, represented the instance that represents all others.
func postponed(d *Deferral, certain, represented expansion) expansion {
	certain.unknown, certain.deferred, certain.placeholder = true, d, &represented.all[0]
	return certain
}

// instancesOf returns the instances of a block with the name what in the module. The instances
// of a block that a plan has deferred are those in the plan.
func (m *Module) instancesOf(t *demand.Task, r repeatCode, what string) (expansion, diag.List) {
	if m.ev.o.Postponed == nil {
		return m.expand(t, r, what)
	}
	planned := m.ev.o.Postponed(m.name(what))
	if planned == nil {
		return m.expand(t, r, what)
	}
	out := expansion{unknown: true, deferred: &Deferral{}}
	switch {
	case r.count != nil:
		out.form = Counted
	case r.forEach != nil:
		exp, _ := m.expandForEach(t, r.forEach, what) // errors concern instances that are planned again
		out.form = Keyed
		for _, inst := range exp.all {
			if planned(m.name(what) + inst.key.String()) {
				out.all = append(out.all, inst)
			}
		}
	}
	if n := demand.Current(t); n != nil {
		m.ev.deferred.Store(n, true)
	}
	return out, nil
}

// expand evaluates count, for_each or enabled. what is the block's name for messages.
func (m *Module) expand(t *demand.Task, r repeatCode, what string) (expansion, diag.List) {
	switch {
	case r.count != nil:
		return m.expandCount(t, r.count, what)
	case r.forEach != nil:
		return m.expandForEach(t, r.forEach, what)
	case r.enabled != nil:
		return m.expandEnabled(t, r.enabled, what)
	default:
		return expansion{all: []instance{{}}}, nil
	}
}

// estimated marks the instance of an expansion that represents all instances as uncertain, if there may be
// none.
func (m *Module) estimated(e expansion, none bool) expansion {
	e.all[0].uncertain = none && m.ev.o.Estimating
	return e
}

// mayBeZero reports whether an unknown number may be 0.
func mayBeZero(v cty.Value) bool {
	if v.Type() != cty.Number {
		return true
	}
	least, _ := v.Range().NumberLowerBound()
	return !least.IsKnown() || least.LessThan(cty.NumberIntVal(1)).True()
}

// mayBeEmpty reports whether a collection that is not wholly known may be empty.
func mayBeEmpty(v cty.Value) bool {
	if v.IsKnown() {
		return v.LengthInt() == 0
	}
	return !v.Type().IsCollectionType() || v.Range().LengthLowerBound() == 0
}

func (m *Module) unknownCount() expansion {
	return expansion{form: Counted, unknown: true, all: []instance{{count: cty.UnknownVal(cty.Number)}}}
}

// unknownKeys returns an expansion for validation. each.value has an unknown type, because no
// use of it is certainly wrong.
func (m *Module) unknownKeys() expansion {
	return expansion{form: Keyed, unknown: true, all: []instance{{eachKey: cty.UnknownVal(cty.String), each: cty.DynamicVal}}}
}

// orDefer ends messages about an unknown number of instances.
const orDefer = "\n\nThe option -defer of \"plan\" and \"apply\" plans everything else, and defers this block and what depends on it until the value is known."

// maxInstances is the maximum result of count. A state with more objects cannot be planned, and
// a mistyped number would use all memory.
const maxInstances = 1_000_000

func (m *Module) expandCount(t *demand.Task, x *lang.Expr, what string) (expansion, diag.List) {
	v, ds := lang.Eval(t, m, x, cty.DynamicPseudoType)
	none := expansion{form: Counted}
	if ds.HasErrors() {
		return m.unknownCount(), ds
	}
	at := x.Range()
	bad := func(format string, args ...any) (expansion, diag.List) {
		return none, append(ds, diag.Errorf(diag.CodeEvalCount, &at, "Invalid count argument", format, args...)...)
	}
	if value.ContainsMark(v, value.Ephemeral) {
		return bad("The given \"count\" is ephemeral, so it cannot decide which instances exist from one run to the next.")
	}
	v, _ = v.Unmark()
	switch {
	case v.IsNull():
		return bad("The given \"count\" argument value is null. An integer is required.")
	case !v.IsKnown():
		if m.ev.o.Validating || m.ev.o.Estimating {
			return m.estimated(m.unknownCount(), mayBeZero(v)), ds
		}
		if d := m.deferral(t, at); d != nil {
			return postponed(d, none, m.unknownCount()), ds
		}
		return bad("The \"count\" value depends on resource attributes that cannot be determined until apply, so Terrace cannot predict how many instances will be created.\n\nTo work around this, use the -target option to first apply only the resources that the count depends on, and then apply normally to converge; or use -exclude=%s.%s", m.name(what), orDefer)
	}
	num, err := toNumber(v)
	if err != nil {
		return none, append(ds, m.explained(t, x, diag.Errorf(diag.CodeLangWrongType, &at, "Incorrect value type", "Invalid expression value: %s.", err))...)
	}
	n, acc := num.Int64()
	switch {
	case acc != 0:
		return bad("The given \"count\" argument value is unsuitable: a whole number is required.")
	case n < 0:
		return bad("The given \"count\" argument value is unsuitable: must be greater than or equal to zero.")
	case n > maxInstances:
		return bad("The given \"count\" argument value is unsuitable: %d instances are more than can be handled.", n)
	}
	if m.ev.o.Validating { // one instance represents all
		return m.unknownCount(), ds
	}
	out := expansion{form: Counted, all: make([]instance, n)}
	for i := range out.all {
		out.all[i].key = addr.Int(i)
	}
	return out, ds
}

func (m *Module) expandForEach(t *demand.Task, x *lang.Expr, what string) (expansion, diag.List) {
	v, ds := lang.Eval(t, m, x, cty.DynamicPseudoType)
	if ds.HasErrors() {
		return m.unknownKeys(), ds
	}
	at := x.Range()
	bad := func(format string, args ...any) (expansion, diag.List) {
		return expansion{form: Keyed}, append(ds, m.explained(t, x, diag.Errorf(diag.CodeEvalForEach, &at, "Invalid for_each argument", format, args...))...)
	}
	if value.HasMark(v, value.Sensitive) {
		return bad("Sensitive values, or values derived from sensitive values, cannot be used as for_each arguments. If used, the sensitive value could be exposed as a resource instance key.")
	}
	if value.HasMark(v, value.Ephemeral) {
		return bad("Ephemeral values cannot be used as for_each arguments, since instance keys are stored from one run to the next.")
	}
	if strings.HasPrefix(what, "module.") && !m.ev.o.Validating { // for a resource OpenTofu 1.12.6 does not report it either
		var more diag.List
		v, more = m.ev.used(v, at)
		ds = append(ds, more...)
	}
	v, _ = v.Unmark()
	ty := v.Type()
	isMap := ty.IsMapType() || ty.IsObjectType()
	isSet := ty.IsSetType()
	switch {
	case v.IsNull():
		return bad("The given \"for_each\" argument value is unsuitable: the given \"for_each\" argument value is null. A map, or set of strings is allowed.")
	case !isMap && !isSet && ty != cty.DynamicPseudoType:
		return bad("The given \"for_each\" argument value is unsuitable: the \"for_each\" argument must be a map, or set of strings, and you have provided a value of type %s.", ty.FriendlyName())
	case !v.IsKnown() || isSet && !v.IsWhollyKnown():
		if m.ev.o.Validating || m.ev.o.Estimating {
			return m.estimated(m.unknownKeys(), mayBeEmpty(v)), ds
		}
		if d := m.deferral(t, at); d != nil {
			return postponed(d, expansion{form: Keyed, all: certain(v)}, m.unknownKeys()), ds
		}
		return bad("The \"for_each\" %s includes keys derived from resource attributes that cannot be determined until apply, and so Terrace cannot determine the full set of keys that will identify the instances of this resource.\n\nWhen working with unknown values in for_each, it's better to define the map keys statically in your configuration and place apply-time results only in the map values. Alternatively, use -exclude=%s.%s", collectionName(isSet), m.name(what), orDefer)
	}
	out := expansion{form: Keyed}
	if isSet {
		if v.LengthInt() > 0 && ty.ElementType() != cty.String {
			return bad("The given \"for_each\" argument value is unsuitable: \"for_each\" supports maps and sets of strings, but you have provided a set containing type %s.", ty.ElementType().FriendlyName())
		}
		for it := v.ElementIterator(); it.Next(); {
			_, el := it.Element()
			if value.HasMark(el, value.Sensitive) {
				return bad("Sensitive values cannot be used as for_each arguments.")
			}
			el, _ = el.Unmark()
			if el.IsNull() {
				return bad("The given \"for_each\" argument value is unsuitable: \"for_each\" sets must not contain null values.")
			}
			out.all = append(out.all, instance{key: addr.Str(el.AsString()), each: el})
		}
	} else {
		for it := v.ElementIterator(); it.Next(); {
			k, el := it.Element()
			k, _ = k.Unmark()
			out.all = append(out.all, instance{key: addr.Str(k.AsString()), each: el})
		}
	}
	if m.ev.o.Validating { // one instance represents all
		return m.unknownKeys(), ds
	}
	slices.SortFunc(out.all, func(a, b instance) int { return strings.Compare(a.key.Str, b.key.Str) })
	return out, ds
}

// certain returns the instances of the known elements of a set that also has unknown elements,
// sorted. v is the value of for_each, without marks.
func certain(v cty.Value) []instance {
	if !v.IsKnown() || !v.Type().IsSetType() || v.Type().ElementType() != cty.String {
		return nil
	}
	var out []instance
	for it := v.ElementIterator(); it.Next(); {
		if _, el := it.Element(); !el.IsMarked() && el.IsKnown() && !el.IsNull() {
			out = append(out, instance{key: addr.Str(el.AsString()), each: el})
		}
	}
	slices.SortFunc(out, func(a, b instance) int { return strings.Compare(a.key.Str, b.key.Str) })
	return out
}

// explained adds to a message the values of the references in an expression.
func (m *Module) explained(t *demand.Task, x *lang.Expr, ds diag.List) diag.List {
	if ctx, more := lang.Context(t, m, x); !more.HasErrors() {
		ds[0].Values = diag.Explain(x.Expression, ctx, !m.ev.o.Validating)
	}
	return ds
}

func collectionName(isSet bool) string {
	if isSet {
		return "set"
	}
	return "map"
}

func (m *Module) expandEnabled(t *demand.Task, x *lang.Expr, what string) (expansion, diag.List) {
	v, ds := lang.Eval(t, m, x, cty.Bool)
	one := expansion{all: []instance{{}}}
	if ds.HasErrors() {
		return one, ds
	}
	at := x.Range()
	problem := ""
	switch {
	case value.ContainsMark(v, value.Sensitive):
		problem = "is sensitive, or derived from a sensitive value"
	case value.ContainsMark(v, value.Ephemeral):
		problem = "is ephemeral"
	case unmarked(v).IsNull():
		problem = "is null; it must be true or false"
	case !v.IsKnown():
		if m.ev.o.Validating || m.ev.o.Estimating {
			return m.estimated(one, true), ds
		}
		if d := m.deferral(t, at); d != nil {
			return postponed(d, expansion{}, one), ds
		}
		problem = fmt.Sprintf("depends on resource attributes that cannot be determined until apply; use -exclude=%s to plan without it, or -defer to plan it when the value is known", m.name(what))
	}
	if problem != "" {
		return one, append(ds, m.explained(t, x, diag.Errorf(diag.CodeEvalEnabled, &at, "Invalid enabled argument", "The \"enabled\" value %s.", problem))...)
	}
	if v, _ = v.Unmark(); v.False() && !m.ev.o.Validating { // during validation the contents are evaluated anyway
		return expansion{form: Disabled}, ds
	}
	return one, ds
}
