// Package remotestate reads states that a configuration identifies by a backend and its
// arguments, for the data source terraform_remote_state.
//
// Main type: Reader. The one rule: reading never writes and does not create a missing
// state.
package remotestate

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A Reader reads states for the configuration of one directory.
type Reader struct {
	Backends *backend.Set
	Dir      string  // the base of relative paths
	Env      sys.Env // the environment of the directory
	Options  backend.StoreOptions
}

// Read reads the state of a workspace; "" means the default one. It returns nil if there is
// none. If check is set, it only checks the arguments.
func (r Reader) Read(ctx context.Context, kind string, config cty.Value, workspace string, check bool) (*state.State, diag.List) {
	if kind == "_local" { // another name, as in OpenTofu and Terraform
		kind = "local"
	}
	k, ds := r.Backends.Kind(kind)
	if ds.HasErrors() {
		ds[0].Attr = cty.GetAttrPath("backend")
		return nil, ds
	}
	if config != cty.NilVal {
		config, _ = config.UnmarkDeep() // marks are not needed, because the configuration stays in memory
	}
	v, err := configure.Value(kind, k.Schema, config)
	if err != nil {
		return nil, configError("The given configuration is not valid: " + diag.Reason(err) + ".")
	}
	if check {
		return nil, nil
	}
	b, ds := r.Backends.Open(ctx, backend.Config{Type: kind, Value: v, Dir: r.Dir, Env: r.Env})
	if ds.HasErrors() {
		return nil, inConfig(ds)
	}
	options := r.Options
	options.Locate = inConfig
	st, err := b.Store(workspace, options)
	if err != nil {
		return nil, inConfig(backend.Message(diag.CodeBackendReadFailed, "Failed to open the state", "", err))
	}
	return st.Read(ctx)
}

// inConfig adds the path of the affected argument in config to messages about a backend.
func inConfig(ds diag.List) diag.List {
	for _, m := range ds {
		m.Attr = cty.GetAttrPath("config")
		if blame, ok := m.Extra.(backend.Blame); ok && blame.Argument != "" {
			m.Attr = m.Attr.GetAttr(blame.Argument)
		}
	}
	return ds
}

func configError(detail string) diag.List {
	return diag.List{{Code: diag.CodeBackendRemoteState, Summary: "Invalid backend configuration", Attr: cty.GetAttrPath("config"), Detail: detail}}
}
