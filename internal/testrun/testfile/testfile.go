// Package testfile parses test files: the runs of a test, and the mocks and overrides of
// providers, resources and modules.
//
// Main types: File and Run. The one rule: only expressions that parsing requires are evaluated, such
// as addresses and keywords.
package testfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A File is a test file.
type File struct {
	Name      string // name in messages, relative to the working directory
	Runs      []*Run // in the order of the file
	Variables Variables
	Declared  map[string]*config.Variable // variable blocks, by name
	Providers map[string]*Provider        // by name or name.alias; includes mocks
	Overrides []*Override
	Parallel  bool // runs are parallel by default
	// SkipCleanup keeps the objects of all runs, unless a run overrides it.
	SkipCleanup bool
	// NotInOpenTofu contains the blocks and arguments that OpenTofu rejects.
	NotInOpenTofu []Part
}

// A Part is a part of a test file.
type Part struct {
	At   source.Range
	What string // a noun phrase, such as "a variable block in a test file"
}

// Variables contains expressions by the name of the variable.
type Variables = hcl.Attributes

// A Provider is a provider configuration for runs, real or mocked.
type Provider struct {
	*config.Provider
	Mock *Mock // nil for a real provider
}

// A Mock contains the values that a mocked provider returns.
type Mock struct {
	Resources map[string]*Values // by type
	Data      map[string]*Values
	Overrides []*Override
	Source    string // directory with further mocks, as written; "" means none
	SourceAt  *source.Range
	AtApply   *bool // generated values are unknown until apply; nil means the default of the caller
}

// Values contains the values of computed attributes. A nil Value sets none.
type Values struct {
	Value   hcl.Expression
	At      source.Range
	AtApply *bool // nil means the setting of the mock
}

// An Override sets the values of one object.
type Override struct {
	Kind     Kind
	Target   addr.Target
	TargetAt source.Range
	Values
}

// A Kind is the kind of object that an override applies to.
type Kind uint8

// The kinds.
const (
	Resource Kind = iota
	Data
	Module
)

// BlockType returns the type of the block that overrides the kind.
func (k Kind) BlockType() string {
	return [...]string{"override_resource", "override_data", "override_module"}[k]
}

// A Command is the operation of a run.
type Command uint8

// The commands.
const (
	Apply Command = iota
	Plan
)

// A Run is a run block.
type Run struct {
	Name      string
	At        source.Range
	Command   Command
	Variables Variables
	Providers []Passed
	Mapped    bool // the run has a providers argument
	Expected  []hcl.Traversal
	Asserts   []*config.Rule
	Module    *Call // nil means the module under test
	Overrides []*Override

	RefreshOnly bool
	NoRefresh   bool
	Replace     []hcl.Traversal
	Targets     []hcl.Traversal

	Parallel    *bool    // nil means the setting of the file
	StateKey    string   // "" means the state of the module
	Backend     *Backend // contains the state; nil means that the state is empty at first
	SkipCleanup *bool    // nil means the setting of the file
}

// A Backend is the backend block of a run. Its arguments may refer to variables and to other runs.
type Backend = config.Backend

// State returns the key of the state that a run uses. Runs with the same key share a state.
func (r *Run) State() string {
	if r.StateKey != "" {
		return "key " + r.StateKey
	}
	if r.Module != nil {
		return "module " + r.Module.Source + " " + r.Module.Version
	}
	return ""
}

// A Passed is an entry of the providers argument of a run.
type Passed struct {
	As   string // name or name.alias in the module
	From string // name or name.alias in the test file
	At   source.Range
}

// A Call is a module that a run executes instead of the one under test.
type Call struct {
	Source    string
	Version   string
	SourceAt  source.Range
	VersionAt source.Range
	At        source.Range
}

// Names returns the names of the runs. It returns nil if there are none, which is null in JSON
// output.
func (f *File) Names() []string {
	var out []string
	for _, r := range f.Runs {
		out = append(out, r.Name)
	}
	return out
}

