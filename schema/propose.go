package schema

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// The proposed new object is the provider's input for planning: the configuration, with prior
// computed values for attributes that the configuration omits. Source: the resource instance
// change lifecycle of the plugin protocol.
//
// Elements of nested lists are matched with prior ones by index, and those of maps by key.
// Elements of sets have no key: a prior element matches a configured one if the two differ only
// in computed attributes that the configuration omits. An index of prior elements by the
// attributes that the configured element sets avoids comparing all pairs.

// ProposedNew merges a configuration with the prior object. A null prior means a create;
// computed attributes then remain null, as the protocol requires. If config is null or unknown,
// it returns prior. Write-only attributes have the configured value: the provider must plan
// null for them, as with OpenTofu 1.12.6. Both values must conform to the block's implied type
// and must not have marks.
func (b *Block) ProposedNew(prior, config cty.Value) cty.Value { return b.propose(prior, config) }

func (b *Block) propose(prior, config cty.Value) cty.Value {
	switch {
	case config.IsNull() || !config.IsKnown():
		if prior == cty.NilVal {
			return config
		}
		return prior
	case absent(prior):
		return config
	}
	var out map[string]cty.Value // nil as long as the result equals config
	set := func(name string, v cty.Value) {
		if out == nil {
			out = config.AsValueMap()
		}
		out[name] = v
	}
	proposeAttrs(b.Attributes, prior, config, set)
	for _, name := range b.facts().blocks {
		p, c := prior.GetAttr(name), config.GetAttr(name)
		nb := b.Blocks[name]
		if absent(p) || absent(c) {
			continue
		}
		n := nester{nb.Nesting, nb.Block.propose, nb.Block.Attributes, nb.Block.couldBecome}
		if v, changed := n.propose(p, c); changed {
			set(name, v)
		}
	}
	if out == nil {
		return config
	}
	return cty.ObjectVal(out)
}

func proposeAttrs(attrs map[string]*Attribute, prior, config cty.Value, set func(string, cty.Value)) {
	for name, a := range attrs {
		c := config.GetAttr(name)
		switch {
		case c.IsNull():
			if !a.Computed {
				continue
			}
			p := prior.GetAttr(name)
			if p.IsNull() { // a null of dynamic type keeps its type
				if !p.Type().Equals(c.Type()) {
					set(name, p)
				}
				continue
			}
			if !(a.Optional && a.Nested != nil && a.Nested.configured(p)) {
				set(name, p)
			}
		case a.Nested != nil && c.IsKnown():
			p := prior.GetAttr(name)
			if absent(p) {
				continue
			}
			o := a.Nested
			n := nester{o.Nesting, o.propose, o.Attributes, o.couldBecome}
			if v, changed := n.propose(p, c); changed {
				set(name, v)
			}
		}
	}
}

// propose is [Block.propose] for one object of a nested attribute.
func (o *Object) propose(prior, config cty.Value) cty.Value {
	if absent(config) || absent(prior) {
		return config
	}
	var out map[string]cty.Value
	proposeAttrs(o.Attributes, prior, config, func(name string, v cty.Value) {
		if out == nil {
			out = config.AsValueMap()
		}
		out[name] = v
	})
	if out == nil {
		return config
	}
	return cty.ObjectVal(out)
}

// configured reports whether a prior value of a nested attribute contains something that only a
// configuration can have set. If such an optional and computed attribute is now missing in the
// configuration, it was removed.
func (o *Object) configured(v cty.Value) bool {
	if absent(v) {
		return false
	}
	if o.Nesting == Single {
		return o.configuredOne(v)
	}
	_, vals := elements(v)
	for _, e := range vals {
		if o.configuredOne(e) {
			return true
		}
	}
	return false
}

func (o *Object) configuredOne(v cty.Value) bool {
	if absent(v) {
		return false
	}
	for name, a := range o.Attributes {
		av := v.GetAttr(name)
		if av.IsNull() {
			continue
		}
		if !a.Computed || a.Nested != nil && a.Nested.configured(av) {
			return true
		}
	}
	return false
}

