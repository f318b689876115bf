// Package fake is a provider for tests of code that calls providers. It runs in the test's
// own process and follows a script. Without a script for a call, it behaves like a simple
// provider.
//
// Main types: Script and its Types. The one rule: it is as strict as a plugin. It returns
// an error for values that cannot be sent to a plugin.
package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Script is the behavior of a provider. It must not be changed after the first instance
// was created. Its functions may be called concurrently. Their comments describe the
// behavior for nil.
type Script struct {
	Config       *schema.Block // nil: an empty block
	Meta         *schema.Block
	Capabilities schema.Capabilities

	Managed   map[string]*Type
	Data      map[string]*Data
	Ephemeral map[string]*Ephemeral
	Functions map[string]*Function

	Configure func(config cty.Value) diag.List // nil: accepts any configuration
	Stop      func()                           // nil: does nothing

	mu    sync.Mutex
	calls []Call
	open  int
}

// A Type is a managed resource type.
type Type struct {
	Schema *schema.Resource

	Validate func(config cty.Value) diag.List // nil: accepts any configuration
	// Plan returns a plan. nil means the proposed object with computed attributes that are
	// null made unknown. A change of an attribute in Replace requires a replacement.
	Plan    func(provider.PlanRequest) (provider.PlanResponse, diag.List)
	Replace []string // names of attributes
	// Apply applies a plan. nil means the planned object, with unknown parts replaced by
	// [Fill].
	Apply   func(provider.ApplyRequest) (provider.ApplyResponse, diag.List)
	Read    func(provider.ReadRequest) (provider.ReadResponse, diag.List) // nil: the unchanged object
	Import  func(provider.ImportRequest) ([]provider.Imported, diag.List) // nil: an object with only its id
	Upgrade func(provider.UpgradeRequest) (cty.Value, diag.List)          // nil: the stored JSON
	Move    func(provider.MoveRequest) (provider.MoveResponse, diag.List) // nil: an error
}

// Data is a data source.
type Data struct {
	Schema   *schema.Resource
	Validate func(config cty.Value) diag.List
	Read     func(config cty.Value) (cty.Value, diag.List) // nil: config with computed attributes filled
}

// Ephemeral is an ephemeral resource type.
type Ephemeral struct {
	Schema   *schema.Resource
	Validate func(config cty.Value) diag.List
	Open     func(config cty.Value) (provider.Opened, diag.List) // nil: config with computed attributes filled
	Renew    func(private []byte) (provider.Renewal, diag.List)  // nil: the same private data, no further renewal
	Close    func(private []byte) diag.List                      // nil: succeeds
}

// Function is a function of the provider.
type Function struct {
	Signature *schema.Function
	Call      func(args []cty.Value) (cty.Value, error)
}

// A Call is a call of an instance.
type Call struct {
	Method string    // of provider.Provider
	Type   string    // of the resource, or the name of the function
	Value  cty.Value // the configuration, or the prior or planned object; NilVal if there is none
}

func (c Call) String() string {
	if c.Type == "" {
		return c.Method
	}
	return c.Method + " " + c.Type
}

// Calls returns the calls of all instances of the script, in order.
func (s *Script) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Open returns the number of instances that are not closed.
func (s *Script) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Factory returns a factory of instances of the script.
func (s *Script) Factory() provider.Factory {
	return func(context.Context) (provider.Provider, diag.List) { return s.New(), nil }
}

// New returns an instance of the script.
func (s *Script) New() *Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &Provider{script: s, schema: s.schema(), closed: make(chan struct{})}
}

func (s *Script) schema() *schema.Provider {
	p := &schema.Provider{Config: s.Config, Meta: s.Meta, Capabilities: s.Capabilities, Types: make(map[addr.Mode][]string)}
	if p.Config == nil {
		p.Config = &schema.Block{}
	}
	p.Types[addr.Managed] = slices.Sorted(maps.Keys(s.Managed))
	p.Types[addr.Data] = slices.Sorted(maps.Keys(s.Data))
	p.Types[addr.Ephemeral] = slices.Sorted(maps.Keys(s.Ephemeral))
	p.Functions = make(map[string]*schema.Function, len(s.Functions))
	for name, f := range s.Functions {
		p.Functions[name] = f.Signature
	}
	p.Decode = func(mode addr.Mode, name string) *schema.Resource {
		switch mode {
		case addr.Data:
			if d := s.Data[name]; d != nil {
				return d.Schema
			}
		case addr.Ephemeral:
			if e := s.Ephemeral[name]; e != nil {
				return e.Schema
			}
		default:
			if t := s.Managed[name]; t != nil {
				return t.Schema
			}
		}
		return nil
	}
	return p
}

// A Provider is an instance of a script. See provider.Provider.
type Provider struct {
	script *Script
	schema *schema.Provider

	mu         sync.Mutex
	configured bool
	closed     chan struct{}
}

var _ provider.Provider = (*Provider)(nil)

