package testrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/testrun/mock"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/zclconf/go-cty/cty"
)

// prepare opens the module of the run with the values of its variables, and with the providers,
// mocks and overrides of the test file.
func (s *step) prepare(ctx context.Context) diag.List {
	plain := s.plain[rootOf(s.file, s.run)].e
	ds := s.variables(ctx, plain)
	if ds.HasErrors() {
		return ds
	}
	look, more := plain.Inspect(ctx, engine.InspectOptions{Variables: s.given, Names: s.scope.resolve})
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	rules := &mock.Rules{Configs: map[addr.ProviderConfig]*mock.Config{}, Objects: &s.state(s.run).objects}
	s.rules = rules
	providers, more := s.providers(plain, look, rules)
	ds = append(ds, more...)
	modules, more := s.overrides(plain, look, rules)
	if ds = append(ds, more...); ds.HasErrors() {
		return ds
	}
	o := s.Engine
	at := rootOf(s.file, s.run)
	o.Root = engine.RootModule{Dir: at.dir, Key: at.key}
	if len(providers)+len(modules) > 0 {
		o.Root.Change = func(path addr.Module, m *config.Module) *config.Module {
			if path == "" && len(providers) > 0 {
				c := *m
				c.Providers = maps.Clone(m.Providers)
				maps.Copy(c.Providers, providers)
				return &c
			}
			if given, ok := modules[path]; ok {
				return outputsAlone(m, given)
			}
			return m
		}
	}
	o.Decorate = s.shared.Decorate(rules)
	o.Value = engine.Given(s.given)
	e, more := engine.Open(ctx, o)
	ds = append(ds, more.Errors()...)
	if e == nil || more.HasErrors() {
		if e != nil {
			e.Close()
		}
		return ds
	}
	s.e = e
	if s.Keep {
		s.res.Engine = e
	}
	return ds
}

// variables evaluates the values of the variables. Values of the run take precedence over those
// of the file, and these over values from outside.
func (s *step) variables(ctx context.Context, plain *engine.Engine) diag.List {
	declared := plain.Root().Variables
	given, ds := s.Program.Given(s.file, declared)
	s.given = given
	if s.given == nil {
		s.given = map[string]engine.InputValue{}
	}
	s.scope = &scope{vars: map[string]cty.Value{}, runs: s.runOutputs}
	if ds = append(ds, s.declared(ctx, plain)...); ds.HasErrors() {
		return ds
	}
	for _, vars := range []testfile.Variables{s.file.Variables, s.run.Variables} {
		if len(vars) == 0 {
			continue
		}
		look, more := plain.Inspect(ctx, engine.InspectOptions{Variables: maps.Clone(s.given), Names: s.scope.resolve})
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		values := map[string]cty.Value{}
		for _, name := range sortedVariables(vars) {
			if declared[name] == nil && !s.mentions(name) {
				continue // a variable of another module
			}
			v, more := look.Value(vars[name].Expr)
			ds = append(ds, more...)
			values[name] = v
		}
		for name, v := range values {
			if d := declared[name]; d != nil {
				s.given[name] = engine.InputValue{Value: v, At: &d.At}
			} else {
				s.scope.vars[name] = v
			}
		}
	}
	if ds.HasErrors() {
		return ds
	}
	for _, v := range engine.Missing(s.given, declared) {
		ds = append(ds, diag.Errorf(diag.CodeVarsMissing, &v.At, "No value for required variable", "The root module input variable %q is not set, and has no default value. Use a -var or -var-file command line argument to provide a value for this variable.", v.Name)...)
	}
	return ds
}

