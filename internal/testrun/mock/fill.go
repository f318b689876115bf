package mock

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A filler sets the computed attributes of one object: to values in the rules, and to generated
// values otherwise. It keeps the values that the configuration sets.
//
// A generated value depends only on the address of the object, its generation and the attribute.
// An object is planned again during apply, when its arguments are known. It must then get the
// values that the plan showed, whatever other values are generated.
type filler struct {
	values     Values
	later      bool   // values are unknown until apply
	seed       string // address of the object
	generation int    // number of the object among those at its address

	ds diag.List
}

// object fills an object. have is the proposed or planned object, or the configuration of a data
// source.
func (f *filler) object(b *schema.Block, have, config cty.Value, path cty.Path) cty.Value {
	given := f.values.Value
	if given != cty.NilVal {
		given, _ = given.UnmarkDeep()
	}
	return f.block(b, have, config, given, path, "")
}

func (f *filler) errorf(code string, path cty.Path, summary, detail string, args ...any) {
	f.ds = append(f.ds, &diag.Message{Code: code, Summary: summary, Detail: fmt.Sprintf(detail, args...), Attr: path.Copy()})
}

// block fills an object of a block. key identifies the block for generated values.
func (f *filler) block(b *schema.Block, have, config, given cty.Value, path cty.Path, key string) cty.Value {
	if have.IsNull() || !have.IsKnown() {
		return have
	}
	set := fields(given)
	out := have.AsValueMap()
	if out == nil {
		out = map[string]cty.Value{}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Attributes)) {
		out[name] = f.attribute(b.Attributes[name], name, out[name], part(config, name), set[name], path, key+"."+name)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		nb := b.Blocks[name]
		out[name] = f.each(out[name], part(config, name), key+"."+name, func(have, config cty.Value, key string) cty.Value {
			return f.block(nb.Block, have, config, set[name], path.GetAttr(name), key)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if b.Attributes[name] == nil && b.Blocks[name] == nil {
			f.ds = append(f.ds, &diag.Message{Code: diag.CodeTestMock, Severity: diag.Warning, Summary: "Unknown mock/override field", Detail: fmt.Sprintf("The type has no attribute or block named %q. The field is ignored.", name), At: f.values.At})
		}
	}
	return cty.ObjectVal(out)
}

// attribute returns the value of one attribute. given is its value in the rules, or NilVal.
func (f *filler) attribute(a *schema.Attribute, name string, have, config, given cty.Value, path cty.Path, key string) cty.Value {
	at := path.GetAttr(name)
	if a.WriteOnly {
		return cty.NullVal(a.Type)
	}
	configured := config != cty.NilVal && !config.IsNull()
	if given != cty.NilVal && (!a.Computed || configured) {
		if !a.Computed && (a.Nested == nil || !configured) {
			f.errorf(diag.CodeTestMock, at, "Non-computed field `"+name+"` is not allowed to be overridden", "Overriding non-computed fields is not allowed, so this field cannot be processed.")
		}
		given = cty.NilVal
	}
	switch {
	case configured && a.Nested != nil:
		return f.each(have, config, key, func(have, config cty.Value, key string) cty.Value {
			return f.nested(a.Nested, have, config, at, key)
		})
	case configured:
		if !have.IsKnown() && config.IsKnown() {
			return config
		}
		return have
	case !a.Computed:
		return have
	case given != cty.NilVal:
		if f.later {
			if known(have) { // the value was set before
				return have
			}
			return cty.UnknownVal(a.Type)
		}
		v, err := convert.Convert(given, a.Type)
		if err != nil {
			f.errorf(diag.CodeTestMock, at, "Invalid mock/override field `"+name+"`", "The value given for the field does not fit the type of the attribute: %s.", err)
			return f.generate(a.Type, key)
		}
		return v
	case known(have):
		return have
	case f.later:
		return cty.UnknownVal(a.Type)
	default:
		return f.generate(a.Type, key)
	}
}

// nested fills an object of a nested attribute.
func (f *filler) nested(o *schema.Object, have, config cty.Value, path cty.Path, key string) cty.Value {
	if have.IsNull() || !have.IsKnown() {
		return have
	}
	out := have.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(o.Attributes)) {
		out[name] = f.attribute(o.Attributes[name], name, out[name], part(config, name), cty.NilVal, path, key+"."+name)
	}
	return cty.ObjectVal(out)
}

