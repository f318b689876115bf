// Package unmanaged compares listed objects with the states of units: which objects are in no
// state, and which unit should own them.
//
// Main types: Index, the objects in the states of all units; Object, a listed object; Proposal.
// The one rule: the cost for each object does not depend on the number of units.
package unmanaged

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

// An Object is a listed object.
type Object struct {
	Type     string
	Provider addr.Provider
	Config   state.Digest   // digest of the provider configuration that lists it
	Identity map[string]any // parts that are null are ignored
	Name     string         // display name; may be ""
	Attrs    map[string]any // attributes; nil if they are not known
}

// A Proposal is the unit that should own an object. Unit is "" if no unit fits.
type Proposal struct {
	Unit   string `json:"unit"`
	Reason string `json:"reason"`
}

// An Index contains the managed objects in the states of all units. The zero value is empty.
type Index struct {
	kinds   map[kindKey]*kind
	units   map[unitsKey]map[string]bool // the units that use a provider configuration
	imports map[importKey]*Import
}

// An Import is an import block of a unit whose object is not in the state yet.
type Import struct {
	Unit    string `json:"unit"`
	Address string `json:"address"` // of the resource instance
}

type importKey struct {
	kindKey
	object string // a key of the identity, or the ID
}

type kindKey struct {
	typ      string
	provider addr.Provider
}

type unitsKey struct {
	provider addr.Provider
	config   state.Digest
}

// kind contains the objects of one resource type.
type kind struct {
	identities map[string]bool
	plain      []map[string]any           // attributes of the objects without an identity
	projected  map[string]map[string]bool // keys of plain by the names of identity parts
	owners     map[state.Digest]*owners
}

// owners contains the units that have objects of a type with one provider configuration.
type owners struct {
	count map[string]int    // number of objects by unit
	words map[string][]user // units by tag or word of a name
}

// A user is a unit with an object that has a tag or a word of a name.
type user struct{ unit, address string }

// mostUsers is the number of units with a tag or word above which it says nothing about an owner.
const mostUsers = 32

// Add adds the objects in the state of a unit. configs contains the digests of its provider
// configurations.
func (x *Index) Add(unit string, s *state.State, configs map[addr.ProviderConfig]state.Digest) {
	if x.kinds == nil {
		x.kinds, x.units = map[kindKey]*kind{}, map[unitsKey]map[string]bool{}
	}
	for pc, digest := range configs {
		x.use(unit, pc.Provider, digest)
	}
	if s == nil {
		return
	}
	for _, r := range s.Sorted() {
		if r.Addr.Resource.Mode != addr.Managed {
			continue
		}
		k := x.kind(kindKey{r.Addr.Resource.Type, r.Provider.Provider})
		for _, key := range r.Keys() {
			i := r.Instances[key]
			for _, o := range i.Deposed {
				k.add(o)
			}
			if i.Current == nil {
				continue
			}
			attrs := k.add(i.Current)
			digest, ok := configs[r.Config(i)]
			if !ok {
				continue // the configuration does not have the provider configuration any more
			}
			x.use(unit, r.Provider.Provider, digest)
			k.own(digest, unit, r.Addr.Instance(key).String(), r.Addr.Resource.Name, attrs)
		}
	}
}

func (x *Index) use(unit string, p addr.Provider, digest state.Digest) {
	key := unitsKey{p, digest}
	if x.units[key] == nil {
		x.units[key] = map[string]bool{}
	}
	x.units[key][unit] = true
}

func (x *Index) kind(key kindKey) *kind {
	k := x.kinds[key]
	if k == nil {
		k = &kind{identities: map[string]bool{}, projected: map[string]map[string]bool{}, owners: map[state.Digest]*owners{}}
		x.kinds[key] = k
	}
	return k
}

// add adds a stored object, and returns its attributes.
func (k *kind) add(o *state.Object) map[string]any {
	attrs := map[string]any{}
	if o.JSON != nil {
		_ = json.Unmarshal(o.JSON, &attrs) // the state was read, so it is JSON
	}
	for name, v := range o.Flat {
		attrs[name] = v
	}
	var identity map[string]any
	if o.Identity != nil && json.Unmarshal(o.Identity, &identity) == nil && len(known(identity)) > 0 {
		k.identities[keyOf(identity)] = true
	} else {
		k.plain = append(k.plain, attrs)
	}
	return attrs
}

// own records that a unit has an object with a provider configuration.
func (k *kind) own(digest state.Digest, unit, address, name string, attrs map[string]any) {
	o := k.owners[digest]
	if o == nil {
		o = &owners{count: map[string]int{}, words: map[string][]user{}}
		k.owners[digest] = o
	}
	o.count[unit]++
	title, _ := attrs["name"].(string)
	for _, w := range append(tags(attrs), words(name+" "+title)...) {
		if all := o.words[w]; len(all) <= mostUsers && !slices.ContainsFunc(all, func(u user) bool { return u.unit == unit }) {
			o.words[w] = append(all, user{unit, address})
		}
	}
}

// Managed reports whether an object is in the state of a unit. It compares the identity. With
// objects that were stored without one, it compares the attributes that have the names of the
// identity's parts, such as id.
func (x *Index) Managed(o Object) bool {
	k := x.kinds[kindKey{o.Type, o.Provider}]
	if k == nil {
		return false
	}
	if k.identities[keyOf(o.Identity)] {
		return true
	}
	if len(k.plain) == 0 {
		return false
	}
	identity := known(o.Identity)
	names := slices.Sorted(maps.Keys(identity))
	if k.has(names, identity) {
		return true
	}
	id := o.Attrs["id"]
	if id == nil {
		id = identity["id"]
	}
	return id != nil && k.has([]string{"id"}, map[string]any{"id": id})
}