// A nester merges the elements of a nested block or attribute.
type nester struct {
	nesting Nesting
	merge   func(prior, config cty.Value) cty.Value
	attrs   map[string]*Attribute
	match   func(prior, config cty.Value) bool
}

// propose merges two values that are neither null nor unknown.
func (n nester) propose(prior, config cty.Value) (v cty.Value, changed bool) {
	switch n.nesting {
	case Single, Group:
		return n.merge(prior, config), true
	}
	pk, pv := elements(prior)
	ck, cv := elements(config)
	if len(pv) == 0 || len(cv) == 0 {
		return config, false
	}
	switch n.nesting {
	case List:
		for i := range min(len(pv), len(cv)) {
			cv[i] = n.merge(pv[i], cv[i])
		}
	case Map:
		at := make(map[string]int, len(pk))
		for i, k := range pk {
			at[k] = i
		}
		for i, k := range ck {
			if j, ok := at[k]; ok {
				cv[i] = n.merge(pv[j], cv[i])
			}
		}
	case Set:
		n.mergeSet(pv, cv)
	}
	return collect(n.nesting, config, ck, cv), true
}

// mergeSet replaces configured elements by the merged ones. Each prior element is used once.
func (n nester) mergeSet(prior, config []cty.Value) {
	used := make([]bool, len(prior))
	byShape := make(map[string]map[int][]int) // by the names of the attributes that config sets, then by their hash
	for i, c := range config {
		if absent(c) {
			continue
		}
		names := n.given(c)
		index, ok := byShape[names.key]
		if !ok {
			index = make(map[int][]int, len(prior))
			for j, p := range prior {
				if !absent(p) {
					h := names.hash(p)
					index[h] = append(index[h], j)
				}
			}
			byShape[names.key] = index
		}
		h := names.hash(c)
		for k, j := range index[h] {
			if used[j] || !n.match(prior[j], c) {
				continue
			}
			used[j] = true
			index[h] = slices.Delete(index[h], k, k+1)
			config[i] = n.merge(prior[j], c)
			break
		}
	}
}

// A shape is the list of attribute names that must be equal in matching set elements.
type shape struct {
	key   string
	names []string
}

// given returns the plain attributes of a configured element that must have the same values in
// its prior element.
func (n nester) given(config cty.Value) shape {
	var s shape
	for it := config.ElementIterator(); it.Next(); {
		k, v := it.Element()
		name := k.AsString()
		a := n.attrs[name]
		if a == nil || a.Nested != nil || a.WriteOnly || a.Computed && v.IsNull() {
			continue
		}
		s.names = append(s.names, name)
		s.key += name + "\x00"
	}
	return s
}

func (s shape) hash(v cty.Value) int {
	h := 17
	for _, name := range s.names {
		h = h*31 + v.GetAttr(name).Hash()
	}
	return h
}

// couldBecome reports whether prior matches a configured element: they are equal except for
// computed attributes that config omits.
func (b *Block) couldBecome(prior, config cty.Value) bool {
	if absent(prior) || absent(config) {
		return prior.RawEquals(config)
	}
	if !attrsCouldBecome(b.Attributes, prior, config) {
		return false
	}
	for name, nb := range b.Blocks {
		if !nestedCouldBecome(nb.Nesting, prior.GetAttr(name), config.GetAttr(name), nb.Block.couldBecome) {
			return false
		}
	}
	return true
}

func (o *Object) couldBecome(prior, config cty.Value) bool {
	if absent(prior) || absent(config) {
		return prior.RawEquals(config)
	}
	return attrsCouldBecome(o.Attributes, prior, config)
}

func attrsCouldBecome(attrs map[string]*Attribute, prior, config cty.Value) bool {
	for name, a := range attrs {
		p, c := prior.GetAttr(name), config.GetAttr(name)
		switch {
		case a.WriteOnly || a.Computed && c.IsNull():
		case a.Nested != nil:
			if !nestedCouldBecome(a.Nested.Nesting, p, c, a.Nested.couldBecome) {
				return false
			}
		case !p.RawEquals(c):
			return false
		}
	}
	return true
}

