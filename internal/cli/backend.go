package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A backend is where the state of the working folder lives.
type backend struct {
	path, workspaceDir string // "" for the defaults
}

// config is the backend's configuration as saved plans keep it.
func (b backend) config() cty.Value { return localValue(b.path, b.workspaceDir) }

// peerBackends are the backends that the peers have and this version has not.
var peerBackends = []string{"remote", "azurerm", "consul", "cos", "gcs", "http", "inmem", "kubernetes", "oss", "pg", "s3"}

// refuse says no to places of state and to encryption that this version does
// not have. Local state is never taken instead.
func (s *session) refuse(root *config.Module) diag.List {
	var ds diag.List
	if b := root.Backend; b != nil && b.Type != "local" {
		switch {
		case b.Type == "cloud":
			ds = append(ds, &diag.Message{
				Code: "backend/not-available", Summary: "Cloud block not available", At: &b.At,
				Detail: fmt.Sprintf("This configuration keeps its state in a cloud service, which this version of %s cannot do yet. Nothing was read or changed. Remove the cloud block to keep state in a local file.", view.Product),
			})
		case slices.Contains(peerBackends, b.Type):
			ds = append(ds, &diag.Message{
				Code: "backend/not-available", Summary: "Backend not available", At: &b.At,
				Detail: fmt.Sprintf("This configuration keeps its state in the backend %q, which this version of %s cannot do yet: it knows the backend \"local\". Nothing was read or changed.", b.Type, view.Product),
			})
		default:
			ds = append(ds, &diag.Message{
				Code: "backend/unknown", Summary: "Unsupported backend type", At: &b.At,
				Detail: fmt.Sprintf("There is no backend type named %q.", b.Type),
			})
		}
	}
	if e := root.Encryption; e != nil {
		ds = append(ds, &diag.Message{
			Code: "backend/encryption", Summary: "State encryption not available", At: &e.At,
			Detail: fmt.Sprintf("This configuration wants state and plans encrypted, which this version of %s cannot do yet. Nothing was read, and nothing is written without encryption in its place.", view.Product),
		})
	}
	if s.Env.Get("TF_ENCRYPTION") != "" {
		ds = append(ds, &diag.Message{
			Code: "backend/encryption", Summary: "State encryption not available",
			Detail: fmt.Sprintf("The environment variable TF_ENCRYPTION asks for encryption of state and plans, which this version of %s cannot do yet. Nothing was read, and nothing is written without encryption in its place.", view.Product),
		})
	}
	return ds
}

// configured evaluates the backend block; b is the block's own settings.
func (p *project) configured(ctx context.Context, block *config.Backend) (b backend, ds diag.List) {
	content, diags := block.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "path"}, {Name: "workspace_dir"}}})
	if ds = diag.FromHCL(diags); ds.HasErrors() {
		return b, ds
	}
	for name, into := range map[string]*string{"path": &b.path, "workspace_dir": &b.workspaceDir} {
		a := content.Attributes[name]
		if a == nil {
			continue
		}
		v, more := p.engine.Static(ctx, p.vars, a.Expr)
		ds = append(ds, more...)
		if more.HasErrors() {
			continue
		}
		at := a.Expr.Range()
		text, more := backendText(v, name, &at)
		ds = append(ds, more...)
		*into = text
	}
	return b, ds.Sort()
}

func backendText(v cty.Value, name string, at *source.Range) (string, diag.List) {
	if value.ContainsSecret(v) || value.ContainsMark(v, value.Ephemeral) {
		return "", diag.Errorf(at, "Backend config contains sensitive values", "The argument %q of the backend is stored on disk in the clear, so it cannot be made of sensitive or ephemeral values.", name)
	}
	v, _ = v.UnmarkDeep()
	text, err := convert.Convert(v, cty.String)
	switch {
	case err != nil:
		return "", diag.Errorf(at, "Invalid backend configuration", "The argument %q must be a string: %s.", name, err)
	case !text.IsKnown():
		return "", diag.Errorf(at, "Invalid backend configuration", "The argument %q is not known before anything is planned.", name)
	case text.IsNull():
		return "", nil
	}
	return text.AsString(), nil
}

