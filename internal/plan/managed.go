package plan

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// object is an object of a managed resource as planning handles it.
type object struct {
	value    cty.Value // null if there is none; without marks
	private  []byte
	identity cty.Value // cty.NilVal if there is none
	stored   *state.Object
	moved    bool // it was an object of another type: the provider took it over
}

// managed plans one instance of a managed resource and returns its planned value.
func (p *planner) managed(t *demand.Task, d *eval.Desired, ip *instancePlan) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	ip.provider = pc.Addr
	if wait := pc.Deferral(t); wait != nil {
		v, more := p.putOffInstance(t, d, ip, ProviderConfigUnknown, wait)
		return v, append(ds, more...)
	}
	prov, more := p.configured(t, pc, &d.Resource.Config().At)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	a := d.Addr()
	if more = p.stillWanted(a, d.Resource.Config().At); more.HasErrors() {
		return unknown, append(ds, more...)
	}
	old, more := p.priorObject(a, s, prov, d.Resource.Provider())
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, Blame(d, s, ds)
	}
	if wait := p.importDeferral(t, a, old); wait != nil {
		v, more := p.putOffInstance(t, d, ip, ImportUnknown, wait)
		return v, append(ds, more...)
	}
	now, imp, more := p.current(t, d, ip, s, prov, old)
	ds = append(ds, more...)
	if more.HasErrors() {
		return unknown, Blame(d, s, ds)
	}
	ip.deposed, more = p.planDeposed(a, s, prov, pc.Addr)
	ds = append(ds, more...)
	switch p.in.Mode {
	case RefreshOnly:
		return p.afterRefresh(t, d, ip, s, now, ds)
	case Destroy:
		v, more := p.planDestroy(t, d, ip, s, prov, old, now)
		return v, Blame(d, s, append(ds, more...))
	}
	ip.checked = true
	pre, more := d.Preconditions(t)
	ip.pre = pre
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	v, more := p.planUpdate(t, d, ip, s, prov, now, imp)
	ds = append(ds, Blame(d, s, more)...)
	if ds.HasErrors() {
		return v, ds
	}
	ip.post, more = d.Postconditions(t, v)
	return v, append(ds, more...)
}

// afterRefresh is the end of a refresh-only plan for an instance.
func (p *planner) afterRefresh(t *demand.Task, d *eval.Desired, ip *instancePlan, s *schema.Resource, now object, ds diag.List) (cty.Value, diag.List) {
	v := now.value
	if v.IsNull() {
		return cty.UnknownVal(s.Block.ImpliedType()), ds // gone, or not made yet: what reads it cannot be told
	}
	v = withSensitive(v, storedSensitive(now.stored), s)
	ip.checked = true
	pre, more := d.Preconditions(t)
	ip.pre, ds = pre, append(ds, softened(more)...)
	post, more := d.Postconditions(t, v)
	ip.post, ds = post, append(ds, softened(more)...)
	return v, ds
}

// softened turns failed conditions into warnings, as a refresh-only plan has it.
func softened(ds diag.List) diag.List {
	for _, m := range ds {
		if m.Code == "eval/condition" {
			m.Severity = diag.Warning
		}
	}
	return ds
}

func storedSensitive(o *state.Object) []cty.Path {
	if o == nil {
		return nil
	}
	return o.Sensitive
}

// priorObject reads an instance's current object out of state, in the form of the current schema.
func (p *planner) priorObject(a addr.Instance, s *schema.Resource, prov provider.Provider, pa addr.Provider) (object, diag.List) {
	stored, _, ok := p.prior.Object(addr.Object{Instance: a})
	if !ok {
		return object{value: cty.NullVal(s.Block.ImpliedType())}, nil
	}
	if from, ok := p.moved[a]; ok && from.Resource.Type != a.Resource.Type {
		return p.takeOver(a, from, stored, s, prov)
	}
	return p.storedObject(a, stored, s, prov)
}