func nestedCouldBecome(n Nesting, prior, config cty.Value, one func(prior, config cty.Value) bool) bool {
	if absent(prior) || absent(config) {
		return prior.RawEquals(config)
	}
	if n == Single || n == Group {
		return one(prior, config)
	}
	pk, pv := elements(prior)
	ck, cv := elements(config)
	if len(pv) != len(cv) {
		return false
	}
	if n == Set {
		return allMatched(pv, cv, one)
	}
	for i := range pv {
		if n == Map && pk[i] != ck[i] || !one(pv[i], cv[i]) {
			return false
		}
	}
	return true
}

// allMatched reports whether each prior element matches a different configured one.
func allMatched(prior, config []cty.Value, one func(prior, config cty.Value) bool) bool {
	used := make([]bool, len(prior))
next:
	for _, c := range config {
		for j, p := range prior {
			if !used[j] && one(p, c) {
				used[j] = true
				continue next
			}
		}
		return false
	}
	return true
}

// SetUnknowns returns config with unknown values for computed attributes that are not set, at
// every depth. It is the value of an object that will be read or created and of which nothing
// is known. Write-only attributes become null.
func (b *Block) SetUnknowns(config cty.Value) cty.Value {
	return b.StripWriteOnly(b.setUnknowns(config))
}

func (b *Block) setUnknowns(config cty.Value) cty.Value {
	if absent(config) {
		return config
	}
	var out map[string]cty.Value
	set := func(name string, v cty.Value) {
		if out == nil {
			out = config.AsValueMap()
		}
		out[name] = v
	}
	b.eachUnknown(config.GetAttr, set)
	if out == nil {
		return config
	}
	return cty.ObjectVal(out)
}

// SetUnknownsOf is SetUnknowns for the attributes and blocks of a configuration. It does not modify the map.
func (b *Block) SetUnknownsOf(config map[string]cty.Value) cty.Value {
	out := maps.Clone(config)
	b.eachUnknown(func(name string) cty.Value { return config[name] }, func(name string, v cty.Value) { out[name] = v })
	return b.StripWriteOnly(cty.ObjectVal(out))
}

// eachUnknown calls set for the attributes and blocks that contain computed attributes which are not set, with
// unknown values for these. get returns the value in the configuration.
func (b *Block) eachUnknown(get func(name string) cty.Value, set func(name string, v cty.Value)) {
	unknownAttrs(b.Attributes, get, set)
	for _, name := range b.facts().blocks {
		c := get(name)
		if absent(c) {
			continue
		}
		nb := b.Blocks[name]
		set(name, mapElements(nb.Nesting, c, nb.Block.setUnknowns))
	}
}

func unknownAttrs(attrs map[string]*Attribute, get func(string) cty.Value, set func(string, cty.Value)) {
	for name, a := range attrs {
		c := get(name)
		switch {
		case c.IsNull():
			if a.Computed {
				set(name, cty.UnknownVal(a.Type))
			}
		case a.Nested != nil && c.IsKnown():
			set(name, mapElements(a.Nested.Nesting, c, a.Nested.setUnknowns))
		}
	}
}

func (o *Object) setUnknowns(config cty.Value) cty.Value {
	if absent(config) {
		return config
	}
	out := config.AsValueMap()
	unknownAttrs(o.Attributes, config.GetAttr, func(name string, v cty.Value) { out[name] = v })
	return cty.ObjectVal(out)
}

// mapElements applies a function to each object in a value that is neither null nor unknown.
func mapElements(n Nesting, v cty.Value, one func(cty.Value) cty.Value) cty.Value {
	if n == Single || n == Group {
		return one(v)
	}
	keys, vals := elements(v)
	if len(vals) == 0 {
		return v
	}
	for i, e := range vals {
		vals[i] = one(e)
	}
	return collect(n, v, keys, vals)
}
