package estate

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// Subjects computes the objects of an estate about which rules are written, without state and
// providers. Known outputs pass from unit to unit. Its methods may be called concurrently.
type Subjects struct {
	e       *Estate
	loader  *unit.Loader
	wants   func(subject.Kind, string) bool
	show    func(path string) string
	prefix  string
	schemas ProviderSchemas
	ofUnits func() bool // reports whether a unit is wanted: inputs that no module declares may then read any output

	mu      sync.Mutex
	modules map[string]*moduleCell // by the ID of the unit
	// done contains the outputs of the units whose subjects were returned. Their cells are discarded: a cell
	// keeps everything in memory that was computed for it.
	done map[string]cty.Value
}

// ProviderSchemas returns the function that returns the schemas of providers, given the working
// directory of a unit and the providers that its module requires. That function returns nil for a
// schema that is not available.
type ProviderSchemas func(ctx context.Context, dir string, required map[addr.Provider][]config.Constraint) func(addr.Provider) *schema.Provider

// Subjects returns the subjects of the estate's units. wants reports whether a subject is wanted, by
// its kind and name. show returns the name of a file as it is shown. prefix is the path of the
// estate's root in the names of units, or "". schemas may be nil: then only the schema of the built-in
// provider is available.
func (e *Estate) Subjects(wants func(subject.Kind, string) bool, show func(string) string, prefix string, schemas ProviderSchemas) *Subjects {
	x := &Subjects{e: e, wants: wants, show: show, prefix: prefix, schemas: schemas, modules: map[string]*moduleCell{}, done: map[string]cty.Value{}}
	x.ofUnits = sync.OnceValue(func() bool {
		return slices.ContainsFunc(e.Found.Units, func(u *discovery.Unit) bool { return wants(subject.Unit, path.Join(prefix, u.Name)) })
	})
	x.loader = e.loader.WithOutputs(x.outputs)
	return x
}

// UnitSubjects are the subjects of one unit and its module.
type UnitSubjects struct {
	Name string               // with the prefix
	Meta map[string]cty.Value // facts about the unit
	All  []*subject.Subject
	// Partial means that there may be other subjects in modules that are not on this machine.
	Partial bool
	// Explain returns the explanation of the value at an address, or nil if there is none. The first
	// call evaluates the unit again. It must not be called concurrently.
	Explain func(address string) *explanation.Explanation
}

// A moduleCell computes the subjects and the outputs of a unit's module from the inputs that the module
// declares. The subject of the unit itself has all inputs. It is not a part of the cell: an input that the
// module does not declare is no dependency of the unit, so it may read outputs of a unit that reads those
// of this unit.
type moduleCell struct {
	demand.Cell[*moduleSubjects]
	u *discovery.Unit
}

// Describe implements demand.Subject.
func (c *moduleCell) Describe() (string, *source.Range) {
	at := start(c.u)
	return "the outputs of " + c.u.Called(), &at
}

// moduleSubjects is the value of a moduleCell.
type moduleSubjects struct {
	all     []*subject.Subject // nil after Subjects.Of
	partial bool               // as in UnitSubjects
	module  *workcopy.Module   // nil after Subjects.Of
	outputs cty.Value
	diags   diag.List
}

