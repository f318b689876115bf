// Package fake is a provider for tests of whoever calls providers: it runs in the
// test's own process and does what the test's script says, and where the script
// says nothing, what a plain provider would do.
//
// Main types: Script and its Types. The one rule: it is as strict as a plugin:
// values that could not go over the wire are refused with an error that says so.
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

// A Script is what a provider does. It must not be changed once an instance was
// made of it. Functions in it may be called concurrently; those that are nil have
// the behaviour that their comment tells.
type Script struct {
	Config       *schema.Block // nil: an empty block
	Meta         *schema.Block
	Capabilities schema.Capabilities

	Managed   map[string]*Type
	Data      map[string]*Data
	Ephemeral map[string]*Ephemeral
	Functions map[string]*Function

	Configure func(config cty.Value) diag.List // nil: accepts it
	Stop      func()                           // nil: nothing

	mu    sync.Mutex
	calls []Call
	open  int
}

// A Type is a managed resource type.
type Type struct {
	Schema *schema.Resource

	Validate func(config cty.Value) diag.List // nil: accepts it
	// Plan; nil: the proposed object, with computed attributes that are null
	// unknown, and those of Replace as what requires a replacement if they change.
	Plan    func(provider.PlanRequest) (provider.PlanResponse, diag.List)
	Replace []string // names of attributes
	// Apply; nil: the planned object, its unknown parts filled by [Fill].
	Apply   func(provider.ApplyRequest) (provider.ApplyResponse, diag.List)
	Read    func(provider.ReadRequest) (provider.ReadResponse, diag.List) // nil: the object as it was
	Import  func(provider.ImportRequest) ([]provider.Imported, diag.List) // nil: an object with only its id
	Upgrade func(provider.UpgradeRequest) (cty.Value, diag.List)          // nil: the JSON as it is
	Move    func(provider.MoveRequest) (provider.MoveResponse, diag.List) // nil: an error
}

// Data is a data source.
type Data struct {
	Schema   *schema.Resource
	Validate func(config cty.Value) diag.List
	Read     func(config cty.Value) (cty.Value, diag.List) // nil: config, computed attributes filled
}

// Ephemeral is an ephemeral resource type.
type Ephemeral struct {
	Schema   *schema.Resource
	Validate func(config cty.Value) diag.List
	Open     func(config cty.Value) (provider.Opened, diag.List) // nil: config, computed attributes filled
	Renew    func(private []byte) (provider.Renewal, diag.List)  // nil: the same private data, no further renewal
	Close    func(private []byte) diag.List                      // nil: accepts it
}

// Function is a function of the provider.
type Function struct {
	Signature *schema.Function
	Call      func(args []cty.Value) (cty.Value, error)
}

// A Call is one call that an instance got.
type Call struct {
	Method string    // of provider.Provider
	Type   string    // of the resource, or the name of the function
	Value  cty.Value // what it was about: configuration, prior or planned object; NilVal if nothing
}

func (c Call) String() string {
	if c.Type == "" {
		return c.Method
	}
	return c.Method + " " + c.Type
}

// Calls returns the calls that all instances of the script got, in the order in
// which they came in.
func (s *Script) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Open is the number of instances that are not closed.
func (s *Script) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Factory makes instances of the script.
func (s *Script) Factory() provider.Factory {
	return func(context.Context) (provider.Provider, diag.List) { return s.New(), nil }
}

// New makes an instance of the script.
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

// begin records a call and refuses it if the instance is closed, the context is
// done, or a value could not go over the wire.
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

// Schema returns the script's schemas; the same for one instance each time.
func (p *Provider) Schema(ctx context.Context) (*schema.Provider, diag.List) {
	return p.schema, p.begin(ctx, "Schema", "", p.schema.Config, cty.NilVal)
}

// ValidateConfig accepts every configuration that conforms.
func (p *Provider) ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List) {
	return config, p.begin(ctx, "ValidateConfig", "", p.schema.Config, config)
}

// Configure may be called once.
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

// ValidateResource does what the script says for the type.
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

// missing is the error of a call that the script does not have.
func missing(method, typ string) diag.List {
	return diag.Errorf(diag.CodeProviderCall, nil, "Provider cannot be asked", "The script has nothing for %s of %s.", method, typ)
}

// Fill replaces the unknown parts of a value by known ones that follow from where
// they are: a string is TYPE.ATTRIBUTE, a number 1, a bool true, everything else empty.
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
