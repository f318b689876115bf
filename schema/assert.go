package schema

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
)

// The functions below check the guarantees of a provider. Source: the resource instance change
// lifecycle of the plugin protocol.
//
// In a plan, an argument that the configuration sets must be planned with exactly this value,
// or keep its prior value. An argument that the configuration omits must be planned as null
// unless the attribute is computed. Nested blocks must be those of the configuration.
//
// In an apply, everything that the plan knows must be the same in the result.

// A Mismatch is one violated guarantee. Its text contains no values, since they may be
// sensitive without the schema marking them. The caller may show Want and Got.
type Mismatch struct {
	Path      cty.Path
	Msg       string    // a clause without values, such as "the value is not that of the configuration"
	Want, Got cty.Value // cty.NilVal if there is nothing to show
	Sensitive bool      // the schema marks both as sensitive
}

// Error returns the path and the message, without values.
func (m *Mismatch) Error() string {
	if len(m.Path) == 0 {
		return m.Msg
	}
	return PathString(m.Path) + ": " + m.Msg
}

// PathString returns a path in the form of configuration: `a.b[0]["k"]`. Set elements are
// `[…]`.
func PathString(path cty.Path) string {
	s := ""
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			if s != "" {
				s += "."
			}
			s += step.Name
		case cty.IndexStep:
			k := step.Key
			switch {
			case absent(k) || k.IsMarked():
				s += "[…]"
			case k.Type() == cty.String:
				s += fmt.Sprintf("[%q]", k.AsString())
			case k.Type() == cty.Number:
				s += "[" + k.AsBigFloat().Text('f', -1) + "]"
			default:
				s += "[…]"
			}
		}
	}
	return s
}

// AssertPlanValid checks a planned object against the prior object and the configuration. Each
// error is a *Mismatch. prior and config may be null. Values must not have marks. legacy is for
// providers with the loose type system. Then only the type, unusable values and write-only
// attributes are checked.
func AssertPlanValid(b *Block, prior, config, planned cty.Value, legacy bool) []error {
	if err := conforms(b, planned); err != nil {
		return []error{err}
	}
	var c checker
	if legacy {
		if config.IsNull() != planned.IsNull() {
			c.exists(config, planned, nil)
		}
		if path, ok := b.firstWriteOnly(planned); ok {
			c.writeOnly(path, "plan")
		}
		return c.errs
	}
	c.planBlock(b, sides{prior, config, planned}, nil)
	return c.errs
}

// conforms checks that a whole object is known and has the implied type.
func conforms(b *Block, v cty.Value) error {
	switch {
	case v == cty.NilVal:
		return &Mismatch{Msg: "the object is missing"}
	case !v.IsKnown():
		return &Mismatch{Msg: "the whole object is unknown"}
	}
	if v.Type().Equals(b.ImpliedType()) {
		return nil
	}
	if errs := v.Type().TestConformance(b.ImpliedType()); len(errs) > 0 {
		m := &Mismatch{Msg: "the value has the wrong type: " + errs[0].Error()}
		if pe, ok := errs[0].(cty.PathError); ok {
			m.Path = pe.Path
		}
		return m
	}
	return nil
}

type checker struct{ errs []error }

// add reports a mismatch without values.
func (c *checker) add(path cty.Path, format string, args ...any) {
	c.errs = append(c.errs, &Mismatch{Path: path.Copy(), Msg: fmt.Sprintf(format, args...)})
}

// writeOnly reports a write-only attribute that has a value.
func (c *checker) writeOnly(path cty.Path, where string) {
	c.errs = append(c.errs, &Mismatch{Path: path.Copy(), Msg: "a write-only attribute must be null in a " + where, Sensitive: true})
}

// differ reports that a value differs from the expected one.
func (c *checker) differ(path cty.Path, want, got cty.Value, sensitive bool, msg string) {
	c.errs = append(c.errs, &Mismatch{Path: path.Copy(), Msg: msg, Want: want, Got: got, Sensitive: sensitive})
}

// exists reports a block that is planned but not configured, or configured but not planned.
func (c *checker) exists(config, planned cty.Value, path cty.Path) {
	if config.IsNull() {
		c.add(path, "it is planned to exist, but the configuration does not have it")
		return
	}
	c.add(path, "it is planned to be absent, but the configuration has it")
}

// sides contains the prior, configured and planned values of one part of an object.
type sides struct{ prior, config, planned cty.Value }

func (c *checker) planBlock(b *Block, v sides, path cty.Path) {
	config, planned := v.config, v.planned
	if config.IsKnown() && config.IsNull() != planned.IsNull() {
		c.exists(config, planned, path)
		return
	}
	switch {
	case !config.IsKnown() || planned.IsNull():
		return
	case !planned.IsKnown():
		c.add(path, "the whole block is unknown; only its attributes may be")
		return
	}
	f := b.facts()
	for _, name := range f.attrs {
		c.planAttr(b.Attributes[name], v.field(name), path, name)
	}
	for _, name := range f.blocks {
		nb := b.Blocks[name]
		one := func(v sides, at cty.Path) { c.planBlock(nb.Block, v, at) }
		c.planNested(planNester{nb.Nesting, "blocks", one}, v.field(name), path.GetAttr(name))
	}
}

// field returns an attribute of an object, or NilVal if there is no object.
func field(obj cty.Value, name string) cty.Value {
	if absent(obj) {
		return cty.NilVal
	}
	return obj.GetAttr(name)
}