var (
	fileSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "run", LabelNames: []string{"name"}}, {Type: "variables"}, {Type: "test"}, {Type: "variable", LabelNames: []string{"name"}},
		{Type: "provider", LabelNames: []string{"name"}}, {Type: "mock_provider", LabelNames: []string{"name"}},
		{Type: "override_resource"}, {Type: "override_data"}, {Type: "override_module"},
	}}
	testSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "parallel"}, {Name: "skip_cleanup"}}}
	runSchema  = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "command"}, {Name: "providers"}, {Name: "expect_failures"}, {Name: "parallel"}, {Name: "state_key"}, {Name: "skip_cleanup"}},
		Blocks: []hcl.BlockHeaderSchema{
			{Type: "plan_options"}, {Type: "assert"}, {Type: "variables"}, {Type: "module"}, {Type: "backend", LabelNames: []string{"type"}},
			{Type: "override_resource"}, {Type: "override_data"}, {Type: "override_module"},
		},
	}
	planSchema   = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "mode"}, {Name: "refresh"}, {Name: "replace"}, {Name: "target"}}}
	assertSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "condition", Required: true}, {Name: "error_message", Required: true}}}
	moduleSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "source", Required: true}, {Name: "version"}}}
	mockSchema   = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "alias"}, {Name: "for_each"}, {Name: "source"}, {Name: "override_during"}},
		Blocks: []hcl.BlockHeaderSchema{
			{Type: "mock_resource", LabelNames: []string{"type"}}, {Type: "mock_data", LabelNames: []string{"type"}},
			{Type: "override_resource"}, {Type: "override_data"},
		},
	}
	mockFileSchema = &hcl.BodySchema{Blocks: mockSchema.Blocks}
	valuesSchema   = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "defaults"}, {Name: "override_during"}}}
	overrideSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "target", Required: true}, {Name: "values"}, {Name: "outputs"}, {Name: "override_during"}}}
	providerSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "alias"}, {Name: "for_each"}, {Name: "version"}}}
)

// Schema returns the arguments and blocks in a block of a test file, or at its top for "". A file with mocks has
// the blocks of "mock_provider". It is nil for a block whose arguments are not fixed, and for other blocks.
// The caller must not modify it.
func Schema(block string) *hcl.BodySchema {
	switch block {
	case "":
		return fileSchema
	case "test":
		return testSchema
	case "run":
		return runSchema
	case "plan_options":
		return planSchema
	case "assert":
		return assertSchema
	case "module":
		return moduleSchema
	case "provider":
		return providerSchema
	case "mock_provider":
		return mockSchema
	case "mock_resource", "mock_data":
		return valuesSchema
	case "override_resource", "override_data", "override_module":
		return overrideSchema
	}
	return nil
}

