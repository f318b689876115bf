package rules

import (
	"maps"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// Planned returns the subjects of a configuration with the values and operations of its plan. An
// object that only the state contains gets a subject too. wants is as in subject.Options. inJSON means that
// the plan is from a document in JSON, which does not contain all module instances.
//
// A subject whose number was unknown before the plan becomes one subject for each instance in the plan. It
// is removed if the plan has none, unless the plan defers it or is limited to targets.
func Planned(all []*subject.Subject, p *plan.Plan, wants func(subject.Kind, string) bool, inJSON bool) []*subject.Subject {
	byAddress, open := map[string]*subject.Subject{}, newOpen(p)
	for _, s := range all {
		if s.Kind == subject.Resource || s.Kind == subject.Data {
			byAddress[s.Address] = s
			open.add(s)
		}
	}
	planned := map[*subject.Subject]bool{}
	var out []*subject.Subject
	for _, c := range p.Changes {
		kind := subject.Resource
		if c.Addr.Resource.Mode == addr.Data {
			kind = subject.Data
		}
		if c.Deposed != "" || !wants(kind, c.Addr.Resource.Type) {
			continue
		}
		base := byAddress[c.Addr.String()]
		if base == nil || base.Some {
			base = open.representing(c.Addr)
		}
		planned[base] = true
		out = append(out, change(base, kind, c))
	}
	for _, s := range all {
		switch {
		case planned[s]:
		case p.Mode == plan.Destroy && (s.Kind == subject.Resource || s.Kind == subject.Data) && len(p.Targets)+len(p.Excludes) == 0:
			// it does not exist
		case !s.Some && s.Uncertain == "":
			out = append(out, s)
		case s.Kind == subject.Provider:
			out = append(out, s)
		default:
			made := open.instances(s)
			if out = append(out, made...); len(made) == 0 && (inJSON && s.Kind == subject.Module || open.undecided(s)) {
				out = append(out, s)
			}
		}
	}
	return out
}

// An open decides about the subjects whose number was unknown before a plan.
type open struct {
	p       *plan.Plan
	targets map[*subject.Subject]addr.Target // of subjects that represent all instances
	by      map[addr.ConfigResource][]*subject.Subject
	// made contains the instances in the plan: modules, which have no resource, and data sources that planning
	// read, which have no change.
	made map[addr.ConfigResource][]addr.Instance
}

func newOpen(p *plan.Plan) *open {
	o := &open{p, map[*subject.Subject]addr.Target{}, map[addr.ConfigResource][]*subject.Subject{}, map[addr.ConfigResource][]addr.Instance{}}
	add := func(a addr.Instance) {
		r := addr.ConfigResource{Module: a.Module.Static(), Resource: a.Resource}
		o.made[r] = append(o.made[r], a)
	}
	for _, m := range p.Modules {
		add(addr.Instance{Module: m.Addr})
	}
	if p.Prior != nil {
		for a := range p.Prior.Instances() {
			if a.Resource.Mode == addr.Data {
				add(a)
			}
		}
	}
	return o
}

// add adds a resource or data source. It ignores one that does not represent all instances.
func (o *open) add(s *subject.Subject) {
	if !s.Some {
		return
	}
	if t, err := addr.ParseTarget(s.Address); err == nil {
		o.targets[s] = t
		r := addr.ConfigResource{Module: t.Module.Static(), Resource: t.Resource}
		o.by[r] = append(o.by[r], s)
	}
}

// representing returns the subject that represents a planned instance, or nil.
func (o *open) representing(a addr.Instance) *subject.Subject {
	for _, s := range o.by[addr.ConfigResource{Module: a.Module.Static(), Resource: a.Resource}] {
		if o.targets[s].Contains(a) {
			return s
		}
	}
	return nil
}

// instances returns the subjects of the modules and data sources in the plan that a subject represents.
func (o *open) instances(s *subject.Subject) (out []*subject.Subject) {
	t, err := addr.ParseTarget(s.Address)
	if err != nil {
		return nil
	}
	for _, a := range o.made[addr.ConfigResource{Module: t.Module.Static(), Resource: t.Resource}] {
		if !t.Contains(a) {
			continue
		}
		n := *s
		n.Some, n.Uncertain, n.Meta = false, "", maps.Clone(s.Meta)
		in, key := a.Module, a.Key
		if n.Address = a.String(); t.IsModule() {
			parent, last, _ := a.Module.Parent()
			n.Address, in, key = string(a.Module), parent, last.Key
		}
		n.Meta["address"], n.Meta["module"], n.Meta["key"] = cty.StringVal(n.Address), cty.StringVal(string(in)), subject.KeyValue(key)
		out = append(out, &n)
	}
	return out
}

// undecided reports whether the plan may lack instances of a subject that represents all of them.
func (o *open) undecided(s *subject.Subject) bool {
	if len(o.p.Targets)+len(o.p.Excludes) > 0 {
		return true
	}
	t, err := addr.ParseTarget(s.Address)
	if err != nil {
		return true
	}
	for _, d := range o.p.Deferred {
		if by, err := addr.ParseTarget(d.Addr); err != nil || by.ContainsConfig(addr.ConfigResource{Module: t.Module.Static(), Resource: t.Resource}) {
			return true
		}
	}
	return false
}

// change returns the subject of a planned change. base is the subject in the configuration, or nil.
func change(base *subject.Subject, kind subject.Kind, c *plan.Change) *subject.Subject {
	s := &subject.Subject{Kind: kind, Name: c.Addr.Resource.Type, Config: cty.EmptyObjectVal, Lacks: "is not in the configuration"}
	if base != nil {
		n := *base
		s = &n
	} else {
		p := c.Provider.Provider
		s.Meta = map[string]cty.Value{
			"type": cty.StringVal(c.Addr.Resource.Type), "name": cty.StringVal(c.Addr.Resource.Name), "module": cty.StringVal(string(c.Addr.Module)),
			"module_path": cty.NullVal(cty.String), "provider": cty.StringVal(p.Display()), "provider_type": cty.StringVal(p.Type),
			"prevent_destroy": cty.False, "create_before_destroy": cty.False,
		}
	}
	s.Address, s.Some, s.Uncertain = c.Addr.String(), false, ""
	s.Meta = maps.Clone(s.Meta)
	s.Meta["address"], s.Meta["operation"], s.Meta["key"] = cty.StringVal(s.Address), cty.StringVal(operation(c.Op)), subject.KeyValue(c.Addr.Key)
	s.Prior = marked(c.Before, c.BeforeSensitive)
	s.Attrs = marked(c.After, c.AfterSensitive)
	s.Gone = c.Op == plan.Delete || c.Op == plan.Forget
	if !s.Gone {
		s.Lacks = ""
	}
	return s
}

func marked(v cty.Value, secret []cty.Path) cty.Value {
	if v == cty.NilVal {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return value.MarkPaths(v, value.Sensitive, secret...)
}

// operation returns the name of an operation in rules.
func operation(op plan.Op) string {
	switch op {
	case plan.Create:
		return "create"
	case plan.Read:
		return "read"
	case plan.Update:
		return "update"
	case plan.Delete:
		return "delete"
	case plan.Forget:
		return "forget"
	case plan.NoOp:
		return "no-op"
	}
	return "replace"
}
