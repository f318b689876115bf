package resourceclient

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// IgnoreChanges evaluates lifecycle.ignore_changes of an instance. The function that it returns
// replaces the values at these paths in a configuration by those of prior, the object that exists.
func IgnoreChanges(t *demand.Task, d *eval.Desired, s *schema.Resource, prior cty.Value) (func(config cty.Value) cty.Value, diag.List) {
	in, ds := d.Ignored(t)
	if d.Resource.Config().Lifecycle.Ignore != nil {
		for _, ref := range in.Paths {
			at := ref.SourceRange()
			ds = append(ds, eval.AttributeMistake(ref, s.Block.ImpliedType(), &at)...)
		}
		if in.Unknown != nil && !prior.IsNull() {
			ds = append(ds, d.UnknownIgnored(in.Unknown)...)
		}
	}
	return func(config cty.Value) cty.Value { return ignoreChanges(in.Paths, in.All, prior, config, s) }, ds
}

// ignoreChanges replaces the values at the paths in a configuration by the prior values, or
// all of them if all is set.
func ignoreChanges(paths []hcl.Traversal, all bool, prior, config cty.Value, s *schema.Resource) cty.Value {
	if prior.IsNull() || config.IsNull() || !all && len(paths) == 0 {
		return config
	}
	if all {
		return ignoreAll(s.Block, prior, config)
	}
	for _, ref := range paths {
		config = ignoreOne(ref, prior, config)
	}
	return config
}

// ignoreAll takes every argument that the configuration can set from prior.
func ignoreAll(b *schema.Block, prior, config cty.Value) cty.Value {
	vals := config.AsValueMap()
	for name, v := range prior.AsValueMap() {
		if a := b.Attributes[name]; a != nil && a.WriteOnly {
			continue
		}
		vals[name] = v
	}
	return cty.ObjectVal(vals)
}

func ignoreOne(ref hcl.Traversal, prior, config cty.Value) cty.Value {
	if len(ref) == 0 || config.IsNull() || !config.IsKnown() || prior.IsNull() || !prior.IsKnown() {
		return prior
	}
	ty := config.Type()
	switch step := ref[0].(type) {
	case hcl.TraverseRoot:
		return ignoreAttr(step.Name, ref[1:], prior, config)
	case hcl.TraverseAttr:
		if ty.IsMapType() {
			return ignoreKey(cty.StringVal(step.Name), ref[1:], prior, config)
		}
		return ignoreAttr(step.Name, ref[1:], prior, config)
	case hcl.TraverseIndex:
		if ty.IsObjectType() && step.Key.Type() == cty.String {
			return ignoreAttr(step.Key.AsString(), ref[1:], prior, config)
		}
		return ignoreKey(step.Key, ref[1:], prior, config)
	}
	return config
}

func ignoreAttr(name string, rest hcl.Traversal, prior, config cty.Value) cty.Value {
	if !config.Type().IsObjectType() || !config.Type().HasAttribute(name) || !prior.Type().IsObjectType() || !prior.Type().HasAttribute(name) {
		return config
	}
	vals := config.AsValueMap()
	vals[name] = ignoreRest(rest, prior.GetAttr(name), vals[name])
	return cty.ObjectVal(vals)
}

func ignoreRest(rest hcl.Traversal, prior, config cty.Value) cty.Value {
	if len(rest) == 0 {
		return prior
	}
	if prior.IsNull() || !prior.IsKnown() {
		if step, ok := rest[0].(hcl.TraverseIndex); ok && config.Type().IsMapType() && len(rest) == 1 && config.IsKnown() && !config.IsNull() {
			return withoutKey(config, step.Key)
		}
		return config
	}
	if config.IsNull() {
		if step, ok := rest[0].(hcl.TraverseIndex); ok && prior.Type().IsMapType() && len(rest) == 1 && hasKey(prior, step.Key) {
			return cty.MapVal(map[string]cty.Value{step.Key.AsString(): prior.Index(step.Key)})
		}
		return config
	}
	return ignoreOne(rest, prior, config)
}

func hasKey(v, key cty.Value) bool {
	if key.Type() != cty.String && key.Type() != cty.Number {
		return false
	}
	if v.Type().IsMapType() && key.Type() != cty.String || v.Type().IsListType() && key.Type() != cty.Number {
		return false
	}
	has := v.HasIndex(key)
	return has.IsKnown() && has.True()
}

func withoutKey(m, key cty.Value) cty.Value {
	vals := m.AsValueMap()
	delete(vals, key.AsString())
	if len(vals) == 0 {
		return cty.MapValEmpty(m.Type().ElementType())
	}
	return cty.MapVal(vals)
}

// ignoreKey restores one element of a map or list: its value, its presence or its absence.
func ignoreKey(key cty.Value, rest hcl.Traversal, prior, config cty.Value) cty.Value {
	ty := config.Type()
	switch {
	case ty.IsMapType() && key.Type() == cty.String:
		inPrior, inConfig := hasKey(prior, key), hasKey(config, key)
		vals := config.AsValueMap()
		if vals == nil {
			vals = map[string]cty.Value{}
		}
		switch {
		case inPrior && inConfig:
			vals[key.AsString()] = ignoreRest(rest, prior.Index(key), config.Index(key))
		case inPrior:
			vals[key.AsString()] = prior.Index(key)
		case inConfig:
			return withoutKey(config, key)
		}
		if len(vals) == 0 {
			return config
		}
		return cty.MapVal(vals)
	case (ty.IsListType() || ty.IsTupleType()) && key.Type() == cty.Number && hasKey(config, key) && (prior.Type().IsListType() || prior.Type().IsTupleType()) && hasKey(prior, key):
		vals := config.AsValueSlice()
		n, _ := key.AsBigFloat().Int64()
		vals[n] = ignoreRest(rest, prior.Index(key), vals[n])
		if ty.IsListType() {
			return cty.ListVal(vals)
		}
		return cty.TupleVal(vals)
	}
	return config
}