// declared evaluates the variables that the test file declares: their values from outside, or their
// defaults. A variable that the module declares, too, gets the value there.
func (s *step) declared(ctx context.Context, plain *engine.Engine) diag.List {
	if len(s.file.Declared) == 0 {
		return nil
	}
	outside, ds := s.Program.Given(s.file, s.file.Declared)
	module := plain.Root().Variables
	for _, name := range slices.Sorted(maps.Keys(s.file.Declared)) {
		v := s.file.Declared[name]
		val := v.Default
		if in, ok := outside[name]; ok {
			var more diag.List
			if val, more = engine.VariableValue(v, in); more.HasErrors() {
				ds = append(ds, more...)
				continue
			}
		} else if v.Required() {
			if s.file.Variables[name] == nil && s.run.Variables[name] == nil {
				ds = append(ds, diag.Errorf(diag.CodeVarsMissing, &v.At, "No value for required variable", "The test file declares the variable %q, which is not set, and has no default value. Use a -var or -var-file command line argument to provide a value for this variable.", name)...)
			}
			continue
		}
		if v.Sensitive {
			val = val.Mark(value.Sensitive)
		}
		if module[name] == nil {
			s.scope.vars[name] = val
		} else if _, ok := s.given[name]; !ok {
			s.given[name] = engine.InputValue{Value: val, At: &v.At}
		}
	}
	if ds.HasErrors() {
		return ds
	}
	return append(ds, s.validations(ctx, plain)...)
}

// validations evaluates the validation blocks of the variables that the test file declares.
func (s *step) validations(ctx context.Context, plain *engine.Engine) (ds diag.List) {
	for _, name := range slices.Sorted(maps.Keys(s.file.Declared)) {
		v := s.file.Declared[name]
		for _, rule := range v.Validations {
			look, more := plain.Inspect(ctx, engine.InspectOptions{Variables: maps.Clone(s.given), Names: s.scope.resolve})
			if look == nil || more.HasErrors() {
				return append(ds, more...)
			}
			_, more = look.Condition("Variable validation", rule)
			ds = append(ds, more...)
		}
	}
	return ds
}

// mentions reports whether an expression of the run or of a provider block refers to a variable.
func (s *step) mentions(name string) bool {
	found := false
	look := func(x hcl.Expression) {
		found = found || x != nil && slices.ContainsFunc(x.Variables(), func(ref hcl.Traversal) bool {
			return ref.RootName() == "var" && len(ref) > 1 && addr.StepName(ref[1]) == name
		})
	}
	for _, a := range s.run.Variables {
		look(a.Expr)
	}
	for _, a := range s.run.Asserts {
		look(a.Condition)
		look(a.ErrorMessage)
	}
	for _, p := range s.file.Providers {
		config.Expressions(p.Body, look)
	}
	for _, o := range slices.Concat(s.run.Overrides, s.file.Overrides) {
		look(o.Value)
	}
	if b := s.run.Backend; b != nil {
		config.Expressions(b.Body, look)
	}
	return found
}

// runOutputs returns the outputs of another run.
func (s *step) runOutputs(name string) (cty.Value, diag.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.outputs[name]; ok {
		return v, nil
	}
	if s.cleaning && slices.Contains(s.file.Names(), name) {
		return cty.DynamicVal, nil // a destroy only needs the values in provider configurations
	}
	if slices.Contains(s.file.Names(), name) {
		return cty.DynamicVal, diag.Errorf(diag.CodeTestAssertion, nil, "Reference to unavailable run block", "The run block %q has no outputs yet: it stands further down, runs at the same time, or did not come to its end.", name)
	}
	return cty.DynamicVal, diag.Errorf(diag.CodeTestAssertion, nil, "Reference to unknown run block", "There is no run block %q in this file.", name)
}