// AddImport adds an import block, which has an identity or an ID.
func (x *Index) AddImport(im Import, typ string, p addr.Provider, id string, identity map[string]any) {
	if x.imports == nil {
		x.imports = map[importKey]*Import{}
	}
	object := id
	if identity != nil {
		object = keyOf(identity)
	}
	if key := (importKey{kindKey{typ, p}, object}); x.imports[key] == nil {
		x.imports[key] = &im
	}
}

// Importing returns the import block that imports an object, or nil. An ID is compared with the
// attribute id, and with the identity if it has one part.
func (x *Index) Importing(o Object) *Import {
	identity := known(o.Identity)
	objects := []any{keyOf(identity), o.Attrs["id"]}
	if len(identity) == 1 {
		for _, v := range identity {
			objects = append(objects, v)
		}
	}
	for _, v := range objects {
		if text, ok := v.(string); ok {
			if im := x.imports[importKey{kindKey{o.Type, o.Provider}, text}]; im != nil {
				return im
			}
		}
	}
	return nil
}

// has reports whether an object without an identity has the given attributes.
func (k *kind) has(names []string, values map[string]any) bool {
	if len(names) == 0 {
		return false
	}
	by := strings.Join(names, " ")
	set := k.projected[by]
	if set == nil {
		set = map[string]bool{}
		for _, attrs := range k.plain {
			part := map[string]any{}
			for _, n := range names {
				part[n] = attrs[n]
			}
			if len(known(part)) == len(names) {
				set[keyOf(part)] = true
			}
		}
		k.projected[by] = set
	}
	return set[keyOf(values)]
}

// Propose returns the unit that should own an object. The unit must use the same provider
// configuration. Among those with objects of the type, the one with the nearest tags and names is
// proposed. lists is the unit whose list block lists the object.
func (x *Index) Propose(o Object, lists string) Proposal {
	var of *owners
	if k := x.kinds[kindKey{o.Type, o.Provider}]; k != nil {
		of = k.owners[o.Config]
	}
	users := x.units[unitsKey{o.Provider, o.Config}]
	if of == nil {
		switch {
		case users[lists]:
			return Proposal{lists, "No unit has objects of the type with this provider configuration; this unit lists the object."}
		case len(users) == 1:
			for unit := range users {
				return Proposal{unit, "No unit has objects of the type; this unit is the only one with this provider configuration."}
			}
		}
		return Proposal{"", "No unit has objects of the type with this provider configuration."}
	}
	score, shared, example := map[string]float64{}, map[string][]string{}, map[string]string{}
	title, _ := o.Attrs["name"].(string)
	for _, w := range append(tags(o.Attrs), unique(words(o.Name+" "+title))...) {
		all := of.words[w]
		if len(all) > mostUsers {
			continue
		}
		for _, u := range all {
			weight := 1 / float64(len(all))
			if strings.Contains(w, "=") {
				weight *= 2 // a tag says more than a word of a name
			}
			score[u.unit] += weight
			shared[u.unit] = append(shared[u.unit], w)
			example[u.unit] = cmp.Or(example[u.unit], u.address)
		}
	}
	best := ""
	for _, unit := range slices.Sorted(maps.Keys(score)) {
		if best == "" || score[unit] > score[best] || score[unit] == score[best] && unit == lists {
			best = unit
		}
	}
	if best != "" {
		return Proposal{best, fmt.Sprintf("It has %s with this provider configuration, and %s like this one: %s.", objects(of.count[best], o.Type), example[best], strings.Join(shared[best], ", "))}
	}
	if n := of.count[lists]; n > 0 {
		return Proposal{lists, fmt.Sprintf("It has %s with this provider configuration, and lists the object.", objects(n, o.Type))}
	}
	if len(of.count) == 1 {
		for unit, n := range of.count {
			return Proposal{unit, fmt.Sprintf("It is the only unit with objects of the type and this provider configuration (%d).", n)}
		}
	}
	return Proposal{"", fmt.Sprintf("%d units have objects of the type with this provider configuration, and none has a tag or a name like this one.", len(of.count))}
}

func objects(n int, typ string) string {
	if n == 1 {
		return "1 " + typ
	}
	return fmt.Sprintf("%d %s", n, typ)
}

// known returns the parts that are not null.
func known(v map[string]any) map[string]any {
	out := make(map[string]any, len(v))
	for name, e := range v {
		if e != nil {
			out[name] = e
		}
	}
	return out
}

// keyOf returns a text that is equal for equal values, without parts that are null.
func keyOf(v map[string]any) string {
	b, err := json.Marshal(known(v)) // the names are sorted
	if err != nil {
		return ""
	}
	return string(b)
}

// tags returns the elements of all attributes that are maps of texts, as name=value.
func tags(attrs map[string]any) []string {
	var out []string
	for _, v := range attrs {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		for name, e := range m {
			if text, ok := e.(string); ok && text != "" {
				out = append(out, name+"="+text)
			}
		}
	}
	return unique(out)
}

// words returns the words of names in lower case, without numbers and words of one letter.
func words(names string) []string {
	all := strings.FieldsFunc(strings.ToLower(names), func(c rune) bool { return (c < 'a' || c > 'z') && c < 128 })
	return slices.DeleteFunc(all, func(w string) bool { return len(w) < 2 })
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
