package state

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// An Object is what is known of one real object. It never changes after it
// left its maker; two snapshots share it.
type Object struct {
	Tainted       bool
	SchemaVersion int64
	JSON          []byte            // attributes as stored: compact, escaped as encoding/json does; nil if Flat holds them
	Flat          map[string]string // attributes as formats before 4 have them
	Value         cty.Value         // decoded and without marks, if that was known to the maker; else cty.NilVal
	Sensitive     []cty.Path        // where the value is sensitive, beyond what the schema says

	Private      []byte // the provider's own; never shown
	Dependencies []addr.ConfigResource

	CreateBeforeDestroy bool
	SkipDestroy         bool // lifecycle.destroy = false

	Identity        []byte // JSON; nil if there is none
	IdentityVersion int64
}

// NewObject makes an object of a wholly known value whose type conforms to ty,
// the implied type of its schema. Marks are taken off: where v was sensitive or
// hidden becomes Sensitive. The caller sets the other fields before it hands
// the object on. An ephemeral or unknown value is an error.
func NewObject(v cty.Value, ty cty.Type) (*Object, error) {
	o := &Object{Value: v}
	if value.Marked(v) {
		if value.ContainsMark(v, value.Ephemeral) {
			return nil, fmt.Errorf("an ephemeral value cannot be stored")
		}
		var marked []cty.PathValueMarks
		o.Value, marked = v.UnmarkDeepWithPaths()
		for _, m := range marked {
			_, sensitive := m.Marks[value.Sensitive]
			_, hidden := m.Marks[value.Hidden]
			if sensitive || hidden {
				o.Sensitive = append(o.Sensitive, m.Path)
			}
		}
		SortPaths(o.Sensitive)
	}
	var err error
	o.JSON, err = Encode(o.Value, ty)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Decode returns the attributes as a value of type ty, without marks. An
// object whose attributes are in Flat form must be upgraded first.
func (o *Object) Decode(ty cty.Type) (cty.Value, error) {
	if o.Value != cty.NilVal && ty.Equals(o.Value.Type()) {
		return o.Value, nil
	}
	if o.JSON == nil {
		return cty.NilVal, fmt.Errorf("the attributes are stored in the form of an older version and need an upgrade by the provider first")
	}
	return Decode(o.JSON, ty)
}

// Equal reports whether two objects are the same in everything that is stored.
func (o *Object) Equal(p *Object) bool {
	if o == p {
		return true
	}
	if o == nil || p == nil {
		return false
	}
	return o.Tainted == p.Tainted && o.SchemaVersion == p.SchemaVersion &&
		o.CreateBeforeDestroy == p.CreateBeforeDestroy && o.SkipDestroy == p.SkipDestroy &&
		o.IdentityVersion == p.IdentityVersion &&
		bytes.Equal(o.Private, p.Private) &&
		slices.Equal(o.Dependencies, p.Dependencies) &&
		equalPaths(o.Sensitive, p.Sensitive) &&
		maps.Equal(o.Flat, p.Flat) &&
		equalJSON(o.JSON, p.JSON) && equalJSON(o.Identity, p.Identity)
}

func equalPaths(a, b []cty.Path) bool {
	return slices.EqualFunc(a, b, func(a, b cty.Path) bool { return a.Equals(b) })
}

// SortPaths orders paths, so that a state file does not depend on chance.
func SortPaths(ps []cty.Path) {
	slices.SortFunc(ps, comparePaths)
}
