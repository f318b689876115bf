// Package mock provides mocks of providers: decorators that answer calls for mocked
// configurations and overridden objects themselves, and pass on all other calls.
//
// Main types: Rules, the mocks of one run, and Shared, which creates the decorators. The one
// rule: the answers of a decorator follow the schema and the protocol like those of a real
// provider, so that callers cannot distinguish them.
package mock

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/intercept"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Values contains values of computed attributes that replace generated ones.
type Values struct {
	Value   cty.Value // an object; cty.NilVal means none
	At      *hcl.Range
	AtApply bool // generated and given values are unknown until apply
}

// An Override sets values for the instances of a resource.
type Override struct {
	Target addr.Target
	Values
}

// A Config is a mocked provider configuration.
type Config struct {
	Resources, Data map[string]Values // by resource type
	Overrides       []Override
	AtApply         bool // for types without Values
}

// Rules contains the mocks of one run.
type Rules struct {
	Configs   map[addr.ProviderConfig]*Config // mocked configurations, ignoring their instance keys
	Overrides []Override                      // overrides of resources of any configuration
	// Named contains mocks of configurations in all modules by TYPE or TYPE.ALIAS, where TYPE is
	// the type of the provider. The entry "" applies to all others. Configs takes precedence.
	Named map[string]*Config
	// Objects counts the objects in the state of the run. nil means that the run begins without
	// objects.
	Objects *Objects
}

// Objects counts the objects that were created at each address of one state. An object gets the
// same generated values whenever it is planned, and other values than the object that it
// replaces. The zero value is ready to use. Several runs may use it concurrently.
type Objects struct {
	mu   sync.Mutex
	made map[addr.Instance]int
}

// generation returns the number of the next object at an address, starting at 1.
func (o *Objects) generation(a addr.Instance) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.made[a] + 1
}

// add records that an object was created.
func (o *Objects) add(a addr.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made == nil {
		o.made = map[addr.Instance]int{}
	}
	o.made[a]++
}

// lasting is the generation of objects that are never created: data sources, ephemeral resources
// and imported objects.
const lasting = 0

// empty reports whether nothing is mocked.
func (r *Rules) empty() bool { return len(r.Configs)+len(r.Overrides)+len(r.Named) == 0 }

// touches reports whether calls to a provider may be mocked.
func (r *Rules) touches(a addr.Provider) bool {
	if len(r.Overrides) > 0 { // the provider of a resource is only known when it is called
		return true
	}
	if len(r.Named) > 0 && !a.IsBuiltIn() {
		return true
	}
	for c := range r.Configs {
		if c.Provider == a {
			return true
		}
	}
	return false
}

// answers returns the values for a call to a provider. ok is false if the call is not mocked.
func (r *Rules) answers(c provider.Caller) (v Values, ok bool) {
	if o := overriding(r.Overrides, c.Instance); o != nil {
		return o.Values, true
	}
	cfg := r.config(c.Config)
	if cfg == nil {
		return Values{}, false
	}
	if o := overriding(cfg.Overrides, c.Instance); o != nil {
		return o.Values, true
	}
	of := cfg.Resources
	if c.Instance.Resource.Mode == addr.Data {
		of = cfg.Data
	}
	if v, ok := of[c.Instance.Resource.Type]; ok {
		return v, true
	}
	return Values{AtApply: cfg.AtApply}, true
}

// overriding returns the override of an instance, or nil. An override of one instance takes
// precedence over one of all instances, whatever their order. Of overrides with the same number
// of keys the first is used.
func overriding(all []Override, a addr.Instance) *Override {
	var out *Override
	for i := range all {
		if o := &all[i]; o.Target.Contains(a) && (out == nil || keys(o.Target) > keys(out.Target)) {
			out = o
		}
	}
	return out
}

// keys returns the number of instance keys in a target.
func keys(t addr.Target) int {
	n := 0
	if t.HasKey {
		n++
	}
	for _, s := range t.Module.Steps() {
		if s.Key != (addr.Key{}) {
			n++
		}
	}
	return n
}

