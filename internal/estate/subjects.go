package estate

import (
	"context"
	"path"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/parallel"
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
	done    parallel.Cache[string, *UnitSubjects]
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
	x := &Subjects{e: e, wants: wants, show: show, prefix: prefix, schemas: schemas}
	x.loader = e.loader.WithOutputs(x.outputs)
	return x
}

// UnitSubjects are the subjects of one unit and its module.
type UnitSubjects struct {
	Name string               // with the prefix
	Meta map[string]cty.Value // facts about the unit
	All  []*subject.Subject
	// Explain returns the explanation of the value at an address, or nil if there is none. The first
	// call evaluates the unit again. It must not be called concurrently.
	Explain func(address string) *explanation.Explanation
	outputs cty.Value
	diags   diag.List
}

// Release frees everything except the outputs, which other units may read.
func (u *UnitSubjects) Release() { u.All, u.Meta, u.Explain = nil, nil, nil }

// Release frees everything about a unit except the outputs, which other units may read.
func (x *Subjects) Release(u *discovery.Unit) {
	if u.Broken == nil {
		u.In(x.loader).ForgetFile()
	}
	x.e.Release(u)
}

// Of returns the subjects of a unit. A unit with errors has none.
func (x *Subjects) Of(ctx context.Context, u *discovery.Unit) (*UnitSubjects, diag.List) {
	out, err := x.done.Do(ctx, u.ID, func() (*UnitSubjects, bool) { return x.unit(ctx, u), true })
	if err != nil {
		return &UnitSubjects{}, diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The check was interrupted.")
	}
	return out, out.diags
}

// outputs implements unit.OutputsFunc.
func (x *Subjects) outputs(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	u := x.e.Found.ByID(target)
	if u == nil && !stacks.Is(x.loader, target) {
		u, _ = x.e.reader.Outside(t, target, at)
	}
	if u == nil || u.Broken != nil {
		return cty.DynamicVal, true, nil
	}
	o, _ := x.Of(t.Context(), u)
	return o.outputs, o.outputs != cty.NilVal && o.outputs.IsKnown(), nil
}

// unit computes the subjects of a unit.
func (x *Subjects) unit(ctx context.Context, u *discovery.Unit) *UnitSubjects {
	out := &UnitSubjects{outputs: cty.DynamicVal}
	if u.Broken != nil {
		out.diags = u.Broken
		return out
	}
	t, in := x.loader.Task(ctx), u.In(x.loader)
	m, e, explain, ds := x.e.openAlone(ctx, t, u, in, x.show, x.e.given(ctx, t, u))
	if e == nil {
		out.diags = ds
		return out
	}
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
	c := &unitCollector{x: x, u: u, in: in, t: t, m: m, out: out}
	c.unit()
	files := map[string]string{"": ""} // names as they are shown
	for _, s := range found.All {
		name, ok := files[s.At.Filename]
		if !ok {
			name, _ = explain.Show(s.At.Filename)
			files[s.At.Filename] = name
		}
		s.At.Filename = name
		out.All = append(out.All, s)
	}
	if m.Root != nil && (len(u.NeededBy) > 0 || u.Outside || x.e.Found.ByID(u.ID) == nil) {
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
	out.Explain = x.explain(ctx, u)
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
		m := x.e.dirs.Module(x.e.static.Task(ctx), u.In(x.e.static))
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
	u, name, at := c.u, c.name(c.u.Name), source.Range{Filename: c.u.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
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
		"name": cty.StringVal(name), "source": src, "dependencies": cty.TupleVal(needs), "excluded": cty.BoolVal(u.Excluded != ""),
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
