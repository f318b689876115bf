package resourceclient

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A Listing is the listing of an instance of a list block.
type Listing struct {
	List     addr.Instance // of the list block
	Provider addr.ProviderConfig
	Schema   *schema.Resource // of the listed objects
	Config   cty.Value        // arguments of the config block, without marks
	Secret   []cty.Path       // sensitive paths of Config
	Digest   state.Digest     // of the provider configuration, without its address
	Limit    int64
	Objects  bool // include_resource
	Total    int  // number of objects; set when the listing is complete
	// Truncated means that the limit was reached, so that there may be more objects.
	Truncated bool
}

// A Found is a listed object.
type Found struct {
	Name     string
	Identity cty.Value
	Object   cty.Value // without marks; cty.NilVal if the provider did not return it
	// Config is the configuration that the provider generates for the object. It is cty.NilVal
	// unless it was requested and the provider generates configuration.
	Config cty.Value
}

// ListObserver receives the results of list blocks. Its methods are called concurrently for
// different listings.
type ListObserver interface {
	Started(*Listing)
	Found(*Listing, Found)
	Complete(*Listing) // is not called after an error
}

// ListOptions configures listings.
type ListOptions struct {
	// Objects requests the objects themselves for To, even without include_resource.
	Objects bool
	// Generate requires the objects, and requests the configuration that produces them.
	Generate bool
	To       ListObserver
}

// ConfigDigest returns the digest of a provider configuration without its address. It is zero if
// the configuration is not known.
func ConfigDigest(t *demand.Task, pc *eval.ProviderConfig) state.Digest {
	v, ok := pc.Value(t)
	if !ok || !v.IsWhollyKnown() {
		return state.Digest{}
	}
	return state.DigestArgs(v)
}

// List lists the objects of an instance of a list block, and returns its value for references.
func (x *Client) List(t *demand.Task, d *eval.Desired, how ListOptions) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	of, more := d.Resource.Listed(t)
	if ds = append(ds, more...); more.HasErrors() {
		return cty.DynamicVal, ds
	}
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return cty.DynamicVal, ds
	}
	args, more := d.Listing(t)
	if ds = append(ds, more...); more.HasErrors() {
		return cty.DynamicVal, ds
	}
	config, secret, more := ConfigValue(t, d, s)
	if ds = append(ds, Blame(d, s, more)...); more.HasErrors() {
		return cty.DynamicVal, ds
	}
	at := &d.Resource.Config().At
	if v, ok := pc.Value(t); ok && !v.IsWhollyKnown() || !config.IsWhollyKnown() {
		return cty.DynamicVal, append(ds, diag.Errorf(diag.CodePlanListUnknown, at, "Query depends on unknown values", "The arguments of %s or the configuration of its provider depend on resource attributes that cannot be determined until apply. Apply these resources first.", d.Addr())...)
	}
	prov, more := x.Configured(t, pc, at)
	if ds = append(ds, more...); more.HasErrors() {
		return cty.DynamicVal, ds
	}
	call := &lister{x: x, prov: prov, caller: provider.Caller{Config: pc.Addr, Instance: d.Addr()}, how: how}
	call.of = &Listing{List: d.Addr(), Provider: pc.Addr, Schema: of, Config: config, Secret: secret, Digest: ConfigDigest(t, pc), Limit: args.Limit, Objects: args.Objects}
	data, more := call.list()
	ds = append(ds, Blame(d, s, more)...)
	return eval.ListedValue(of, data), ds.About(d.Addr().String())
}

// A lister makes the calls of one listing.
type lister struct {
	x      *Client
	prov   provider.Provider
	caller provider.Caller
	of     *Listing
	how    ListOptions
}

// list lists the objects, and returns the elements of data.
func (l *lister) list() ([]cty.Value, diag.List) {
	ctx := provider.WithCaller(l.x.ctx, l.caller)
	typ := l.of.List.Resource.Type
	ds := l.validate(typ)
	if ds.HasErrors() {
		return nil, ds
	}
	l.how.To.Started(l.of)
	canGenerate := false
	if l.how.Generate {
		ps, more := l.prov.Schema(ctx)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		canGenerate = ps.Capabilities.GenerateConfig
	}
	var found []Found
	var wrong diag.List
	done := l.x.call()
	more := l.prov.List(ctx, provider.ListRequest{Type: typ, Config: l.of.Config, Objects: l.of.Objects || l.how.Objects || l.how.Generate, Limit: l.of.Limit}, func(o provider.Listed) bool {
		f, more := l.check(o)
		if wrong = append(wrong, more...); more.HasErrors() {
			return false
		}
		found = append(found, f)
		if !canGenerate {
			l.how.To.Found(l.of, f)
		}
		return int64(len(found)) < l.of.Limit
	})
	done()
	if ds = append(ds, append(wrong, more...)...); ds.HasErrors() {
		return nil, ds
	}
	data := make([]cty.Value, len(found))
	for i, f := range found {
		if canGenerate {
			f.Config, more = l.config(f)
			if ds = append(ds, more...); more.HasErrors() {
				return nil, ds
			}
			l.how.To.Found(l.of, f)
		}
		data[i] = l.element(f)
	}
	l.of.Total, l.of.Truncated = len(found), int64(len(found)) >= l.of.Limit
	l.how.To.Complete(l.of)
	return data, ds
}

// validate lets the provider check the configuration.
func (l *lister) validate(typ string) diag.List {
	defer l.x.call()()
	return l.prov.ValidateResource(provider.WithCaller(l.x.ctx, l.caller), addr.List, typ, l.of.Config)
}

// check checks a listed object against its schema.
func (l *lister) check(o provider.Listed) (Found, diag.List) {
	f := Found{Name: o.Name, Identity: o.Identity, Object: o.Object}
	wrong := ""
	switch {
	case o.Identity == cty.NilVal || o.Identity.IsNull():
		wrong = "it has no identity"
	case !o.Identity.IsWhollyKnown():
		wrong = "its identity is unknown"
	case l.how.Generate && (o.Object == cty.NilVal || o.Object.IsNull()):
		wrong = "the object itself is missing, although it was requested"
	case o.Object != cty.NilVal && !o.Object.IsNull():
		if err := schema.AssertUsable(l.of.Schema.Block, o.Object, true); err != nil {
			wrong = err.Error()
		} else {
			f.Object = l.of.Schema.Block.StripWriteOnly(o.Object)
		}
	default:
		f.Object = cty.NilVal
	}
	if wrong == "" {
		return f, nil
	}
	return f, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "The provider listed an invalid object for %s: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", l.of.List, wrong)
}

// config requests the configuration of an object from the provider.
func (l *lister) config(f Found) (cty.Value, diag.List) {
	defer l.x.call()()
	return l.prov.GenerateConfig(provider.WithCaller(l.x.ctx, l.caller), l.of.List.Resource.Type, f.Object)
}

// element returns the element of data for an object.
func (l *lister) element(f Found) cty.Value {
	state := cty.NullVal(l.of.Schema.Block.ImpliedType())
	if l.of.Objects && f.Object != cty.NilVal {
		state = WithSensitive(f.Object, nil, l.of.Schema)
	}
	return cty.ObjectVal(map[string]cty.Value{"display_name": cty.StringVal(f.Name), "identity": f.Identity, "state": state})
}