// config returns the mock of a configuration, or nil.
func (r *Rules) config(a addr.ProviderConfig) *Config {
	a.Key = addr.Key{}
	if c := r.Configs[a]; c != nil || len(r.Named) == 0 || a.Provider.IsBuiltIn() {
		return c
	}
	if c := r.Named[a.Provider.Type+"."+a.Alias]; a.Alias != "" && c != nil {
		return c
	}
	if c := r.Named[a.Provider.Type]; c != nil {
		return c
	}
	return r.Named[""]
}

// Shared contains one process per provider, which all mocks use to read the schema and to
// validate. The zero value is ready to use. Close ends the processes.
type Shared struct {
	mu       sync.Mutex
	backings map[addr.Provider]*backing
}

// backing is an unconfigured provider, started on first use.
type backing struct {
	mu     sync.Mutex
	start  provider.Factory
	p      provider.Provider
	schema *schema.Provider
}

// Decorate returns a function for engine.Options.Decorate.
func (s *Shared) Decorate(r *Rules) func(addr.Provider, provider.Factory) provider.Factory {
	if r.empty() {
		return nil
	}
	objects := r.Objects
	if objects == nil {
		objects = &Objects{}
	}
	return func(a addr.Provider, f provider.Factory) provider.Factory {
		if !r.touches(a) {
			return nil
		}
		return func(context.Context) (provider.Provider, diag.List) {
			d := &decorator{back: s.backing(a, f), start: f, rules: r, objects: objects}
			d.Calls = intercept.Calls{Handler: d}
			return d, nil
		}
	}
}

func (s *Shared) backing(a addr.Provider, f provider.Factory) *backing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backings == nil {
		s.backings = map[addr.Provider]*backing{}
	}
	b := s.backings[a]
	if b == nil {
		b = &backing{start: f}
		s.backings[a] = b
	}
	return b
}

// Close ends the started processes.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.backings {
		b.mu.Lock()
		if b.p != nil {
			_ = b.p.Close()
		}
		b.p = nil
		b.mu.Unlock()
	}
}

// provider returns the running provider, which it starts if necessary.
func (b *backing) provider(ctx context.Context) (provider.Provider, diag.List) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p != nil {
		return b.p, nil
	}
	p, ds := b.start(ctx)
	if !ds.HasErrors() {
		b.p = p
	}
	return p, ds
}

