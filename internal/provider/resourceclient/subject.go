package resourceclient

import (
	"bytes"
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Subject is an instance that provider calls are about. Every response is checked against
// the schema and the protocol. It may be used concurrently.
type Subject struct {
	Addr   addr.Instance
	Of     addr.ProviderConfig
	Schema *schema.Resource

	x    *Client
	prov provider.Provider
	meta cty.Value // provider_meta of the instance's module, or cty.NilVal
}

// Subject returns the subject for an instance of a type with the schema s. prov is the
// result of Configured.
func (x *Client) Subject(ev *eval.Evaluator, a addr.Instance, of addr.ProviderConfig, s *schema.Resource, prov provider.Provider) *Subject {
	meta := ev.ProviderMeta(a, of.Provider, func() (*schema.Provider, diag.List) { return prov.Schema(x.ctx) })
	return &Subject{x: x, Addr: a, Of: of, Schema: s, prov: prov, meta: meta}
}

// ctx returns the context of calls about the subject.
func (sub *Subject) ctx() context.Context {
	return provider.WithCaller(sub.x.ctx, provider.Caller{Config: sub.Of, Instance: sub.Addr})
}

// deferrable returns the context of a call that the provider may defer, if the options allow
// that.
func (sub *Subject) deferrable() (context.Context, *provider.Deferral) {
	d := &provider.Deferral{}
	if !sub.x.o.MayDefer {
		return sub.ctx(), d
	}
	return provider.WithDeferral(sub.ctx(), d), d
}

// Null returns the null value of the subject's type: no object.
func (sub *Subject) Null() cty.Value { return cty.NullVal(sub.Schema.Block.ImpliedType()) }

// None returns Null as an Object.
func (sub *Subject) None() Object { return Object{Value: sub.Null()} }

// Validate validates a configuration without marks.
func (sub *Subject) Validate(config cty.Value) diag.List {
	defer sub.x.call()()
	return sub.prov.ValidateResource(sub.ctx(), sub.Addr.Resource.Mode, sub.Addr.Resource.Type, config)
}

// Stored converts an object in state to the current schema.
func (sub *Subject) Stored(stored *state.Object) (Object, diag.List) {
	o := Object{Stored: stored, Private: stored.Private}
	v, ds := sub.upgrade(stored)
	o.Value = v
	if ds.HasErrors() {
		return o, ds
	}
	s := sub.Schema
	if s.Identity != nil && stored.Identity != nil {
		ty := s.Identity.ImpliedType()
		var err error
		if stored.IdentityVersion == s.IdentityVersion {
			o.Identity, err = ctyjson.Unmarshal(stored.Identity, ty)
		} else {
			var more diag.List
			done := sub.x.call()
			o.Identity, more = sub.prov.UpgradeIdentity(sub.ctx(), sub.Addr.Resource.Type, stored.IdentityVersion, stored.Identity)
			done()
			ds = append(ds, more...)
		}
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeProviderIdentity, nil, "Failed to decode resource identity", "The identity that state holds for %s cannot be read: %s.", sub.Addr, err)...)
		}
	}
	return o, ds
}

// upgrade requests the conversion of stored attributes to the provider's schema.
func (sub *Subject) upgrade(stored *state.Object) (cty.Value, diag.List) {
	s, a := sub.Schema, sub.Addr
	if stored.SchemaVersion > s.Version {
		return sub.Null(), diag.Errorf(diag.CodeProviderNewer, nil, "Resource instance managed by newer provider version", "The current state of %s was created by a newer provider version than is currently selected. Upgrade the provider to work with this state.", a)
	}
	done := sub.x.call()
	v, ds := sub.prov.UpgradeState(sub.ctx(), provider.UpgradeRequest{Type: a.Resource.Type, Version: stored.SchemaVersion, JSON: stored.JSON, Flat: stored.Flat})
	done()
	if ds.HasErrors() {
		return sub.Null(), ds
	}
	if err := schema.AssertUsable(s.Block, v, true); err != nil {
		return sub.Null(), append(ds, diag.Errorf(diag.CodeProviderUpgrade, nil, "Invalid resource state upgrade", "The provider upgraded the state of %s to a value that does not fit its own schema: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a, err)...)
	}
	return v, ds
}

// TakeOver requests the conversion of an object of another type, and possibly of another
// provider, to the subject's type.
func (sub *Subject) TakeOver(from addr.Instance, of addr.Provider, stored *state.Object) (Object, diag.List) {
	done := sub.x.call()
	resp, ds := sub.prov.Move(sub.ctx(), provider.MoveRequest{
		SourceProvider: of, SourceType: from.Resource.Type, SourceVersion: stored.SchemaVersion, SourceJSON: stored.JSON,
		SourcePrivate: stored.Private, SourceIdentityJSON: stored.Identity, SourceIdentityVersion: stored.IdentityVersion, TargetType: sub.Addr.Resource.Type,
	})
	done()
	if ds.HasErrors() {
		return sub.None(), ds.Note(nil, "%s moved to %s", from, sub.Addr)
	}
	if err := schema.AssertUsable(sub.Schema.Block, resp.State, true); err != nil || resp.State.IsNull() {
		return sub.None(), append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "The provider could not make %s out of %s: it returned an invalid object. This is a bug in the provider, which should be reported in the provider's own issue tracker.", sub.Addr, from)...)
	}
	return Object{Value: resp.State, Private: resp.Private, Identity: resp.Identity, Stored: stored, Moved: true}, ds
}