// backend tells where state lives, and refuses where the folder has to be
// initialized first.
func (p *project) backend(ctx context.Context) (backend, diag.List) {
	root := p.engine.Root()
	if ds := p.refuse(root); len(ds) > 0 {
		return backend{}, ds
	}
	cache, ds := p.readBackendCache()
	if ds.HasErrors() {
		return backend{}, ds
	}
	if root.Backend == nil {
		if cache != nil {
			return backend{}, append(ds, initRequired(fmt.Sprintf("Unsetting the previously set backend %q", cache.Type), nil)...)
		}
		return backend{}, ds
	}
	written, more := p.configured(ctx, root.Backend)
	if ds = append(ds, more...); ds.HasErrors() {
		return backend{}, ds
	}
	switch {
	case cache == nil:
		return backend{}, append(ds, initRequired("Initial configuration of the requested backend \"local\"", &root.Backend.At)...)
	case cache.Type != "local":
		return backend{}, append(ds, initRequired(fmt.Sprintf("Backend type changed from %q to \"local\"", cache.Type), &root.Backend.At)...)
	case cache.Hash != backendHash(written):
		return backend{}, append(ds, initRequired("Backend configuration block has changed", &root.Backend.At)...)
	}
	return cache.backend(), ds
}

func initRequired(reason string, at *source.Range) diag.List {
	return diag.List{{
		Code: "backend/init", At: at,
		Summary: fmt.Sprintf("Backend initialization required, please run \"%s init\"", view.Program),
		Detail: fmt.Sprintf("Reason: %s\n\nThe \"backend\" is the interface that %[2]s uses to store state, perform operations, etc. If this message is showing up, it means that the %[2]s configuration you're using is using a custom configuration for the %[2]s backend.\n\n"+
			"Changes to backend configurations require reinitialization. This allows %[2]s to set up the new configuration, copy existing state, etc. Please run \"%[3]s init\" with either the \"-reconfigure\" or \"-migrate-state\" flags to use the current configuration.\n\n"+
			"If the change reason above is incorrect, please verify your configuration hasn't changed and try again. At this point, no changes to your existing configuration or state have been made.", reason, view.Product, view.Program),
	}}
}

// storeOptions are the options of the state of a workspace.
func (s *session) storeOptions(b backend, workspace string, f stateFlags) local.Options {
	return local.Options{
		Dir: s.Dir, Path: b.path, WorkspaceDir: b.workspaceDir, Workspace: workspace,
		StatePath: f.path, OutPath: f.out, BackupPath: f.backup,
		Who: s.User() + "@" + s.Host(), Now: s.Now,
	}
}

// readState serves terraform_remote_state: the backend "local" with the
// arguments path and workspace_dir.
func (s *session) readState(ctx context.Context, req engine.ReadStateRequest) (*state.State, diag.List) {
	config := req.Config
	if typ := req.Backend; typ != "local" {
		at := cty.Path{cty.GetAttrStep{Name: "backend"}}
		if slices.Contains(peerBackends, typ) || typ == "cloud" {
			return nil, diag.List{{Code: "backend/not-available", Summary: "Backend not available", Attr: at, Detail: fmt.Sprintf("This version of %s cannot read state from the backend %q yet.", view.Product, typ)}}
		}
		return nil, diag.List{{Code: "backend/unknown", Summary: "Invalid backend configuration", Attr: at, Detail: fmt.Sprintf("There is no backend type named %q.", typ)}}
	}
	var b backend
	if config != cty.NilVal && !config.IsNull() {
		for name, v := range config.AsValueMap() {
			into := map[string]*string{"path": &b.path, "workspace_dir": &b.workspaceDir}[name]
			if into == nil {
				return nil, remoteConfigError(fmt.Sprintf("The given configuration is not valid for backend \"local\": unexpected attribute %q.", name))
			}
			text, ds := backendText(v, name, nil)
			if ds.HasErrors() {
				return nil, remoteConfigError(ds[0].Detail)
			}
			*into = text
		}
	}
	if req.Check {
		return nil, nil
	}
	return local.Open(s.storeOptions(b, req.Workspace, stateFlags{})).Read(ctx)
}

func remoteConfigError(detail string) diag.List {
	return diag.List{{Code: "backend/remote-state", Summary: "Invalid backend configuration", Attr: cty.Path{cty.GetAttrStep{Name: "config"}}, Detail: detail}}
}