// read returns the schema with all arguments of the provider optional, since a mock needs none.
func (b *backing) read(ctx context.Context) (*schema.Provider, diag.List) {
	p, ds := b.provider(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.schema != nil {
		return b.schema, nil
	}
	s, ds := p.Schema(ctx)
	if ds.HasErrors() || s == nil {
		return s, ds
	}
	b.schema = &schema.Provider{
		Config: relax(s.Config), Meta: s.Meta, Functions: s.Functions, Capabilities: s.Capabilities, Types: s.Types,
		Decode: s.Resource, Why: s.Invalid,
	}
	return b.schema, ds
}

// relax returns a copy of a block in which nothing is required.
func relax(b *schema.Block) *schema.Block {
	if b == nil {
		return nil
	}
	out := &schema.Block{Deprecated: b.Deprecated, Attributes: map[string]*schema.Attribute{}, Blocks: map[string]*schema.NestedBlock{}}
	for name, a := range b.Attributes {
		c := *a
		if c.Required {
			c.Required, c.Optional = false, true
		}
		out.Attributes[name] = &c
	}
	for name, nb := range b.Blocks {
		out.Blocks[name] = &schema.NestedBlock{Nesting: nb.Nesting, MaxItems: nb.MaxItems, Block: relax(nb.Block)}
	}
	return out
}

// A decorator answers calls to a provider according to the rules.
type decorator struct {
	intercept.Calls
	back    *backing
	start   provider.Factory
	rules   *Rules
	objects *Objects

	mu     sync.Mutex
	real   provider.Provider // configured provider; nil until a call is passed on
	config cty.Value         // configuration, for calls that are passed on
}

var _ provider.Provider = (*decorator)(nil)

// passOn returns the real provider, configured. It starts the provider if necessary.
func (d *decorator) passOn(ctx context.Context) (provider.Provider, diag.List) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.real != nil {
		return d.real, nil
	}
	p, ds := d.start(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	if d.config != cty.NilVal {
		if more := p.Configure(ctx, d.config); more.HasErrors() {
			_ = p.Close()
			return nil, append(ds, more...)
		}
	}
	d.real = p
	return p, ds
}

// ask passes a call on to the real provider.
func (d *decorator) ask(ctx context.Context, c intercept.Call) diag.List {
	p, ds := d.passOn(ctx)
	if ds.HasErrors() {
		return ds
	}
	return append(ds, c.Do(ctx, p)...)
}

// look makes a call that needs no configuration.
func (d *decorator) look(ctx context.Context, c intercept.Call) diag.List {
	p, ds := d.back.provider(ctx)
	if ds.HasErrors() {
		return ds
	}
	return append(ds, c.Do(ctx, p)...)
}

// Handle implements intercept.Handler.
func (d *decorator) Handle(ctx context.Context, c intercept.Call) (ds diag.List) {
	caller := provider.CallerOf(ctx)
	switch c := c.(type) { // calls about no object, or about any
	case *intercept.Schema:
		c.Answer, ds = d.back.read(ctx)
		return ds
	case *intercept.ValidateConfig:
		if d.rules.config(caller.Config) != nil { // a mock accepts any configuration
			return nil
		}
		return d.look(ctx, c)
	case *intercept.Configure:
		return d.configure(ctx, caller, c.Request.Config)
	case *intercept.CallFunction:
		p, ds := d.back.provider(ctx)
		if ds.HasErrors() {
			c.Answer.Err = fmt.Errorf("the provider does not run: %w", ds.Err())
			return nil
		}
		return c.Do(ctx, p)
	case *intercept.ValidateResource, *intercept.UpgradeIdentity, *intercept.Move, *intercept.Functions:
		return d.look(ctx, c) // providers answer these without a configuration, so the real one answers them for mocks too
	}
	values, mocked := d.rules.answers(caller)
	if c, ok := c.(*intercept.UpgradeState); ok {
		if mocked && d.current(ctx, c) {
			return nil
		}
		return d.look(ctx, c)
	}
	if !mocked {
		return d.ask(ctx, c)
	}
	switch c := c.(type) {
	case *intercept.Plan:
		c.Answer, ds = d.plan(ctx, c.Request, caller, values)
	case *intercept.Apply:
		c.Answer, ds = d.apply(ctx, c.Request, caller, values)
	case *intercept.Import:
		c.Answer, ds = d.imported(ctx, c.Request, caller, values)
	case *intercept.ReadData:
		c.Answer, ds = d.lasting(ctx, addr.Data, c.Request.Type, c.Request.Config, caller, values)
	case *intercept.OpenEphemeral:
		c.Answer.Result, ds = d.lasting(ctx, addr.Ephemeral, c.Request.Type, c.Request.Config, caller, values)
	case *intercept.RenewEphemeral:
		c.Answer.Private = c.Request.Private
	case *intercept.Read, *intercept.CloseEphemeral: // a mocked object never changes
	}
	return ds
}

// configure configures the real provider, unless the configuration is mocked.
func (d *decorator) configure(ctx context.Context, c provider.Caller, config cty.Value) diag.List {
	d.mu.Lock()
	d.config = config
	d.mu.Unlock()
	if d.rules.config(c.Config) != nil {
		return nil
	}
	_, ds := d.passOn(ctx)
	return ds
}

// current answers the upgrade of an object that a mock stored. Such an object always has the
// current version. current returns false for other objects.
func (d *decorator) current(ctx context.Context, c *intercept.UpgradeState) bool {
	if c.Request.JSON == nil {
		return false
	}
	b, ds := d.block(ctx, addr.Managed, c.Request.Type)
	if ds.HasErrors() {
		return false
	}
	v, err := state.Decode(c.Request.JSON, b.ImpliedType())
	if err != nil {
		return false
	}
	c.Answer = v
	return true
}

// plan returns the plan of a mocked object.
func (d *decorator) plan(ctx context.Context, req provider.PlanRequest, c provider.Caller, values Values) (provider.PlanResponse, diag.List) {
	if req.Proposed.IsNull() {
		return provider.PlanResponse{Planned: req.Proposed, Private: req.Private, Identity: req.PriorIdentity}, nil
	}
	b, ds := d.block(ctx, addr.Managed, req.Type)
	if ds.HasErrors() {
		return provider.PlanResponse{Planned: req.Proposed}, ds
	}
	f := d.filler(c, values, d.objects.generation(c.Instance))
	f.later = values.AtApply
	planned := f.object(b, req.Proposed, req.Config, nil)
	return provider.PlanResponse{Planned: planned, Private: req.Private, Identity: req.PriorIdentity}, append(ds, f.ds...)
}

// apply returns the result of applying a mocked object.
func (d *decorator) apply(ctx context.Context, req provider.ApplyRequest, c provider.Caller, values Values) (provider.ApplyResponse, diag.List) {
	out := provider.ApplyResponse{State: req.Planned, Private: req.Private, Identity: req.PlannedIdentity}
	if req.Planned.IsNull() {
		return out, nil
	}
	b, ds := d.block(ctx, addr.Managed, req.Type)
	if ds.HasErrors() {
		return out, ds
	}
	f := d.filler(c, values, d.objects.generation(c.Instance))
	out.State = f.object(b, req.Planned, req.Config, nil)
	if req.Prior.IsNull() {
		d.objects.add(c.Instance)
	}
	return out, append(ds, f.ds...)
}

// imported returns an imported object. For a mock, every object exists.
func (d *decorator) imported(ctx context.Context, req provider.ImportRequest, c provider.Caller, values Values) ([]provider.Imported, diag.List) {
	b, ds := d.block(ctx, addr.Managed, req.Type)
	if ds.HasErrors() {
		return nil, ds
	}
	f := d.filler(c, values, lasting)
	empty := b.Empty()
	vals := f.object(b, empty, empty, nil).AsValueMap()
	if a := b.Attributes["id"]; a != nil && a.Type == cty.String && req.ID != "" {
		vals["id"] = cty.StringVal(req.ID)
	}
	return []provider.Imported{{Type: req.Type, State: cty.ObjectVal(vals), Identity: req.Identity}}, append(ds, f.ds...)
}

// lasting returns the mocked result of a data source or an ephemeral resource.
func (d *decorator) lasting(ctx context.Context, mode addr.Mode, typ string, config cty.Value, c provider.Caller, values Values) (cty.Value, diag.List) {
	b, ds := d.block(ctx, mode, typ)
	if ds.HasErrors() {
		return config, ds
	}
	f := d.filler(c, values, lasting)
	return f.object(b, config, config, nil), append(ds, f.ds...)
}

// Stop implements provider.Provider.
func (d *decorator) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.real == nil {
		return nil
	}
	return d.real.Stop(ctx)
}

// Close implements provider.Provider.
func (d *decorator) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.real == nil {
		return nil
	}
	p := d.real
	d.real = nil
	return p.Close()
}

// block returns the schema of a type.
func (d *decorator) block(ctx context.Context, mode addr.Mode, typ string) (*schema.Block, diag.List) {
	s, ds := d.back.read(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	r := s.Resource(mode, typ)
	if r == nil {
		return nil, diag.Errorf(diag.CodePlanResourceType, nil, "Invalid resource type", "The provider does not know the type %q.", typ)
	}
	return r.Block, ds
}

func (d *decorator) filler(c provider.Caller, v Values, generation int) *filler {
	return &filler{values: v, seed: c.Instance.String(), generation: generation}
}