// Refresh reads the current state of an object. The value is null if the object does not
// exist any more.
func (sub *Subject) Refresh(old Object, deposed addr.DeposedKey) (Object, diag.List) {
	called := sub.Called(old.Value, old.Sensitive())
	e := event.Event{Kind: event.RefreshStart, Object: addr.Object{Instance: sub.Addr, Deposed: deposed}, IDKey: called.Key, IDValue: called.Value}
	sub.x.o.Observe.Send(e)
	ctx, wait := sub.deferrable()
	done := sub.x.call()
	resp, ds := sub.prov.Read(ctx, provider.ReadRequest{Type: sub.Addr.Resource.Type, Prior: old.Value, Private: old.Private, Identity: old.Identity, Meta: sub.meta})
	done()
	if ds.HasErrors() {
		return old, ds
	}
	e.Kind = event.RefreshDone
	if wait.Reason != "" {
		sub.x.o.Observe.Send(e)
		old.Deferred = wait.Reason
		return old, ds
	}
	gone := resp.State == cty.NilVal || resp.State.IsNull()
	if gone {
		e.IDKey, e.IDValue = "", ""
	}
	sub.x.o.Observe.Send(e)
	if gone {
		return sub.None(), ds
	}
	if old.Stored != nil && value.Identical(resp.State, old.Value) { // it was checked when it was read from state
		return Object{Value: resp.State, Private: resp.Private, Identity: resp.Identity}, ds
	}
	if err := schema.AssertUsable(sub.Schema.Block, resp.State, true); err != nil {
		return old, append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "The provider returned an invalid value for %s while refreshing: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", sub.Addr, err)...)
	}
	return Object{Value: sub.Schema.Block.StripWriteOnly(resp.State), Private: resp.Private, Identity: resp.Identity}, ds
}

// Keep returns the object to store in state after a refresh. changed reports whether it
// differs from the stored one.
func (sub *Subject) Keep(old, now Object) (kept *state.Object, changed bool, ds diag.List) {
	if now.Value.IsNull() {
		return nil, true, nil
	}
	if !old.Moved && value.Same(now.Value, old.Value) && bytes.Equal(now.Private, old.Private) && old.Stored.SchemaVersion == sub.Schema.Version && sameIdentity(old.Identity, now.Identity) &&
		(old.Stored.Identity == nil || old.Stored.IdentityVersion == sub.Schema.IdentityVersion) {
		return old.Stored, false, nil
	}
	obj, ds := sub.Store(now)
	if ds.HasErrors() {
		return old.Stored, false, ds
	}
	obj.Sensitive = old.Stored.Sensitive
	obj.Tainted, obj.Replace = old.Stored.Tainted, old.Stored.Replace
	obj.Dependencies = old.Stored.Dependencies
	obj.CreateBeforeDestroy = old.Stored.CreateBeforeDestroy
	obj.SkipDestroy = old.Stored.SkipDestroy
	return obj, true, nil
}

func sameIdentity(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == b
	}
	return value.Same(a, b)
}

// Import imports an existing object by ID or identity, and reads it.
func (sub *Subject) Import(id string, identity cty.Value) (Object, diag.List) {
	a := sub.Addr
	e := event.Event{Kind: event.ImportStart, Object: addr.Object{Instance: a}}
	if e.IDKey, e.IDValue = "id", id; id == "" {
		e.IDKey, e.IDValue = Identify(identity)
	}
	sub.x.o.Observe.Send(e)
	ctx, wait := sub.deferrable()
	done := sub.x.call()
	found, ds := sub.prov.Import(ctx, provider.ImportRequest{Type: a.Resource.Type, ID: id, Identity: identity})
	done()
	if ds.HasErrors() {
		return sub.None(), ds
	}
	if wait.Reason != "" {
		none := sub.None()
		none.Deferred = wait.Reason
		return none, ds
	}
	var match *provider.Imported
	for i := range found {
		if found[i].Type == a.Resource.Type {
			match = &found[i]
			break
		}
	}
	if match == nil || match.State == cty.NilVal || match.State.IsNull() {
		return sub.None(), append(ds, diag.Errorf(diag.CodeProviderImportMissing, nil, "Cannot import non-existent remote object", "While attempting to import an existing object to %q, the provider detected that no object exists with the given id. Only pre-existing objects can be imported; check that the id is correct and that it is associated with the provider's configured region or endpoint, or use \"terrace apply\" without this import to create a new remote object for this resource.", a)...)
	}
	e.Kind = event.ImportDone
	sub.x.o.Observe.Send(e)
	obj, more := sub.Refresh(Object{Value: match.State, Private: match.Private, Identity: match.Identity}, "")
	if ds = append(ds, more...); more.HasErrors() || obj.Deferred != "" {
		return obj, ds
	}
	if obj.Value.IsNull() {
		return obj, append(ds, diag.Errorf(diag.CodeProviderImportMissing, nil, "Cannot import non-existent remote object", "While attempting to import an existing object to %q, the provider detected that no object exists with the given id. Only pre-existing objects can be imported; check that the id is correct.", a)...)
	}
	return obj, ds
}