// Parse parses a test file and adds its text to the set. If there are errors, the File contains
// the valid parts.
func Parse(name string, text []byte, set *source.Set) (*File, diag.List) {
	layer := &source.Layer{Kind: source.Base, Name: name}
	set.Add(&source.File{Path: name, Bytes: text, Layer: layer})
	p := &parser{layer: layer}
	out := &File{Name: name, Providers: map[string]*Provider{}, Declared: map[string]*config.Variable{}}
	body := p.parse(name, text)
	if body == nil {
		return out, p.ds
	}
	first := map[string]source.Range{}
	for _, b := range p.content(body, fileSchema).Blocks {
		if b.Type != "run" && !strings.HasPrefix(b.Type, "override_") {
			key := b.Type
			if at, again := first[key]; again && len(b.Labels) == 0 {
				p.errorf(diag.CodeTestFile, b.DefRange, "Multiple \""+b.Type+"\" blocks", "This test file already has a block of type %q, at %s.", b.Type, at)
				continue
			}
			first[key] = b.DefRange
		}
		switch b.Type {
		case "run":
			r := p.run(b)
			if i := slices.IndexFunc(out.Runs, func(o *Run) bool { return o.Name == r.Name }); i >= 0 && !p.again(out.Runs[i], r) {
				continue
			}
			out.Runs = append(out.Runs, r)
		case "variables":
			out.Variables = p.variables(b.Body)
		case "variable":
			p.notInOpenTofu = append(p.notInOpenTofu, Part{b.DefRange, "a variable block in a test file"})
			v, ds := config.DecodeVariable(b, layer)
			p.ds = append(p.ds, ds...)
			if have := out.Declared[v.Name]; have != nil {
				p.errorf(diag.CodeTestFile, b.DefRange, "Multiple \"variable\" blocks", "The variable %q is already declared at %s.", v.Name, have.At)
				continue
			}
			out.Declared[v.Name] = v
		case "test":
			p.notInOpenTofu = append(p.notInOpenTofu, Part{b.DefRange, "a test block"})
			c := p.content(b.Body, testSchema)
			if v := p.flag(c, "parallel"); v != nil {
				out.Parallel = *v
			}
			if v := p.flag(c, "skip_cleanup"); v != nil {
				out.SkipCleanup = *v
			}
		case "provider", "mock_provider":
			pr := p.provider(b)
			if have := out.Providers[pr.Key()]; have != nil {
				p.errorf(diag.CodeTestFile, b.DefRange, "Duplicate provider block", "A provider for %q is already defined at %s.", pr.Key(), have.At)
				continue
			}
			out.Providers[pr.Key()] = pr
		default:
			out.Overrides = p.override(out.Overrides, b)
		}
	}
	p.backends(out.Runs)
	out.NotInOpenTofu = p.notInOpenTofu
	return out, p.ds.Sort()
}

// backends checks that each state has at most one backend, in the first run that uses the state.
func (p *parser) backends(runs []*Run) {
	first := map[string]*Run{}
	for _, r := range runs {
		key := r.State()
		have := first[key]
		switch {
		case have == nil:
			first[key] = r
		case r.Backend == nil:
		case have.Backend != nil:
			p.errorf(diag.CodeTestFile, r.Backend.At, "Duplicate backend block", "The run %q, at %s, already has a backend for this state. To use another state, set state_key.", have.Name, have.At)
		default:
			p.errorf(diag.CodeTestFile, r.Backend.At, "Invalid backend block", "The run %q, at %s, uses the same state before. Move the backend block to that run, or set state_key.", have.Name, have.At)
		}
	}
}

// ParseMocks parses a file of mocks in the directory that a mock_provider block names.
func ParseMocks(name string, text []byte, set *source.Set) (*Mock, diag.List) {
	layer := &source.Layer{Kind: source.Base, Name: name}
	set.Add(&source.File{Path: name, Bytes: text, Layer: layer})
	p := &parser{layer: layer}
	m := newMock()
	if body := p.parse(name, text); body != nil {
		p.mocks(m, p.content(body, mockFileSchema).Blocks)
	}
	return m, p.ds.Sort()
}

func newMock() *Mock { return &Mock{Resources: map[string]*Values{}, Data: map[string]*Values{}} }

// Add adds the values of another mock for types that this one does not mock.
func (m *Mock) Add(o *Mock) {
	for _, pair := range []struct{ to, from map[string]*Values }{{m.Resources, o.Resources}, {m.Data, o.Data}} {
		for _, typ := range slices.Sorted(maps.Keys(pair.from)) {
			if pair.to[typ] == nil {
				pair.to[typ] = pair.from[typ]
			}
		}
	}
	m.Overrides = append(m.Overrides, o.Overrides...)
}

// A parser collects the errors in one file.
type parser struct {
	layer *source.Layer
	ds    diag.List
	// notInOpenTofu contains the parts that OpenTofu rejects.
	notInOpenTofu []Part
}

// onlyHere records an argument of Terraform, if the block contains it.
func (p *parser) onlyHere(c *hcl.BodyContent, name, of string) {
	if a := c.Attributes[name]; a != nil {
		p.notInOpenTofu = append(p.notInOpenTofu, Part{a.Range, "the argument " + name + " of " + of})
	}
}

func (p *parser) errorf(code string, at source.Range, summary, detail string, args ...any) {
	p.ds = append(p.ds, diag.Errorf(code, &at, summary, detail, args...)...)
}

