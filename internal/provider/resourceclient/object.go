package resourceclient

import (
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// An Object is an object of a managed resource, as its provider knows it.
type Object struct {
	Value    cty.Value // null if there is none; without marks
	Private  []byte
	Identity cty.Value     // cty.NilVal if there is none
	Stored   *state.Object // what state holds of it; nil if nothing
	Moved    bool          // it was an object of another type: the provider took it over
}

// Sensitive is the paths that state says are sensitive.
func (o Object) Sensitive() []cty.Path {
	if o.Stored == nil {
		return nil
	}
	return o.Stored.Sensitive
}

// Store makes what state holds of an object; the caller sets the fields that do
// not come from the provider.
func (sub *Subject) Store(o Object) (*state.Object, diag.List) {
	obj, err := newObject(o, sub.Schema)
	if err != nil {
		return nil, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "What the provider returned for %s cannot be stored: %s.", sub.Addr, err)
	}
	return obj, nil
}

func newObject(o Object, s *schema.Resource) (*state.Object, error) {
	obj, err := state.NewObject(o.Value, s.Block.ImpliedType())
	if err != nil {
		return nil, err
	}
	obj.SchemaVersion = s.Version
	obj.Private = o.Private
	if s.Identity != nil && o.Identity != cty.NilVal && !o.Identity.IsNull() && o.Identity.IsWhollyKnown() {
		if obj.Identity, err = ctyjson.Marshal(o.Identity, s.Identity.ImpliedType()); err != nil {
			return nil, err
		}
		obj.IdentityVersion = s.IdentityVersion
	}
	return obj, nil
}

// Marked is a value with what is sensitive in it marked: by paths, of which some
// may lead nowhere, and by the schema.
func (sub *Subject) Marked(v cty.Value, paths []cty.Path) cty.Value {
	if v == cty.NilVal || v.IsNull() {
		return v
	}
	return WithSensitive(v, Present(v, paths), sub.Schema)
}

// Called is what people know an object by.
type Called struct{ Key, Value string }

// Called is Identify for a value without marks, of which the given paths and what the
// schema says are sensitive.
func (sub *Subject) Called(v cty.Value, sensitive []cty.Path) Called {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return Called{}
	}
	hides := func(name string) bool {
		if a := sub.Schema.Block.Attributes[name]; a != nil && a.Sensitive {
			return true
		}
		return slices.ContainsFunc(sensitive, func(p cty.Path) bool {
			return len(p) == 0 || len(p) == 1 && p[0] == cty.PathStep(cty.GetAttrStep{Name: name})
		})
	}
	key, text := identify(v, hides)
	return Called{key, text}
}

// Identify finds the name and value of the attribute that tells people which
// object a value is; "" if none does that may be shown.
func Identify(v cty.Value) (key, text string) {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return "", ""
	}
	if v.IsMarked() {
		return "", ""
	}
	return identify(v, func(string) bool { return false })
}

func identify(v cty.Value, hides func(name string) bool) (key, text string) {
	ty := v.Type()
	for _, name := range []string{"id", "name"} {
		if !ty.IsObjectType() || !ty.HasAttribute(name) || ty.AttributeType(name) != cty.String || hides(name) {
			continue
		}
		x := v.GetAttr(name)
		if !x.IsMarked() && x.IsKnown() && !x.IsNull() {
			return name, x.AsString()
		}
	}
	return "", ""
}