// each fills an object, or every element of a collection of objects.
func (f *filler) each(have, config cty.Value, key string, one func(have, config cty.Value, key string) cty.Value) cty.Value {
	if have == cty.NilVal || have.IsNull() || !have.IsKnown() {
		if config != cty.NilVal && config.IsKnown() && have != cty.NilVal && !have.IsKnown() {
			return f.each(config, config, key, one)
		}
		return have
	}
	ty := have.Type()
	if ty.IsObjectType() {
		return one(have, config, key)
	}
	var configs []cty.Value
	if config != cty.NilVal && config.IsKnown() && !config.IsNull() && config.LengthInt() == have.LengthInt() {
		for it := config.ElementIterator(); it.Next(); {
			_, v := it.Element()
			configs = append(configs, v)
		}
	}
	if have.LengthInt() == 0 {
		return have
	}
	var keys []string
	var vals []cty.Value
	i := 0
	for it := have.ElementIterator(); it.Next(); i++ {
		k, v := it.Element()
		if ty.IsMapType() {
			keys = append(keys, k.AsString())
		}
		c := v // set elements have no identity, so their own values count as configured
		if configs != nil && !ty.IsSetType() {
			c = configs[i]
		}
		switch {
		case ty.IsMapType():
			vals = append(vals, one(v, c, key+"["+k.AsString()+"]"))
		case ty.IsSetType():
			vals = append(vals, f.element(v, c, key, one))
		default:
			vals = append(vals, one(v, c, fmt.Sprintf("%s[%d]", key, i)))
		}
	}
	switch {
	case ty.IsMapType():
		m := map[string]cty.Value{}
		for i, k := range keys {
			m[k] = vals[i]
		}
		return cty.MapVal(m)
	case ty.IsSetType():
		return cty.SetVal(vals)
	case ty.IsListType():
		return cty.ListVal(vals)
	default:
		return cty.TupleVal(vals)
	}
}

// element fills an element of a set. Generated values depend on the other values of the element,
// since the order of elements may change when they become known. While the element contains
// unknown values, nothing is generated.
func (f *filler) element(v, config cty.Value, key string, one func(have, config cty.Value, key string) cty.Value) cty.Value {
	if v.IsWhollyKnown() {
		return one(v, config, fmt.Sprintf("%s[%x]", key, v.Hash()))
	}
	defer func(later bool) { f.later = later }(f.later)
	f.later = true
	return one(v, config, key)
}

// generate returns a generated value of a type for the attribute with the given key.
func (f *filler) generate(ty cty.Type, key string) cty.Value {
	switch {
	case ty == cty.String:
		return cty.StringVal(f.word(key))
	case ty == cty.Number:
		return cty.Zero
	case ty == cty.Bool:
		return cty.False
	case ty.IsListType():
		return cty.ListValEmpty(ty.ElementType())
	case ty.IsSetType():
		return cty.SetValEmpty(ty.ElementType())
	case ty.IsMapType():
		return cty.MapValEmpty(ty.ElementType())
	case ty.IsObjectType():
		out := map[string]cty.Value{}
		for _, name := range slices.Sorted(maps.Keys(ty.AttributeTypes())) {
			out[name] = f.generate(ty.AttributeType(name), key+"."+name)
		}
		return cty.ObjectVal(out)
	case ty.IsTupleType():
		vals := make([]cty.Value, 0, ty.Length())
		for i, t := range ty.TupleElementTypes() {
			vals = append(vals, f.generate(t, fmt.Sprintf("%s[%d]", key, i)))
		}
		return cty.TupleVal(vals)
	default:
		return cty.NullVal(ty)
	}
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// wordLength is the length of generated strings.
const wordLength = 8

// word returns a pseudorandom string that depends on the address of the object, its generation
// and the attribute.
func (f *filler) word(key string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.seed + "\x00" + key))
	rnd := rand.New(rand.NewPCG(h.Sum64(), uint64(f.generation)))
	b := make([]byte, wordLength)
	for i := range b {
		b[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	return string(b)
}

func known(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }

// part returns an attribute of an object, or NilVal if it is missing.
func part(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return v.GetAttr(name)
}

// fields returns the attributes of an object, by name.
func fields(v cty.Value) map[string]cty.Value {
	if !known(v) || !v.CanIterateElements() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil
	}
	out := map[string]cty.Value{}
	for it := v.ElementIterator(); it.Next(); {
		k, v := it.Element()
		out[k.AsString()] = v
	}
	return out
}