func (p *parser) hcl(diags hcl.Diagnostics) { p.ds = append(p.ds, diag.FromHCL(diags)...) }

func (p *parser) parse(name string, text []byte) hcl.Body {
	if deep := diag.TooDeep(name, text); deep != nil {
		p.ds = append(p.ds, deep...)
		return nil
	}
	var file *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		file, diags = json.Parse(text, name)
	} else {
		file, diags = hclsyntax.ParseConfig(text, name, hcl.InitialPos)
	}
	p.hcl(diags)
	if file == nil {
		return nil
	}
	return file.Body
}

func (p *parser) content(b hcl.Body, s *hcl.BodySchema) *hcl.BodyContent {
	c, diags := b.Content(s)
	p.hcl(diags)
	return c
}

// constant returns the value of an argument without references, or NilVal if it is missing.
func (p *parser) constant(c *hcl.BodyContent, name string, ty cty.Type) (cty.Value, source.Range) {
	a := c.Attributes[name]
	if a == nil {
		return cty.NilVal, source.Range{}
	}
	v, diags := a.Expr.Value(nil)
	p.hcl(diags)
	if diags.HasErrors() {
		return cty.NilVal, a.Expr.Range()
	}
	if v.IsNull() || !v.Type().Equals(ty) {
		p.errorf(diag.CodeConfigUnsuitableValue, a.Expr.Range(), "Unsuitable value type", "The argument %q must be a %s.", name, ty.FriendlyName())
		return cty.NilVal, a.Expr.Range()
	}
	return v, a.Expr.Range()
}

func (p *parser) text(c *hcl.BodyContent, name string) (string, source.Range) {
	v, at := p.constant(c, name, cty.String)
	if v == cty.NilVal {
		return "", at
	}
	return v.AsString(), at
}

func (p *parser) flag(c *hcl.BodyContent, name string) *bool {
	v, _ := p.constant(c, name, cty.Bool)
	if v == cty.NilVal {
		return nil
	}
	b := v.True()
	return &b
}

// keyword returns the index in among of a keyword argument, or 0 if it is missing.
func (p *parser) keyword(c *hcl.BodyContent, name, those string, among ...string) int {
	a := c.Attributes[name]
	if a == nil {
		return 0
	}
	if i := slices.Index(among, word(a.Expr)); i >= 0 {
		return i
	}
	p.errorf(diag.CodeTestFile, a.Expr.Range(), "Invalid \""+name+"\" keyword", "The %q argument requires one of the following keywords without quotes: %s", name, those)
	return 0
}

// word returns the keyword in an expression. In JSON a string is a keyword.
func word(x hcl.Expression) string {
	if w := hcl.ExprAsKeyword(x); w != "" {
		return w
	}
	if _, native := x.(hclsyntax.Expression); !native {
		if v, diags := x.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			return v.AsString()
		}
	}
	return ""
}

// during reads override_during. It returns whether values are unknown until apply, or nil if it
// is missing.
func (p *parser) during(c *hcl.BodyContent) *bool {
	if c.Attributes["override_during"] == nil {
		return nil
	}
	later := p.keyword(c, "override_during", "plan or apply.", "plan", "apply") == 1
	return &later
}

func (p *parser) variables(b hcl.Body) Variables {
	attrs, diags := b.JustAttributes()
	p.hcl(diags)
	return attrs
}

