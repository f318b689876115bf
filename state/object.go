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

// An Object is the stored record of one real object. It is immutable, and snapshots share it.
type Object struct {
	Tainted       bool              // the object must be replaced, because its creation was not completed
	Replace       string            // why an apply with deferred objects planned to replace it: ReplaceRequested, ReplaceTriggered, or "" if it did not
	SchemaVersion int64             // schema version of JSON or Flat
	JSON          []byte            // attributes as stored: compact, escaped like encoding/json; nil if Flat is set
	Flat          map[string]string // attributes in the form of state versions before 4
	Value         cty.Value         // decoded attributes without marks; cty.NilVal if they have not been decoded
	Sensitive     []cty.Path        // paths of sensitive values, in addition to those that the schema marks

	Private      []byte                // the provider's private data; never shown
	Dependencies []addr.ConfigResource // resources on which the object depends, for the order of destroys

	CreateBeforeDestroy bool
	SkipDestroy         bool // lifecycle.destroy = false

	Identity        []byte // JSON; nil if there is none
	IdentityVersion int64
}

// Reasons for which an apply with deferred objects planned to replace an object. A plan after that
// apply cannot find them again, so the state contains them until the object is replaced. OpenTofu and
// Terraform ignore them in a state, and write it without them.
const (
	ReplaceRequested = "requested" // the -replace option
	ReplaceTriggered = "triggered" // the argument replace_triggered_by
)

// NewObject returns an object with the attributes v, whose type must conform to ty, the implied
// type of its schema. It removes marks: Sensitive lists the paths that were marked as
// sensitive. An ephemeral or unknown value is an error. The caller sets the other fields before
// sharing the object.
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

// Decode returns the attributes as a value of type ty, without marks. Attributes in Flat form
// must be upgraded first.
func (o *Object) Decode(ty cty.Type) (cty.Value, error) {
	if o.Value != cty.NilVal && ty.Equals(o.Value.Type()) {
		return o.Value, nil
	}
	if o.JSON == nil {
		return cty.NilVal, fmt.Errorf("the attributes are stored in the form of an older version and need an upgrade by the provider first")
	}
	return Decode(o.JSON, ty)
}

// Equal reports whether all stored parts of two objects are equal.
func (o *Object) Equal(p *Object) bool {
	if o == p {
		return true
	}
	if o == nil || p == nil {
		return false
	}
	return o.Tainted == p.Tainted && o.Replace == p.Replace && o.SchemaVersion == p.SchemaVersion &&
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

// SortPaths sorts paths, so that state files are deterministic.
func SortPaths(ps []cty.Path) {
	slices.SortFunc(ps, comparePaths)
}
