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
// object that only the state contains gets a subject too. wants is as in subject.Options.
func Planned(all []*subject.Subject, p *plan.Plan, wants func(subject.Kind, string) bool) []*subject.Subject {
	byAddress, byBlock := map[string]*subject.Subject{}, map[string]*subject.Subject{}
	for _, s := range all {
		if s.Kind == subject.Resource || s.Kind == subject.Data {
			byAddress[s.Address] = s
			if s.Some { // the plan knows the instances
				byBlock[withoutKeys(s.Address)] = s
			}
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
		address := c.Addr.String()
		base := byAddress[address]
		if base == nil || base.Some {
			base = byBlock[withoutKeys(address)]
		}
		planned[base] = true
		out = append(out, change(base, kind, c))
	}
	for _, s := range all {
		if !planned[s] {
			out = append(out, s)
		}
	}
	return out
}

// withoutKeys returns an address without the keys of instances.
func withoutKeys(address string) string {
	t, err := addr.ParseTarget(address)
	if err != nil {
		return address
	}
	out := ""
	for _, step := range t.Module.Steps() {
		out += "module." + step.Name + "."
	}
	return out + t.Resource.String()
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
	s.Address, s.Some = c.Addr.String(), false
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