func (p *parser) provider(b *hcl.Block) *Provider {
	out := &Provider{Provider: &config.Provider{Name: b.Labels[0], At: b.DefRange}}
	var c *hcl.BodyContent
	if b.Type == "mock_provider" {
		c = p.content(b.Body, mockSchema)
		out.Body, out.Mock = hcl.EmptyBody(), newMock()
		out.Mock.AtApply = p.during(c)
		out.Mock.Source, _ = p.text(c, "source")
		if a := c.Attributes["source"]; a != nil {
			at := a.Expr.Range()
			out.Mock.SourceAt = &at
		}
		p.mocks(out.Mock, c.Blocks)
	} else {
		var diags hcl.Diagnostics
		c, out.Body, diags = b.Body.PartialContent(providerSchema)
		p.hcl(diags)
	}
	out.Alias, _ = p.text(c, "alias")
	if a := c.Attributes["for_each"]; a != nil {
		out.ForEach = &config.Setting{Attribute: a, Layer: p.layer}
		if out.Alias == "" {
			p.errorf(diag.CodeConfigProviderForEach, a.NameRange, "Alias required when using \"for_each\"", "A provider configuration with for_each needs an alias, by which its instances are named.")
		}
	}
	return out
}

func (p *parser) mocks(m *Mock, blocks hcl.Blocks) {
	for _, b := range blocks {
		if strings.HasPrefix(b.Type, "override_") {
			m.Overrides = p.single(m.Overrides, b)
			continue
		}
		into := m.Resources
		if b.Type == "mock_data" {
			into = m.Data
		}
		if into[b.Labels[0]] != nil {
			p.errorf(diag.CodeConfigDuplicateBlock, b.DefRange, "Duplicate "+b.Type+" block", "The type %q is mocked already.", b.Labels[0])
			continue
		}
		c := p.content(b.Body, valuesSchema)
		v := &Values{At: b.DefRange, AtApply: p.during(c)}
		if a := c.Attributes["defaults"]; a != nil {
			v.Value, v.At = a.Expr, a.Expr.Range()
		}
		into[b.Labels[0]] = v
	}
}

func (p *parser) override(all []*Override, b *hcl.Block) []*Override {
	o := &Override{Values: Values{At: b.DefRange}}
	values := "values"
	switch b.Type {
	case "override_data":
		o.Kind = Data
	case "override_module":
		o.Kind, values = Module, "outputs"
	}
	c := p.content(b.Body, overrideSchema)
	for name, a := range c.Attributes {
		if name != values && (name == "values" || name == "outputs") {
			p.errorf(diag.CodeLangUnsupportedArgument, a.NameRange, "Unsupported argument", "An argument named %q is not expected here.", name)
		}
	}
	if a := c.Attributes[values]; a != nil {
		o.Value, o.Values.At = a.Expr, a.Expr.Range()
	}
	o.AtApply = p.during(c)
	a := c.Attributes["target"]
	if a == nil {
		return all
	}
	at := a.Expr.Range()
	ref, ok := anyInstance(a.Expr)
	if !ok {
		var diags hcl.Diagnostics
		ref, diags = hcl.AbsTraversalForExpr(a.Expr)
		p.hcl(diags)
		if diags.HasErrors() {
			return all
		}
	}
	t, err := addr.TargetFromTraversal(ref)
	if err != nil {
		p.errorf(diag.CodeConfigInvalidAddress, at, "Invalid address", "%s.", err)
		return all
	}
	switch {
	case o.Kind == Module && !t.IsModule():
		p.errorf(diag.CodeTestFile, at, "Module address expected", "It's not allowed to reference anything other than module here.")
	case o.Kind == Module && t.Module.Static() != addr.Module(t.Module):
		p.errorf(diag.CodeTestFile, at, "Module instance address with keys is not allowed", "An override_module block stands in for every instance of a module, so its target cannot be a module instance such as %s. Write %s to override all of them, or override the resources of one instance with override_resource blocks.", t, t.Module.Static())
	case o.Kind != Module && t.IsModule():
		p.errorf(diag.CodeTestFile, at, "Resource address expected", "It's not allowed to reference anything other than resource or data source here.")
	case o.Kind == Resource && t.Resource.Mode != addr.Managed:
		p.errorf(diag.CodeTestFile, at, "Unsupported target", "An override_resource block is for managed resources. Use override_data for %s.", t)
	case o.Kind == Data && t.Resource.Mode != addr.Data:
		p.errorf(diag.CodeTestFile, at, "Unsupported target", "An override_data block is for data sources. Use override_resource for %s.", t)
	default:
		o.Target, o.TargetAt = t, at
		return append(all, o)
	}
	return all
}