// takeOver asks the provider to make an object of its own out of one of another type.
func (p *planner) takeOver(a, from addr.Instance, stored *state.Object, s *schema.Resource, prov provider.Provider) (object, diag.List) {
	null := object{value: cty.NullVal(s.Block.ImpliedType())}
	_, pc, _ := p.prior.Object(addr.Object{Instance: a})
	done := p.call()
	resp, ds := prov.Move(p.ctx, provider.MoveRequest{
		SourceProvider: pc.Provider, SourceType: from.Resource.Type, SourceVersion: stored.SchemaVersion, SourceJSON: stored.JSON,
		SourcePrivate: stored.Private, SourceIdentityJSON: stored.Identity, SourceIdentityVersion: stored.IdentityVersion, TargetType: a.Resource.Type,
	})
	done()
	if ds.HasErrors() {
		return null, ds.Note(nil, "%s moved to %s", from, a)
	}
	if err := schema.AssertUsable(s.Block, resp.State, true); err != nil || resp.State.IsNull() {
		return null, append(ds, diag.Errorf(nil, "Provider produced invalid object", "The provider could not make %s out of %s: it returned an invalid object. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a, from)...)
	}
	return object{value: resp.State, private: resp.Private, identity: resp.Identity, stored: stored, moved: true}, ds
}

func (p *planner) storedObject(a addr.Instance, stored *state.Object, s *schema.Resource, prov provider.Provider) (object, diag.List) {
	o := object{stored: stored, private: stored.Private}
	v, ds := p.calls().upgrade(a, stored, s, prov)
	o.value = v
	if ds.HasErrors() {
		return o, ds
	}
	if s.Identity != nil && stored.Identity != nil {
		ty := s.Identity.ImpliedType()
		var err error
		if stored.IdentityVersion == s.IdentityVersion {
			o.identity, err = ctyjson.Unmarshal(stored.Identity, ty)
		} else {
			var more diag.List
			done := p.call()
			o.identity, more = prov.UpgradeIdentity(p.ctx, a.Resource.Type, stored.IdentityVersion, stored.Identity)
			done()
			ds = append(ds, more...)
		}
		if err != nil {
			ds = append(ds, diag.Errorf(nil, "Failed to decode resource identity", "The identity that state holds for %s cannot be read: %s.", a, err)...)
		}
	}
	return o, ds
}

// upgrade asks the provider for stored attributes in the form of its schema.
func (c calls) upgrade(a addr.Instance, stored *state.Object, s *schema.Resource, prov provider.Provider) (cty.Value, diag.List) {
	null := cty.NullVal(s.Block.ImpliedType())
	if stored.SchemaVersion > s.Version {
		return null, diag.Errorf(nil, "Resource instance managed by newer provider version", "The current state of %s was created by a newer provider version than is currently selected. Upgrade the provider to work with this state.", a)
	}
	done := c.take()
	v, ds := prov.UpgradeState(c.sh.Context, provider.UpgradeRequest{Type: a.Resource.Type, Version: stored.SchemaVersion, JSON: stored.JSON, Flat: stored.Flat})
	done()
	if ds.HasErrors() {
		return null, ds
	}
	if err := schema.AssertUsable(s.Block, v, true); err != nil {
		return null, append(ds, diag.Errorf(nil, "Invalid resource state upgrade", "The provider upgraded the state of %s to a value that does not fit its own schema: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a, err)...)
	}
	return v, ds
}

// current finds what is really there: imported, or refreshed from what state has.
func (p *planner) current(t *demand.Task, d *eval.Desired, ip *instancePlan, s *schema.Resource, prov provider.Provider, old object) (object, *Import, diag.List) {
	a := d.Addr()
	if old.value.IsNull() {
		imp := p.imports.of(a)
		if imp == nil || p.in.Mode == RefreshOnly || p.in.Mode == Destroy {
			return old, nil, nil
		}
		return p.importObject(t, d, ip, s, prov, imp)
	}
	if p.in.SkipRefresh && old.moved {
		var ds diag.List
		ip.refreshed, ip.touched, ds = p.storeRefreshed(a, s, old, old, nil)
		return old, nil, ds
	}
	if p.in.SkipRefresh {
		ip.refreshed = old.stored
		return old, nil, nil
	}
	now, ds := p.refresh(addr.Object{Instance: a}, s, prov, old)
	if ds.HasErrors() {
		return old, nil, ds
	}
	ip.refreshed, ip.touched, ds = p.storeRefreshed(a, s, old, now, ds)
	now.stored = old.stored
	if ip.touched {
		ip.drift = p.driftChange(a, ip.provider, s, old, now)
	}
	return now, nil, ds
}

// refresh reads an object from the provider.
func (p *planner) refresh(o addr.Object, s *schema.Resource, prov provider.Provider, old object) (object, diag.List) {
	a := o.Instance
	key, id := identify(old.value)
	start := event.Event{Kind: event.RefreshStart, Object: o, IDKey: key, IDValue: id}
	p.in.Observe.Send(start)
	done := p.call()
	resp, ds := prov.Read(p.ctx, provider.ReadRequest{Type: a.Resource.Type, Prior: old.value, Private: old.private, Identity: old.identity, Meta: p.meta(a, prov)})
	done()
	if ds.HasErrors() {
		return old, ds
	}
	start.Kind = event.RefreshDone
	gone := resp.State == cty.NilVal || resp.State.IsNull()
	if gone {
		start.IDKey, start.IDValue = "", ""
	}
	p.in.Observe.Send(start)
	if gone {
		return object{value: cty.NullVal(s.Block.ImpliedType())}, ds
	}
	if err := schema.AssertUsable(s.Block, resp.State, true); err != nil {
		return old, append(ds, diag.Errorf(nil, "Provider produced invalid object", "The provider returned an invalid value for %s while refreshing: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a, err)...)
	}
	return object{value: s.Block.StripWriteOnly(resp.State), private: resp.Private, identity: resp.Identity}, ds
}

// storeRefreshed makes the state object of a refreshed one; touched says whether it differs.
func (p *planner) storeRefreshed(a addr.Instance, s *schema.Resource, old, now object, ds diag.List) (*state.Object, bool, diag.List) {
	if now.value.IsNull() {
		return nil, true, ds
	}
	same := !old.moved && now.value.RawEquals(old.value) && bytes.Equal(now.private, old.private) && old.stored.SchemaVersion == s.Version && sameIdentity(old.identity, now.identity)
	if same {
		return old.stored, false, ds
	}
	obj, err := NewObject(now.value, s, now.private, now.identity)
	if err != nil {
		return old.stored, false, append(ds, diag.Errorf(nil, "Provider produced invalid object", "What the provider returned for %s cannot be stored: %s.", a, err)...)
	}
	obj.Sensitive = old.stored.Sensitive
	obj.Tainted = old.stored.Tainted
	obj.Dependencies = old.stored.Dependencies
	obj.CreateBeforeDestroy = old.stored.CreateBeforeDestroy
	obj.SkipDestroy = old.stored.SkipDestroy
	return obj, true, ds
}

func sameIdentity(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == b
	}
	return a.RawEquals(b)
}

// NewObject makes what state holds of an object; the caller sets the fields
// that do not come from the provider.
func NewObject(v cty.Value, s *schema.Resource, private []byte, identity cty.Value) (*state.Object, error) {
	obj, err := state.NewObject(v, s.Block.ImpliedType())
	if err != nil {
		return nil, err
	}
	obj.SchemaVersion = s.Version
	obj.Private = private
	if s.Identity != nil && identity != cty.NilVal && !identity.IsNull() && identity.IsWhollyKnown() {
		if obj.Identity, err = ctyjson.Marshal(identity, s.Identity.ImpliedType()); err != nil {
			return nil, err
		}
		obj.IdentityVersion = s.IdentityVersion
	}
	return obj, nil
}

// identify finds the attribute that tells people which object a value is.
func identify(v cty.Value) (key, text string) {
	if v.IsNull() || !v.IsKnown() {
		return "", ""
	}
	ty := v.Type()
	for _, name := range []string{"id", "name"} {
		if !ty.IsObjectType() || !ty.HasAttribute(name) || ty.AttributeType(name) != cty.String {
			continue
		}
		x := v.GetAttr(name)
		if !x.IsMarked() && x.IsKnown() && !x.IsNull() {
			return name, x.AsString()
		}
	}
	return "", ""
}

// Identify is the name and value of the attribute that tells which object a value is.
func Identify(v cty.Value) (key, text string) {
	v, _ = v.UnmarkDeep()
	return identify(v)
}

func (p *planner) driftChange(a addr.Instance, pc addr.ProviderConfig, s *schema.Resource, old, now object) *Change {
	c := &Change{Addr: a, Prev: p.prev(a), Provider: pc, Op: Update, Before: old.value, After: now.value, BeforeIdentity: old.identity, AfterIdentity: now.identity}
	c.BeforeSensitive = sensitivePaths(s, old.value, storedSensitive(old.stored))
	if now.value.IsNull() {
		c.Op = Delete
	} else {
		c.AfterSensitive = sensitivePaths(s, now.value, storedSensitive(old.stored))
		if now.value.RawEquals(old.value) {
			return nil
		}
	}
	return c
}

// prev is where state had an instance. A refresh before a destroy has moved it already.
func (p *planner) prev(a addr.Instance) addr.Instance {
	if from, ok := p.moved[a]; ok && (p.in.Mode != Destroy || p.in.SkipRefresh) {
		return from
	}
	return a
}

// sensitivePaths joins given paths with those of the schema.
func sensitivePaths(s *schema.Resource, v cty.Value, given []cty.Path) []cty.Path {
	if !s.Block.HasSensitive() {
		return given
	}
	out := append([]cty.Path(nil), given...)
	for _, sp := range s.Block.SensitivePaths(v) {
		if !hasPath(out, sp) {
			out = append(out, sp)
		}
	}
	state.SortPaths(out)
	return out
}

func hasPath(paths []cty.Path, q cty.Path) bool {
	for _, x := range paths {
		if x.Equals(q) {
			return true
		}
	}
	return false
}

// configValue evaluates an instance's configuration and takes the marks off:
// sensitive paths are returned; an ephemeral value is an error outside
// write-only attributes.
func configValue(t *demand.Task, d *eval.Desired, s *schema.Resource) (plain cty.Value, sensitive []cty.Path, ds diag.List) {
	v, ds := d.Config(t, s)
	if ds.HasErrors() {
		plain, _ = v.UnmarkDeep()
		return plain, nil, ds
	}
	if !v.ContainsMarked() {
		return v, nil, ds
	}
	_, ephemeral := value.SplitMark(v, value.Ephemeral)
	if len(ephemeral) > 0 && d.Resource.Config().Addr.Mode == addr.Managed {
		plain, _ = v.UnmarkDeep()
		writeOnly := s.Block.WriteOnlyPaths(plain)
		for _, path := range ephemeral {
			if !underAny(path, writeOnly) {
				ds = append(ds, diag.List{{Severity: diag.Error, Code: "plan/ephemeral", Summary: "Ephemeral value used in non-ephemeral context", Attr: path,
					Detail: fmt.Sprintf("Ephemeral values are not valid for %q, because it is not a write-only attribute and must be persisted to state.", attrName(path))}}...)
			}
		}
	} else if len(ephemeral) > 0 && d.Resource.Config().Addr.Mode == addr.Data {
		ds = append(ds, diag.List{{Severity: diag.Error, Code: "plan/ephemeral", Summary: "Ephemeral value used in non-ephemeral context", Attr: ephemeral[0],
			Detail: fmt.Sprintf("Ephemeral values are not valid for %q, because the results of data sources are stored in state.", attrName(ephemeral[0]))}}...)
	}
	sensitive = value.PathsWith(v, value.Sensitive)
	sensitive = append(sensitive, value.PathsWith(v, value.Hidden)...)
	ds = append(ds, deprecations(d, v)...)
	plain, _ = v.UnmarkDeep()
	return plain, sensitive, ds
}

// deprecations warns of outputs of modules that are deprecated and used here.
func deprecations(d *eval.Desired, v cty.Value) diag.List {
	var ds diag.List
	at := d.Resource.Config().At
	for _, dep := range value.Deprecations(v) {
		ds = append(ds, diag.Warnf(&at, "Value derived from a deprecated source", "This value is derived from %s, which is deprecated with the following message:\n\n%s", dep.Source, dep.Message)...)
	}
	return ds
}

func underAny(p cty.Path, roots []cty.Path) bool {
	for _, r := range roots {
		if p.HasPrefix(r) {
			return true
		}
	}
	return false
}

func attrName(p cty.Path) string { return strings.TrimPrefix(value.PathString(p), ".") }
