package testprovider

import (
	"math/rand/v2"

	"github.com/zclconf/go-cty/cty"
)

// mutate changes one part of an object, chosen by the seed. The part becomes null, unknown
// or another value, or a collection gains or loses an element. The type does not change, so
// that only checks against the plan can find the change. It is possible that nothing
// changes. Whole blocks never become null or unknown, because OpenTofu 1.12.6, with which
// the checks are compared, crashes on them. The misbehavior "mutateSEED:call" returns such
// an object.
func mutate(v cty.Value, seed uint64) cty.Value {
	r := rand.New(rand.NewPCG(seed, 42))
	var paths []cty.Path
	_ = cty.Walk(v, func(p cty.Path, v cty.Value) (bool, error) {
		_, element := lastStep(p).(cty.IndexStep)
		if len(p) > 0 && !p.Equals(cty.GetAttrPath("misbehave")) && !(element && v.Type().IsObjectType()) {
			paths = append(paths, p.Copy())
		}
		return true, nil
	})
	target := paths[r.IntN(len(paths))]
	out, err := cty.Transform(v, func(p cty.Path, v cty.Value) (cty.Value, error) {
		if p.Equals(target) {
			return change(v, r), nil
		}
		return v, nil
	})
	if err != nil {
		return v
	}
	return out
}

func lastStep(p cty.Path) cty.PathStep {
	if len(p) == 0 {
		return nil
	}
	return p[len(p)-1]
}

func change(v cty.Value, r *rand.Rand) cty.Value {
	ty := v.Type()
	switch n := r.IntN(6); {
	case n == 0:
		return cty.NullVal(ty)
	case n == 1:
		return cty.UnknownVal(ty)
	case ty.IsCollectionType() && v.IsKnown() && !v.IsNull():
		return resize(v, n%2 == 0)
	case ty == cty.String:
		return cty.StringVal("mutated")
	case ty == cty.Number:
		return cty.NumberIntVal(4711)
	case ty == cty.Bool:
		return cty.BoolVal(v.IsNull() || !v.IsKnown() || v.False())
	case ty.IsCollectionType():
		return cty.UnknownVal(ty)
	default:
		return v
	}
}

// resize removes an element from a collection, or adds a changed copy of the first one.
func resize(v cty.Value, more bool) cty.Value {
	ty := v.Type()
	keys, vals := make([]string, 0), make([]cty.Value, 0)
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if ty.IsMapType() {
			keys = append(keys, k.AsString())
		}
		vals = append(vals, e)
	}
	switch {
	case len(vals) == 0:
		return v
	case more:
		e := vals[0]
		if e.Type().IsObjectType() && !e.IsNull() && e.IsKnown() {
			e = with(e, "key", cty.StringVal("mutated"))
		} else if e.Type() == cty.String {
			e = cty.StringVal("mutated")
		}
		keys, vals = append(keys, "mutated"), append(vals, e)
	default:
		keys, vals = keys[:max(0, len(keys)-1)], vals[:len(vals)-1]
	}
	switch {
	case ty.IsMapType() && len(vals) == 0:
		return cty.MapValEmpty(ty.ElementType())
	case ty.IsMapType():
		m := make(map[string]cty.Value)
		for i, k := range keys {
			m[k] = vals[i]
		}
		return cty.MapVal(m)
	case ty.IsSetType() && len(vals) == 0:
		return cty.SetValEmpty(ty.ElementType())
	case ty.IsSetType():
		return cty.SetVal(vals)
	case len(vals) == 0:
		return cty.ListValEmpty(ty.ElementType())
	}
	return cty.ListVal(vals)
}