// anyInstance returns the address in an expression with [*], as in module.m[*].terraform_data.r[0],
// without these steps. Such a step means all instances, as an address without a key does. ok is
// false for other expressions.
func anyInstance(x hcl.Expression) (ref hcl.Traversal, ok bool) {
	switch x := x.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return x.Traversal, true
	case *hclsyntax.AnonSymbolExpr: // the element that a splat is about
		return nil, true
	case *hclsyntax.RelativeTraversalExpr:
		ref, ok = anyInstance(x.Source)
		return append(slices.Clone(ref), x.Traversal...), ok
	case *hclsyntax.SplatExpr:
		ref, ok = anyInstance(x.Source)
		each, more := anyInstance(x.Each)
		return append(slices.Clone(ref), each...), ok && more
	}
	return nil, false
}

// single is override for blocks of one scope. Two blocks with the same target are an error, since
// the order of blocks does not matter.
func (p *parser) single(all []*Override, b *hcl.Block) []*Override {
	out := p.override(all, b)
	if len(out) == len(all) {
		return out
	}
	o := out[len(all)]
	if i := slices.IndexFunc(all, func(e *Override) bool { return e.Kind == o.Kind && e.Target == o.Target }); i >= 0 {
		p.ds = append(p.ds, diag.Errorf(diag.CodeTestMock, &o.TargetAt, "Duplicated `"+b.Type+"` block", "It is not allowed to have multiple `%s` blocks with the same target: `%s`.", b.Type, o.Target).Note(&all[i].TargetAt, "the other block")...)
	}
	return out
}

func (p *parser) run(b *hcl.Block) *Run {
	c := p.content(b.Body, runSchema)
	r := &Run{Name: b.Labels[0], At: b.DefRange}
	if !hclsyntax.ValidIdentifier(r.Name) {
		p.errorf(diag.CodeTestFile, b.LabelRanges[0], "Invalid run block name", "The name of a run block must start with a letter or underscore and may contain only letters, digits, underscores, and dashes.")
	}
	r.Command = Command(p.keyword(c, "command", "apply or plan.", "apply", "plan"))
	for _, name := range []string{"parallel", "state_key", "skip_cleanup"} {
		p.onlyHere(c, name, "a run")
	}
	r.Parallel, r.SkipCleanup = p.flag(c, "parallel"), p.flag(c, "skip_cleanup")
	r.StateKey, _ = p.text(c, "state_key")
	r.Expected = p.references(c.Attributes["expect_failures"])
	r.Providers = p.passed(c.Attributes["providers"])
	r.Mapped = c.Attributes["providers"] != nil
	seen := map[string]bool{}
	for _, b := range c.Blocks {
		if b.Type == "plan_options" || b.Type == "variables" || b.Type == "module" || b.Type == "backend" {
			if seen[b.Type] {
				p.errorf(diag.CodeTestFile, b.DefRange, "Multiple \""+b.Type+"\" blocks", "This run block already has a block of type %q.", b.Type)
				continue
			}
			seen[b.Type] = true
		}
		switch b.Type {
		case "assert":
			if a := p.assert(b); a != nil && len(a.Condition.Variables()) == 0 {
				p.errorf(diag.CodeConfigConstantCondition, a.Condition.Range(), "Invalid assert expression", "The condition expression must refer to at least one object from elsewhere in the configuration, or else its result would not be checking anything.")
			} else if a != nil {
				r.Asserts = append(r.Asserts, a)
			}
		case "variables":
			r.Variables = p.variables(b.Body)
		case "module":
			r.Module = p.module(b)
		case "plan_options":
			p.planOptions(r, b)
		case "backend":
			r.Backend = &Backend{Type: b.Labels[0], Body: b.Body, At: b.DefRange}
			p.notInOpenTofu = append(p.notInOpenTofu, Part{b.DefRange, "the backend of a run"})
		default:
			r.Overrides = p.override(r.Overrides, b)
		}
	}
	return r
}

