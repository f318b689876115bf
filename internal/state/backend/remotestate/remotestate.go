// Package remotestate reads states that configurations name by a backend and its
// arguments: the data source terraform_remote_state.
//
// Main type: Reader. The one rule: reading never writes; a state that is not there
// stays that way.
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

// A Reader reads states for the configuration of one folder.
type Reader struct {
	Backends *backend.Set
	Dir      string  // relative paths count from it
	Env      sys.Env // the environment of the folder
	Options  backend.StoreOptions
}

// Read reads the state of a workspace, "" for the default one; nil is no state. With
// check it looks at the arguments alone.
func (r Reader) Read(ctx context.Context, kind string, config cty.Value, workspace string, check bool) (*state.State, diag.List) {
	if kind == "_local" { // the name that the peers accept too
		kind = "local"
	}
	k, ds := r.Backends.Kind(kind)
	if ds.HasErrors() {
		ds[0].Attr = cty.GetAttrPath("backend")
		return nil, ds
	}
	if config != cty.NilVal {
		config, _ = config.UnmarkDeep() // marks belong to what is read with them, which stays in memory
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

// inConfig gives messages about a backend their place: the argument that they are about, in
// config.
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