// providers returns the provider configurations that replace or extend those of the module in
// this run.
func (s *step) providers(plain *engine.Engine, look *engine.Inspection, rules *mock.Rules) (map[string]*config.Provider, diag.List) {
	root, needed := plain.Root(), plain.Requirements()
	out := map[string]*config.Provider{}
	var ds diag.List
	add := func(as string, p *testfile.Provider) {
		name, alias, _ := strings.Cut(as, ".")
		src := root.Source(name)
		if _, ok := needed[src]; !ok {
			return
		}
		c := *p.Provider
		c.Name, c.Alias = name, alias
		if p.Mock == nil {
			c.Body = &boundBody{Body: p.Body, value: func(x hcl.Expression) (cty.Value, diag.List) { return look.Value(x) }, bind: s.foreign(root)}
		} else {
			cfg, more := s.mocked(look, p)
			ds = append(ds, more...)
			rules.Configs[addr.ProviderConfig{Provider: src, Alias: alias}] = cfg
		}
		out[as] = &c
	}
	if !s.run.Mapped {
		for _, key := range slices.Sorted(maps.Keys(s.file.Providers)) {
			add(key, s.file.Providers[key])
		}
		return out, ds
	}
	for _, m := range s.run.Providers {
		switch p := s.file.Providers[m.From]; {
		case p != nil:
			add(m.As, p)
		case root.Providers[m.From] != nil:
			c := *root.Providers[m.From]
			c.Name, c.Alias, _ = strings.Cut(m.As, ".")
			out[m.As] = &c
		default:
			ds = append(ds, diag.Errorf(diag.CodeTestFile, &m.At, "Missing provider", "The test file has no provider block %q, and neither has the module.", m.From)...)
		}
	}
	return out, ds
}

// foreign returns a function that reports whether the module cannot evaluate an expression of a
// provider block.
func (s *step) foreign(root *config.Module) func(hcl.Expression) bool {
	return func(x hcl.Expression) bool {
		return slices.ContainsFunc(x.Variables(), func(ref hcl.Traversal) bool {
			switch ref.RootName() {
			case "run", "output":
				return true
			case "var":
				return len(ref) > 1 && root.Variables[addr.StepName(ref[1])] == nil
			}
			return false
		})
	}
}

// mocked evaluates a mock_provider block.
func (s *step) mocked(look *engine.Inspection, p *testfile.Provider) (*mock.Config, diag.List) {
	var ds diag.List
	m := p.Mock
	if m.Source != "" {
		from, more := s.Program.Mocks(m.Source)
		for _, d := range more {
			if d.At == nil {
				d.At = m.SourceAt
			}
		}
		ds = append(ds, more...)
		all := &testfile.Mock{Resources: maps.Clone(m.Resources), Data: maps.Clone(m.Data), Overrides: slices.Clone(m.Overrides), AtApply: m.AtApply}
		if from != nil {
			all.Add(from)
		}
		m = all
	}
	later := m.AtApply != nil && *m.AtApply
	out := &mock.Config{Resources: map[string]mock.Values{}, Data: map[string]mock.Values{}, AtApply: later}
	for _, pair := range []struct {
		from map[string]*testfile.Values
		to   map[string]mock.Values
	}{{m.Resources, out.Resources}, {m.Data, out.Data}} {
		for _, typ := range slices.Sorted(maps.Keys(pair.from)) {
			v, more := values(look, *pair.from[typ], later)
			ds = append(ds, more...)
			pair.to[typ] = v
		}
	}
	for _, o := range m.Overrides {
		v, more := values(look, o.Values, later)
		ds = append(ds, more...)
		out.Overrides = append(out.Overrides, mock.Override{Target: o.Target, Values: v})
	}
	return out, ds
}

// values evaluates the values of computed attributes.
func values(look *engine.Inspection, v testfile.Values, later bool) (mock.Values, diag.List) {
	out := mock.Values{At: &v.At, AtApply: later}
	if v.AtApply != nil {
		out.AtApply = *v.AtApply
	}
	if v.Value == nil {
		return out, nil
	}
	got, ds := look.Value(v.Value)
	if !ds.HasErrors() && !got.IsNull() && !got.Type().IsObjectType() && !got.Type().IsMapType() {
		ds = append(ds, diag.Errorf(diag.CodeTestMock, &v.At, "Invalid mock/override values", "An object is needed here, with the values by the names of attributes.")...)
	}
	out.Value = got
	return out, ds
}

