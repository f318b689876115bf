package builtin

import "github.com/zclconf/go-cty/cty"

// The store block of terraform_data keeps a value of any type, also an ephemeral one. input is
// write-only. Its value is copied to output, or with sensitive = true to sensitive_output, whenever it
// differs from the stored value. With a version, the stored value only changes if the version does.
// With replace = true, a change of the stored value replaces the object. Source: Terraform's
// documentation of terraform_data, version 1.16.

// noStore returns the value of a missing store block, or cty.NilVal if the schema does not have it.
func (p *Provider) noStore() cty.Value {
	if !p.store {
		return cty.NilVal
	}
	return cty.NullVal(storeImplied().AttributeType("store"))
}

// newStore returns the planned store block of a new object.
func (p *Provider) newStore(config cty.Value) cty.Value {
	block := p.storeOf(config)
	if block == cty.NilVal || block.IsNull() || !block.IsKnown() {
		return block
	}
	return storeBlock(block, output(block.GetAttr("input")))
}

// storeOf returns the store block of an object, or cty.NilVal if the schema does not have it.
func (p *Provider) storeOf(object cty.Value) cty.Value {
	if !p.store {
		return cty.NilVal
	}
	return object.GetAttr("store")
}

// storeBlock returns the store block with the arguments of config and a stored value.
func storeBlock(config, stored cty.Value) cty.Value {
	out, secret := stored, nullValue
	flag := config.GetAttr("sensitive")
	switch {
	case !flag.IsKnown():
		out, secret = cty.DynamicVal, cty.DynamicVal
	case !flag.IsNull() && flag.True():
		out, secret = nullValue, stored
	}
	return cty.ObjectVal(map[string]cty.Value{
		"input": nullValue, "output": out, "sensitive_output": secret,
		"replace": config.GetAttr("replace"), "sensitive": flag, "version": config.GetAttr("version"),
	})
}

// stored returns the value that a store block in state contains.
func stored(block cty.Value) cty.Value {
	if secret := block.GetAttr("sensitive_output"); !secret.IsKnown() || !secret.IsNull() {
		return secret
	}
	return block.GetAttr("output")
}

// planStore returns the planned store block of an existing object, and the paths that force a
// replacement.
func (p *Provider) planStore(prior, config cty.Value) (planned cty.Value, replace []cty.Path) {
	block := p.storeOf(config)
	if block == cty.NilVal || block.IsNull() || !block.IsKnown() {
		return block, nil
	}
	before := p.storeOf(prior)
	if before.IsNull() {
		return p.newStore(config), nil
	}
	input, old := block.GetAttr("input"), stored(before)
	changed := !input.IsKnown() || !same(input, old)
	if v := block.GetAttr("version"); !v.IsKnown() || !v.IsNull() {
		changed = !v.IsKnown() || !same(v, before.GetAttr("version"))
	}
	if !changed {
		return storeBlock(block, old), nil
	}
	planned = storeBlock(block, output(input))
	if r := block.GetAttr("replace"); r.IsKnown() && !r.IsNull() && r.True() {
		name := "output"
		if secret := planned.GetAttr("sensitive_output"); !secret.IsKnown() || !secret.IsNull() {
			name = "sensitive_output"
		}
		replace = append(replace, cty.GetAttrPath("store").GetAttr(name))
	}
	return planned, replace
}

// applyStore returns the new store block of an object. It stores the input where the plan is unknown.
func (p *Provider) applyStore(planned, config cty.Value) cty.Value {
	block := p.storeOf(planned)
	if block == cty.NilVal || block.IsNull() {
		return block
	}
	value := stored(block)
	if !value.IsKnown() {
		value = config.GetAttr("store").GetAttr("input")
	}
	return storeBlock(config.GetAttr("store"), value)
}