// start returns the beginning of a unit's file.
func start(u *discovery.Unit) source.Range {
	return source.Range{Filename: u.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// Release frees everything about a unit except the outputs, which other units may read.
func (x *Subjects) Release(u *discovery.Unit) {
	if u.Broken == nil {
		u.In(x.loader).ForgetFile()
	}
	x.e.Release(u)
}

// Of returns the subjects of a unit. A unit with errors has none. Of must be called once for each unit.
func (x *Subjects) Of(ctx context.Context, u *discovery.Unit) (*UnitSubjects, diag.List) {
	if u.Broken != nil {
		return &UnitSubjects{}, u.Broken
	}
	t := x.loader.Task(ctx)
	m, _ := x.module(u).Get(t, nil)
	if ctx.Err() != nil {
		return &UnitSubjects{}, diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The check was interrupted.")
	}
	out := &UnitSubjects{}
	if !m.diags.HasErrors() {
		c := &unitCollector{x: x, u: u, in: u.In(x.loader), t: t, m: m.module, out: out}
		c.unit()
		out.All, out.Partial = append(out.All, m.all...), m.partial
		out.Explain = x.explain(ctx, u)
	}
	m.all, m.module = nil, nil // other units read the outputs
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done[u.ID] = m.outputs
	delete(x.modules, u.ID)
	return out, m.diags
}

// module returns the cell of a unit's module.
func (x *Subjects) module(u *discovery.Unit) *moduleCell {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.modules[u.ID]
	if c == nil {
		c = &moduleCell{u: u}
		at := start(u)
		cycle := &moduleSubjects{outputs: cty.DynamicVal, diags: diag.Errorf(diag.CodeUnitDependencyCycle, &at, "Circular dependency", "The inputs of %s need outputs that are needed to compute themselves.", u.Called())}
		c.Init(c, cycle, func(t *demand.Task) (*moduleSubjects, diag.List) { return x.compute(t, u), nil })
		x.modules[u.ID] = c
	}
	return c
}

// outputs implements unit.OutputsFunc.
func (x *Subjects) outputs(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	u := x.e.Found.ByID(target)
	if u == nil && !stacks.Is(x.loader, target) {
		if u, _ = x.e.reader.Outside(t, target, at); u != nil && x.e.circular(t, x.loader, u) {
			u = nil
		}
	}
	if u == nil || u.Broken != nil {
		return cty.DynamicVal, true, nil
	}
	x.mu.Lock()
	v, ok := x.done[u.ID]
	x.mu.Unlock()
	if !ok {
		m, _ := x.module(u).Get(t, &at)
		v = m.outputs
	}
	return v, v.IsKnown(), nil
}

// circular reports whether a unit outside of the estate depends on itself, directly or through other units.
// Discovery reports such cycles only between units of the estate. Without state, the outputs of such a unit are unknown: the units would wait for each other.
func (e *Estate) circular(t *demand.Task, l *unit.Loader, outside *discovery.Unit) bool {
	seen := map[string]bool{}
	var reaches func(u *discovery.Unit) bool
	reaches = func(u *discovery.Unit) bool {
		var needs []string
		if e.Found.ByID(u.ID) != nil {
			for _, n := range u.Needs {
				needs = append(needs, n.ID)
			}
			needs = append(needs, u.External...)
		} else {
			edges, _ := u.In(l).Dependencies(t, nil) // the run that applies the unit reports errors
			for _, d := range edges {
				needs = append(needs, d.ID)
			}
		}
		for _, id := range needs {
			if id == outside.ID {
				return true
			}
			if seen[id] {
				continue
			}
			seen[id] = true
			n := e.Found.ByID(id)
			if n == nil && !stacks.Is(l, id) {
				n, _ = e.reader.Outside(t, id, start(u))
			}
			if n != nil && n.Broken == nil && reaches(n) {
				return true
			}
		}
		return false
	}
	return reaches(outside)
}

// compute computes the subjects and the outputs of a unit's module.
func (x *Subjects) compute(t *demand.Task, u *discovery.Unit) *moduleSubjects {
	ctx, out := t.Context(), &moduleSubjects{outputs: cty.DynamicVal}
	m, e, explain, ds := x.e.openAlone(ctx, t, u, u.In(x.loader), x.show, x.e.given(ctx, t, u))
	if e == nil {
		out.diags = ds
		return out
	}
	out.module = m
	defer e.Close()
	o := engine.SubjectOptions{Explain: explain, Wants: x.wants}
	if x.schemas != nil && m.Dir != nil {
		// A module that needs only the built-in provider reads no schemas.
		schemas := sync.OnceValue(func() func(addr.Provider) *schema.Provider { return x.schemas(ctx, m.Dir.Path, e.Requirements()) })
		o.Schema = func(p addr.Provider) *schema.Provider { return schemas()(p) }
	}
	found, ds := e.Subjects(ctx, o)
	if ds.HasErrors() {
		out.diags = ds
		return out
	}
	out.partial = found.Partial || m.Root == nil
	files := map[string]string{"": ""} // names as they are shown
	for _, s := range found.All {
		name, ok := files[s.At.Filename]
		if !ok {
			name, _ = explain.Show(s.At.Filename)
			files[s.At.Filename] = name
		}
		s.At.Filename = name
		out.all = append(out.all, s)
	}
	if m.Root != nil && (len(u.NeededBy) > 0 || u.Outside || x.e.Found.ByID(u.ID) == nil || x.ofUnits()) {
		values := map[string]cty.Value{}
		for name, d := range m.Root.Outputs {
			if d.Ephemeral {
				continue
			}
			v := found.Output(name)
			if bare, _ := v.Unmark(); bare.IsKnown() && bare.IsNull() {
				continue // state does not keep null outputs
			}
			values[name] = hidden(v, d.Sensitive)
		}
		out.outputs = cty.ObjectVal(values)
	}
	return out
}

// explain returns the function that explains the values of a unit. It keeps nothing about the unit, since few
// units have values to explain.
func (x *Subjects) explain(ctx context.Context, u *discovery.Unit) func(address string) *explanation.Explanation {
	type explainers struct {
		task     *demand.Task
		unit     *origin.Explainer
		subjects func() *engine.Subjects
	}
	of := sync.OnceValue(func() explainers {
		t, in := x.loader.Task(ctx), u.In(x.loader)
		m := x.e.module(ctx, u)
		return explainers{t, &origin.Explainer{Set: x.loader.Sources(), Unit: in.Origin(t), Show: shown(m, x.show)}, sync.OnceValue(func() *engine.Subjects {
			_, e, explain, _ := x.e.openAlone(ctx, t, u, in, x.show, x.e.given(ctx, t, u))
			if e == nil {
				return nil
			}
			defer e.Close()
			s, _ := e.Subjects(ctx, engine.SubjectOptions{Explain: explain, Wants: func(subject.Kind, string) bool { return false }})
			return s
		})}
	})
	return func(address string) *explanation.Explanation {
		if strings.HasPrefix(address, "inputs.") {
			if found, ds := of().unit.Explain(of().task, address); !ds.HasErrors() {
				return found
			}
			return nil
		}
		s := of().subjects()
		if s == nil {
			return nil
		}
		found, ds := s.Explain(address)
		if ds.HasErrors() {
			return nil
		}
		return found
	}
}

// A unitCollector collects the subjects that a unit file defines.
type unitCollector struct {
	x   *Subjects
	u   *discovery.Unit
	in  *unit.Unit
	t   *demand.Task
	m   *workcopy.Module
	out *UnitSubjects
}

// unit adds the unit and its dependencies.
func (c *unitCollector) unit() {
	u, name, at := c.u, c.name(c.u.Name), start(c.u)
	src := cty.NullVal(cty.String)
	if tf, ds := c.in.Terraform(c.t); tf != nil && tf.Source != nil && !ds.HasErrors() {
		if v, _ := tf.Source.Value.Unmark(); v.Type() == cty.String {
			src = v
		}
	}
	needs := []cty.Value{}
	for _, n := range u.Needs {
		needs = append(needs, cty.StringVal(c.name(n.Name)))
	}
	for _, id := range u.External {
		needs = append(needs, cty.StringVal(c.name(c.x.e.Found.Name(id))))
	}
	c.out.Name = name
	c.out.Meta = map[string]cty.Value{
		"address": cty.StringVal(name), "name": cty.StringVal(name), "source": src, "dependencies": cty.TupleVal(needs), "excluded": c.excluded(),
	}
	if c.x.wants(subject.Unit, name) {
		s := &subject.Subject{Kind: subject.Unit, Address: name, Name: name, At: at, Meta: c.out.Meta}
		values := map[string]cty.Value{}
		settings, ds := c.in.Inputs(c.t, nil)
		if ds.HasErrors() {
			s.Lacks = "is not known, because the inputs have errors"
		}
		for _, in := range settings {
			if in.Name == "" {
				s.Lacks = "may be set by an input whose name is not known"
				continue
			}
			v := in.Value
			if c.secret(in.Name) {
				v = v.Mark(value.Sensitive)
			}
			values[in.Name] = v
		}
		s.Attrs = cty.ObjectVal(values)
		s.Config = s.Attrs
		c.out.All = append(c.out.All, s)
	}
	edge := func(to, id string) {
		both := name + " -> " + to
		if !c.x.wants(subject.Edge, both) {
			return
		}
		s := &subject.Subject{Kind: subject.Edge, Address: both, Name: both, At: at, Attrs: cty.EmptyObjectVal, Config: cty.EmptyObjectVal}
		s.Meta = map[string]cty.Value{"address": cty.StringVal(both), "from": cty.StringVal(name), "to": cty.StringVal(to)}
		edges, _ := c.in.Dependencies(c.t, nil) // the check of the units reports errors
		for _, d := range edges {
			if d.ID == id && d.At != nil {
				s.At = *d.At
				break
			}
		}
		c.out.All = append(c.out.All, s)
	}
	for _, n := range u.Needs {
		edge(c.name(n.Name), n.ID)
	}
	for _, id := range u.External {
		edge(c.name(c.x.e.Found.Name(id)), id)
	}
}

// excluded reports whether the unit is excluded from the command. The result is unknown if it depends on
// outputs that are not known.
func (c *unitCollector) excluded() cty.Value {
	if c.u.Excluded != "" {
		return cty.True
	}
	if x, ds := c.in.Exclude(c.t); x == nil || !x.Late || ds.HasErrors() {
		return cty.False
	}
	x, ds := c.in.ExcludeNow(c.t)
	if x == nil || x.Late || ds.HasErrors() {
		return cty.UnknownVal(cty.Bool)
	}
	return cty.BoolVal(x.If && discovery.Excludes(x, c.x.e.o.Request.Command))
}

// name returns the name of a unit with the prefix.
func (c *unitCollector) name(name string) string { return path.Join(c.x.prefix, name) }

// secret reports whether an input is sensitive: the module declares it, or its name suggests it.
func (c *unitCollector) secret(name string) bool {
	if c.m.Root != nil {
		if v := c.m.Root.Variables[name]; v != nil {
			return v.Sensitive
		}
	}
	return origin.SecretName(name)
}