// overrides evaluates the overrides. It adds those of resources to the rules, and returns those
// of modules.
func (s *step) overrides(plain *engine.Engine, look *engine.Inspection, rules *mock.Rules) (map[addr.Module]map[string]cty.Value, diag.List) {
	modules := map[addr.Module]map[string]cty.Value{}
	var ds diag.List
	seen := map[string]int{} // index of the override, starting at 1
	for i, o := range slices.Concat(s.run.Overrides, s.file.Overrides) {
		key := o.Kind.BlockType() + " " + o.Target.String()
		if first := seen[key] - 1; first >= 0 {
			if n := len(s.run.Overrides); (first < n) == (i < n) {
				ds = append(ds, diag.Errorf(diag.CodeTestMock, &o.TargetAt, fmt.Sprintf("Duplicated `%s` block", o.Kind.BlockType()), "It is not allowed to have multiple `%s` blocks with the same target: `%s`.", o.Kind.BlockType(), o.Target)...)
				continue
			}
			what := ""
			if o.Kind == testfile.Module {
				what = "Module "
			}
			ds = append(ds, diag.Warnf(diag.CodeTestMock, &o.TargetAt, fmt.Sprintf("Multiple `%s` blocks for the same address", o.Kind.BlockType()), what+"`%s` is overridden in both global file and local run blocks. The declaration in global file block will be ignored.", o.Target)...)
			continue
		}
		seen[key] = i + 1
		if !exists(plain, o.Target) {
			if s.run.Module != nil && i >= len(s.run.Overrides) { // the override is for another module
				continue
			}
			what := "Resource"
			if o.Kind == testfile.Module {
				what = "Module"
			}
			ds = append(ds, diag.Errorf(diag.CodeTestAssertion, &o.TargetAt, fmt.Sprintf("%s not found: %s", what, o.Target), "Target points to undefined %s. Please, ensure %s exists.", strings.ToLower(what), strings.ToLower(what))...)
			continue
		}
		v, more := values(look, o.Values, false)
		ds = append(ds, more...)
		if o.Kind != testfile.Module {
			rules.Overrides = append(rules.Overrides, mock.Override{Target: o.Target, Values: v})
			continue
		}
		outputs := map[string]cty.Value{}
		if v.Value != cty.NilVal && !v.Value.IsNull() && v.Value.IsKnown() && v.Value.CanIterateElements() {
			for it := v.Value.ElementIterator(); it.Next(); {
				k, x := it.Element()
				if plain.Tree().Node(o.Target.Module).Config.Outputs[k.AsString()] == nil {
					ds = append(ds, diag.Warnf(diag.CodeTestAssertion, &o.TargetAt, "Output not found: "+k.AsString(), "Specified output to override is not present in the module and will be ignored.")...)
				}
				outputs[k.AsString()] = x
			}
		}
		modules[o.Target.Module.Static()] = outputs
	}
	return modules, ds
}

// exists reports whether the configuration contains the target.
func exists(e *engine.Engine, t addr.Target) bool {
	n := e.Tree().Node(t.Module)
	if n == nil {
		return false
	}
	if t.IsModule() {
		return true
	}
	return n.Config.Resources[t.Resource] != nil
}

// outputsAlone returns a module with the same variables, with the given outputs and without
// resources. Outputs without a given value are null.
func outputsAlone(m *config.Module, given map[string]cty.Value) *config.Module {
	out := &config.Module{Dir: m.Dir, Files: m.Files, Set: m.Set, RequiredProviders: m.RequiredProviders, Variables: m.Variables, Outputs: map[string]*config.Output{}}
	for name, o := range m.Outputs {
		v, ok := given[name]
		if !ok {
			v = cty.NullVal(cty.DynamicPseudoType)
		}
		c := *o
		c.Preconditions, c.DependsOn = nil, nil
		c.Value = &config.Setting{Attribute: &hcl.Attribute{Name: "value", Expr: hcl.StaticExpr(v, o.At), Range: o.At, NameRange: o.At}}
		if o.Value != nil {
			c.Value.Layer = o.Value.Layer
		}
		out.Outputs[name] = &c
	}
	return out
}
