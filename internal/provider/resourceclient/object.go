package resourceclient

import (
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// An Object is an object of a managed resource, as its provider returned it.
type Object struct {
	Value    cty.Value // without marks; null if there is no object
	Private  []byte
	Identity cty.Value            // cty.NilVal if there is none
	Stored   *state.Object        // the object in state; nil if it is not in state
	Moved    bool                 // the provider converted it from an object of another type
	Deferred provider.DeferReason // the reason for which the provider deferred reading it; then the rest is as it was
}

// Sensitive returns the sensitive paths in state.
func (o Object) Sensitive() []cty.Path {
	if o.Stored == nil {
		return nil
	}
	return o.Stored.Sensitive
}

// Store returns an object for state. The caller sets the fields that do not come from the
// provider.
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
	if err := omitNull(obj, s.Block); err != nil {
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

// omitNull encodes the attributes again without the null blocks that are not stored.
func omitNull(obj *state.Object, b *schema.Block) (err error) {
	var attrs map[string]cty.Value
	for name, nb := range b.Blocks {
		if nb.OmitNull && !obj.Value.IsNull() && obj.Value.GetAttr(name).IsNull() {
			if attrs == nil {
				attrs = obj.Value.AsValueMap()
			}
			delete(attrs, name)
		}
	}
	if attrs == nil {
		return nil
	}
	types := map[string]cty.Type{}
	for name, ty := range b.ImpliedType().AttributeTypes() {
		if _, ok := attrs[name]; ok {
			types[name] = ty
		}
	}
	obj.JSON, err = state.Encode(cty.ObjectVal(attrs), cty.Object(types))
	return err
}

// Marked returns a value with its sensitive parts marked: those at the paths, and those in
// the schema. Paths that do not exist are ignored.
func (sub *Subject) Marked(v cty.Value, paths []cty.Path) cty.Value {
	if v == cty.NilVal || v.IsNull() {
		return v
	}
	return WithSensitive(v, Present(v, paths), sub.Schema)
}

// Called is the name and value of the attribute that identifies an object to users.
type Called struct{ Key, Value string }

// Called returns Identify for a value without marks. sensitive are its sensitive paths
// besides those in the schema.
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

// Identify returns the name and value of the attribute that identifies an object to users.
// It returns "" if there is none, or if it is sensitive.
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