// field returns an attribute of all sides. There may be no prior object.
func (v sides) field(name string) sides {
	return sides{field(v.prior, name), v.config.GetAttr(name), v.planned.GetAttr(name)}
}

func (c *checker) planAttr(a *Attribute, v sides, path cty.Path, name string) {
	prior, config, planned := v.prior, v.config, v.planned
	switch {
	case a.WriteOnly:
		if !planned.IsNull() {
			c.writeOnly(path.GetAttr(name), "plan")
		}
	case config.IsNull() && (a.Computed || planned.IsNull()):
	case config.IsNull() && a.Nested == nil:
		c.differ(path.GetAttr(name), config, planned, a.Sensitive, "a value is planned for an attribute that the configuration does not set and that is not computed")
	case same(planned, config):
	case prior != cty.NilVal && !prior.IsNull() && same(planned, prior):
	case a.Nested != nil:
		c.planNestedAttr(a, v, path.GetAttr(name))
	default:
		c.differ(path.GetAttr(name), config, planned, a.Sensitive, "the planned value is neither that of the configuration nor the prior one")
	}
}

func (c *checker) planNestedAttr(a *Attribute, v sides, path cty.Path) {
	if v.config.IsNull() != v.planned.IsNull() && v.config.IsKnown() {
		c.exists(v.config, v.planned, path)
		return
	}
	o := a.Nested
	one := func(v sides, at cty.Path) { c.planObject(o, v, at) }
	c.planNested(planNester{o.Nesting, "elements", one}, v, path)
}

func (c *checker) planObject(o *Object, v sides, path cty.Path) {
	config, planned := v.config, v.planned
	if config.IsKnown() && config.IsNull() != planned.IsNull() {
		c.exists(config, planned, path)
		return
	}
	if absent(config) || absent(planned) {
		return
	}
	for _, name := range sortedNames(o.Attributes) {
		c.planAttr(o.Attributes[name], v.field(name), path, name)
	}
}

// planNester checks the elements of a nested block type or attribute.
type planNester struct {
	nesting Nesting
	what    string // name in messages, plural
	one     func(v sides, at cty.Path)
}

// planNested checks the blocks of one type, or the objects of a nested attribute. Elements of
// sets have no identity; only their number is checked.
func (c *checker) planNested(n planNester, v sides, path cty.Path) {
	if n.nesting == Single || n.nesting == Group {
		n.one(v, path)
		return
	}
	config, planned := v.config, v.planned
	switch {
	case !config.IsKnown():
		return
	case !planned.IsKnown():
		c.add(path, "all %s together are unknown; only attributes in them may be", n.what)
		return
	case planned.IsNull() || config.IsNull():
		if config.IsNull() != planned.IsNull() {
			c.add(path, "no %s must be an empty collection, not null", n.what)
		}
		return
	}
	if n.nesting == Set {
		a, b := config.LengthInt(), planned.LengthInt()
		if a != b && config.IsWhollyKnown() && planned.IsWhollyKnown() { // unknown elements may become equal to others
			c.add(path, "the configuration has %d %s, the plan %d", a, n.what, b)
		}
		return
	}
	ck, cv := elements(config)
	pk, pv := elements(planned)
	if n.nesting == Map {
		c.planMap(n, v.prior, keyedList{ck, cv}, keyedList{pk, pv}, path)
		return
	}
	if len(cv) != len(pv) {
		c.add(path, "the configuration has %d %s, the plan %d", len(cv), n.what, len(pv))
		return
	}
	var before []cty.Value
	if !absent(v.prior) {
		_, before = elements(v.prior)
	}
	for i := range cv {
		p := cty.NilVal
		if i < len(before) {
			p = before[i]
		}
		n.one(sides{p, cv[i], pv[i]}, path.IndexInt(i))
	}
}

func keyed(keys []string, vals []cty.Value) map[string]cty.Value {
	m := make(map[string]cty.Value, len(keys))
	for i, k := range keys {
		m[k] = vals[i]
	}
	return m
}

// keyedList contains the elements of a map sorted by key.
type keyedList struct {
	keys []string
	vals []cty.Value
}

func (l keyedList) byKey() map[string]cty.Value { return keyed(l.keys, l.vals) }

func (c *checker) planMap(n planNester, prior cty.Value, config, planned keyedList, path cty.Path) {
	var before map[string]cty.Value
	if !absent(prior) {
		before = prior.AsValueMap()
	}
	wanted, got := config.byKey(), planned.byKey()
	for _, k := range planned.keys {
		cv, ok := wanted[k]
		if !ok {
			c.add(path, "the plan has an element %q that the configuration does not have", k)
			continue
		}
		n.one(sides{before[k], cv, got[k]}, path.IndexString(k))
	}
	for _, k := range config.keys {
		if _, ok := got[k]; !ok {
			c.add(path, "the plan lacks the element %q of the configuration", k)
		}
	}
}

// same reports equality without comparing refinements of unknown values.
func same(a, b cty.Value) bool {
	if a.RawEquals(b) {
		return true
	}
	if a.IsWhollyKnown() || b.IsWhollyKnown() {
		return false
	}
	return unrefined(a).RawEquals(unrefined(b))
}

func unrefined(v cty.Value) cty.Value {
	v, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.UnknownVal(v.Type()), nil
		}
		return v, nil
	})
	if err != nil {
		return cty.DynamicVal
	}
	return v
}