// again adds a message about a second run with the same name, and reports whether it can be
// executed. run.NAME refers to the later one, but two runs with one name cannot have different
// installed modules.
func (p *parser) again(first, r *Run) bool {
	if first.Module != nil && r.Module != nil && (first.Module.Source != r.Module.Source || first.Module.Version != r.Module.Version) {
		p.errorf(diag.CodeTestFile, r.At, "Duplicate \"run\" block names", "This test file already has a run block named %s, at %s, with another module.", r.Name, first.At)
		return false
	}
	p.ds = append(p.ds, diag.Warnf(diag.CodeTestFile, &r.At, "Duplicate \"run\" block names", "This test file already has a run block named %s, at %s. Both run, and run.%s is the one that ran last.", r.Name, first.At, r.Name)...)
	return true
}

func (p *parser) assert(b *hcl.Block) *config.Rule {
	c := p.content(b.Body, assertSchema)
	cond, msg := c.Attributes["condition"], c.Attributes["error_message"]
	if cond == nil || msg == nil {
		return nil
	}
	return &config.Rule{Condition: cond.Expr, ErrorMessage: msg.Expr, At: b.DefRange}
}

func (p *parser) module(b *hcl.Block) *Call {
	c := p.content(b.Body, moduleSchema)
	out := &Call{At: b.DefRange}
	out.Source, out.SourceAt = p.text(c, "source")
	out.Version, out.VersionAt = p.text(c, "version")
	return out
}

func (p *parser) planOptions(r *Run, b *hcl.Block) {
	c := p.content(b.Body, planSchema)
	r.RefreshOnly = p.keyword(c, "mode", "normal or refresh-only", "normal", "refresh-only") == 1
	if v := p.flag(c, "refresh"); v != nil {
		r.NoRefresh = !*v
	}
	r.Replace, r.Targets = p.references(c.Attributes["replace"]), p.references(c.Attributes["target"])
	switch {
	case r.RefreshOnly && r.NoRefresh:
		p.errorf(diag.CodeTestFile, c.Attributes["refresh"].Range, "Incompatible plan options", "The \"refresh\" option cannot be set to false when running a test in \"refresh-only\" mode.")
	case r.RefreshOnly && len(r.Replace) > 0:
		p.errorf(diag.CodeTestFile, c.Attributes["replace"].Range, "Incompatible plan options", "The \"replace\" option cannot be set when running a test in \"refresh-only\" mode.")
	}
}

// references parses a list of references.
func (p *parser) references(a *hcl.Attribute) (out []hcl.Traversal) {
	if a == nil {
		return nil
	}
	list, diags := hcl.ExprList(a.Expr)
	p.hcl(diags)
	for _, x := range list {
		ref, diags := hcl.AbsTraversalForExpr(x)
		p.hcl(diags)
		if !diags.HasErrors() {
			out = append(out, ref)
		}
	}
	return out
}

// passed parses the providers argument of a run.
func (p *parser) passed(a *hcl.Attribute) (out []Passed) {
	if a == nil {
		return nil
	}
	pairs, diags := hcl.ExprMap(a.Expr)
	p.hcl(diags)
	for _, kv := range pairs {
		as, from := p.providerName(kv.Key), p.providerName(kv.Value)
		if as != "" && from != "" {
			out = append(out, Passed{as, from, kv.Value.Range()})
		}
	}
	return out
}

// providerName parses NAME or NAME.ALIAS.
func (p *parser) providerName(x hcl.Expression) string {
	if k, ok := x.(*hclsyntax.ObjectConsKeyExpr); ok {
		x = k.Wrapped
	}
	ref, diags := hcl.AbsTraversalForExpr(x)
	if !diags.HasErrors() && len(ref) <= 2 {
		name := ref.RootName()
		if len(ref) == 2 {
			name += "." + addr.StepName(ref[1])
		}
		return name
	}
	if v, diags := x.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		return v.AsString()
	}
	p.errorf(diag.CodeTestFile, x.Range(), "Invalid provider reference", "A provider is named as NAME or NAME.ALIAS here.")
	return ""
}
