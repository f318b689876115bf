package builtin

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// terraform_remote_state (reference section 6.5).

func attr(name string) cty.Path { return cty.Path{cty.GetAttrStep{Name: name}} }

// validateRemoteState checks the known part of the configuration.
func (p *Provider) validateRemoteState(ctx context.Context, config cty.Value) diag.List {
	ds := checkDefaults(config.GetAttr("defaults"))
	backend := config.GetAttr("backend")
	if !backend.IsKnown() || backend.IsNull() {
		return ds
	}
	if !config.GetAttr("config").IsWhollyKnown() {
		return ds
	}
	_, more := p.remoteState(ctx, config, true)
	return append(ds, more...)
}

func checkDefaults(v cty.Value) diag.List {
	if !v.IsKnown() || v.IsNull() || v.Type().IsObjectType() || v.Type().IsMapType() {
		return nil
	}
	ds := diag.Errorf(diag.CodeProviderRemoteStateDefaults, nil, "Invalid default values", "Defaults must be given in an object value.")
	ds[0].Attr = attr("defaults")
	return ds
}

// remoteState reads the state that a configuration refers to. If check is set, it only
// checks the configuration.
func (p *Provider) remoteState(ctx context.Context, config cty.Value, check bool) (*state.State, diag.List) {
	if p.read == nil {
		return nil, diag.Errorf(diag.CodeStateNone, nil, "No states to read", "The built-in provider was started without access to states.")
	}
	req := ReadStateRequest{Backend: config.GetAttr("backend").AsString(), Config: config.GetAttr("config"), Check: check}
	if a := provider.CallerOf(ctx).Instance; a != (addr.Instance{}) {
		req.Address = a.String()
	}
	if ws := config.GetAttr("workspace"); ws.IsKnown() && !ws.IsNull() {
		req.Workspace = ws.AsString()
	}
	if !req.Config.IsNull() && !req.Config.Type().IsObjectType() && !req.Config.Type().IsMapType() {
		ds := diag.Errorf(diag.CodeBackendRemoteState, nil, "Invalid backend configuration", "The given configuration is not valid for backend %q: an object is required.", req.Backend)
		ds[0].Attr = attr("config")
		return nil, ds
	}
	return p.read(ctx, req)
}

// readRemoteState returns the outputs. They are not sensitive, whatever the state says.
func (p *Provider) readRemoteState(ctx context.Context, config cty.Value) (cty.Value, diag.List) {
	if ds := checkDefaults(config.GetAttr("defaults")); ds.HasErrors() {
		return cty.NilVal, ds
	}
	s, ds := p.remoteState(ctx, config, false)
	if ds.HasErrors() {
		return cty.NilVal, ds
	}
	if s == nil {
		missing := diag.Errorf(diag.CodeBackendReadFailed, nil, "Unable to find remote state", "No stored state was found for the given workspace in the given backend.")
		if !config.GetAttr("workspace").IsNull() {
			missing[0].Attr = attr("workspace")
		}
		return cty.NilVal, append(ds, missing...)
	}
	outputs := make(map[string]cty.Value)
	if defaults := config.GetAttr("defaults"); !defaults.IsNull() && defaults.LengthInt() > 0 {
		for name, v := range defaults.AsValueMap() {
			outputs[name] = v
		}
	}
	for name, o := range s.Outputs {
		outputs[name] = o.Value
	}
	parts := config.AsValueMap()
	parts["outputs"] = cty.ObjectVal(outputs)
	return cty.ObjectVal(parts), ds
}