// begin records a call. It returns an error if the instance is closed, the context has
// ended, or a value cannot be sent to a plugin.
func (p *Provider) begin(ctx context.Context, method, typ string, b *schema.Block, about cty.Value, values ...cty.Value) diag.List {
	select {
	case <-p.closed:
		return diag.Errorf(diag.CodeProviderCall, nil, "Provider is closed", "The provider was asked to %s after it had been closed.", method)
	default:
	}
	p.script.mu.Lock()
	p.script.calls = append(p.script.calls, Call{method, typ, about})
	p.script.mu.Unlock()
	if ctx.Err() != nil {
		return diag.Errorf(diag.CodeCLIInterrupted, nil, "Provider call interrupted", "The provider was asked to %s %s, but the call was given up.", method, typ)
	}
	if b == nil {
		return diag.Errorf(diag.CodeProviderCall, nil, "Provider cannot be asked", "The provider has no type %s.", typ)
	}
	for _, v := range append(values, about) {
		if v == cty.NilVal {
			continue
		}
		if v.ContainsMarked() {
			return diag.Errorf(diag.CodeProviderCall, nil, "Provider cannot be asked", "A value for %s %s carries marks, which the caller must take off.", method, typ)
		}
		if errs := v.Type().TestConformance(b.ImpliedType()); len(errs) > 0 && v.Type() != cty.DynamicPseudoType {
			return diag.Errorf(diag.CodeProviderCall, nil, "Provider cannot be asked", "A value for %s %s does not conform to the schema: %s.", method, typ, errs[0])
		}
	}
	return nil
}

func (p *Provider) block(mode addr.Mode, typ string) *schema.Block {
	if r := p.schema.Resource(mode, typ); r != nil {
		return r.Block
	}
	return nil
}

// Schema returns the script's schemas, the same pointer each time.
func (p *Provider) Schema(ctx context.Context) (*schema.Provider, diag.List) {
	return p.schema, p.begin(ctx, "Schema", "", p.schema.Config, cty.NilVal)
}

// ValidateConfig accepts every conforming configuration.
func (p *Provider) ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List) {
	return config, p.begin(ctx, "ValidateConfig", "", p.schema.Config, config)
}

// Configure may be called once per instance.
func (p *Provider) Configure(ctx context.Context, config cty.Value) diag.List {
	if ds := p.begin(ctx, "Configure", "", p.schema.Config, config); ds != nil {
		return ds
	}
	p.mu.Lock()
	again := p.configured
	p.configured = true
	p.mu.Unlock()
	switch {
	case again:
		return diag.Errorf(diag.CodeProviderCall, nil, "Provider is configured", "The provider was configured a second time.")
	case p.script.Configure != nil:
		return p.script.Configure(config)
	}
	return nil
}

// ValidateResource calls the script's Validate for the type.
func (p *Provider) ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List {
	if ds := p.begin(ctx, "ValidateResource", typ, p.block(mode, typ), config); ds != nil {
		return ds
	}
	var f func(cty.Value) diag.List
	switch mode {
	case addr.Data:
		f = p.script.Data[typ].Validate
	case addr.Ephemeral:
		f = p.script.Ephemeral[typ].Validate
	default:
		f = p.script.Managed[typ].Validate
	}
	if f == nil {
		return nil
	}
	return f(config)
}

// Stop calls the script's Stop.
func (p *Provider) Stop(ctx context.Context) error {
	if ds := p.begin(ctx, "Stop", "", p.schema.Config, cty.NilVal); ds != nil {
		return ds.Err()
	}
	if p.script.Stop != nil {
		p.script.Stop()
	}
	return nil
}

// Close makes every later call fail.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return nil
	default:
	}
	close(p.closed)
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	p.script.open--
	p.script.calls = append(p.script.calls, Call{Method: "Close"})
	return nil
}

// missing returns the error for a call without a script.
func missing(method, typ string) diag.List {
	return diag.Errorf(diag.CodeProviderCall, nil, "Provider cannot be asked", "The script has nothing for %s of %s.", method, typ)
}

// Fill replaces the unknown parts of a value by values that depend on their path: a string
// is TYPE.ATTRIBUTE, a number 1, a bool true, and everything else empty.
func Fill(typ string, v cty.Value) cty.Value {
	if v.IsWhollyKnown() {
		return v
	}
	out, err := cty.Transform(v, func(path cty.Path, v cty.Value) (cty.Value, error) {
		if v.IsKnown() {
			return v, nil
		}
		return known(typ+"."+schema.PathString(path), v.Type()), nil
	})
	if err != nil {
		panic(fmt.Sprintf("a value of the script cannot be filled: %s", err))
	}
	return out
}

func known(name string, ty cty.Type) cty.Value {
	switch {
	case ty == cty.String || ty == cty.DynamicPseudoType:
		return cty.StringVal(name)
	case ty == cty.Number:
		return cty.NumberIntVal(1)
	case ty == cty.Bool:
		return cty.True
	case ty.IsListType():
		return cty.ListValEmpty(ty.ElementType())
	case ty.IsSetType():
		return cty.SetValEmpty(ty.ElementType())
	case ty.IsMapType():
		return cty.MapValEmpty(ty.ElementType())
	default:
		return cty.NullVal(ty)
	}
}
