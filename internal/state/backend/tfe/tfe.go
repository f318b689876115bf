// Package tfe is the backend "remote" and the cloud block: state, locks and workspaces in
// version 2 of the TFE API, and runs on the service.
//
// Main types: Backend, an opened configuration, and Client, which sends requests to the
// API. The one rule: the token is only sent to its own host, and no message contains it.
package tfe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

const (
	remoteName = "remote"
	cloudName  = "cloud"
)

// Remote returns the backend "remote".
func Remote() backend.Kind {
	return backend.Kind{
		Name:    remoteName,
		Reached: []string{"hostname"},
		Schema: &schema.Block{
			Attributes: map[string]*schema.Attribute{
				"hostname":     {Type: cty.String, Optional: true, Description: "The host of the service."},
				"organization": {Type: cty.String, Required: true, Description: "The name of the organization containing the targeted workspace(s)."},
				"token":        {Type: cty.String, Optional: true, Description: "The token to authenticate with the host; better kept by login."},
			},
			Blocks: map[string]*schema.NestedBlock{"workspaces": workspacesBlock(map[string]cty.Type{"name": cty.String, "prefix": cty.String})},
		},
		Runs: true,
		Open: func(ctx context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
			return open(ctx, remoteName, cfg, s)
		},
	}
}

// Cloud returns the cloud block.
func Cloud() backend.Kind {
	return backend.Kind{
		Name:    cloudName,
		Reached: []string{"hostname"},
		Schema: &schema.Block{
			Attributes: backend.Optional(map[string]cty.Type{"hostname": cty.String, "organization": cty.String, "token": cty.String}),
			Blocks:     map[string]*schema.NestedBlock{"workspaces": workspacesBlock(map[string]cty.Type{"name": cty.String, "project": cty.String, "tags": cty.Set(cty.String)})},
		},
		Settings: true, Runs: true,
		Open: func(ctx context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
			return open(ctx, cloudName, cfg, s)
		},
	}
}

func workspacesBlock(attributes map[string]cty.Type) *schema.NestedBlock {
	return &schema.NestedBlock{Nesting: schema.Single, Block: &schema.Block{Attributes: backend.Optional(attributes)}}
}

// A Backend is an opened configuration. Its methods may be called concurrently.
type Backend struct {
	*Client
	s backend.Services

	name, prefix string
	tags         []string
	project      string

	forced     bool // TF_FORCE_LOCAL_BACKEND is set
	operations bool // the organization runs plans and applies
}

func open(ctx context.Context, kind string, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &Backend{s: s, forced: s.Env.Get("TF_FORCE_LOCAL_BACKEND") != ""}
	var host, organization string
	w := cfg.GetAttr("workspaces")
	ws := backend.NewArgs(w, s.Env)
	if kind == cloudName {
		host = a.Required("hostname", "TF_CLOUD_HOSTNAME")
		organization = a.Required("organization", "TF_CLOUD_ORGANIZATION")
		b.name, b.project = ws.String("name", ""), ws.String("project", "", "TF_CLOUD_PROJECT")
		b.tags = ws.Strings("tags")
		slices.Sort(b.tags)
		chosen := s.Env.Get("TF_WORKSPACE")
		switch {
		case b.name != "" && len(b.tags) > 0:
			a.Fail("workspaces", "Only one of the arguments %q and %q can be set in workspaces", "name", "tags")
		case b.name == "" && len(b.tags) == 0 && b.project == "" && chosen == "":
			a.Fail("workspaces", "The block workspaces needs a %q or %q, or the environment variable TF_WORKSPACE", "name", "tags")
		case b.name == "" && len(b.tags) == 0 && b.project == "":
			b.name = chosen
		case b.name != "" && chosen != "" && chosen != b.name:
			a.Fail("workspaces", "The environment variable TF_WORKSPACE names the workspace %q, and the block names %q", chosen, b.name)
		}
		if !w.IsNull() && !w.GetAttr("name").IsNull() && b.name == store.Default {
			a.Fail("workspaces", "The workspace cannot be called %q", store.Default)
		}
	} else {
		host = a.Required("hostname")
		organization = a.Required("organization")
		b.name, b.prefix = ws.String("name", ""), ws.String("prefix", "")
		switch {
		case b.name == "" && b.prefix == "":
			a.Fail("workspaces", "The block workspaces needs a %q or a %q", "name", "prefix")
		case b.name != "" && b.prefix != "":
			a.Fail("workspaces", "Only one of the arguments %q and %q can be set in workspaces", "name", "prefix")
		}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	service := map[string]string{remoteName: "tfe.v2.1", cloudName: "tfe.v2"}[kind]
	if kind == remoteName && b.forced {
		service = "state.v2"
	}
	base, err := s.Service(ctx, host, service)
	if err != nil {
		answer := diag.Reason(err)
		var said *transfer.StatusError
		if cause := rest.Cause(err); cause != "" {
			answer = host + ": " + cause
		} else if errors.As(err, &said) {
			answer = fmt.Sprintf("%s was asked for its services and answered %s", host, said.Status)
		}
		e := &backend.Error{Argument: "hostname", Answer: answer, Err: err, Advice: rest.Reach(err, "SSL_CERT_FILE", "Check that the host is right, and that it can be reached from here, through its proxy if there is one.")}
		return nil, e
	}
	token := a.String("token", "")
	b.Client = newClient(kind, host, organization, token, base, s)
	b.block = token != ""
	if token == "" {
		if b.token, err = s.Token(ctx, host); err != nil {
			return nil, &backend.Error{Argument: "hostname", Answer: diag.Reason(err), Err: err}
		}
	}
	if b.token == "" {
		return nil, &backend.Error{Argument: "hostname", Summary: "Required token could not be found", Answer: "there is no token for the host " + host, Advice: "Run \"terrace login " + host + "\", or set " + TokenVariable(host) + "."}
	}
	return b, b.begin(ctx)
}

// begin checks that the organization exists, and reads the features that it supports.
func (b *Backend) begin(ctx context.Context) error {
	resp, err := b.send(ctx, call{method: "GET", path: at("organizations", b.Organization, "entitlement-set")})
	if IsStatus(err, http.StatusNotFound) {
		return &backend.Error{Argument: "organization", Err: err, Summary: "Failed to read organization", Answer: fmt.Sprintf("the organization %q at host %s is not there, or this token may not see it", b.Organization, b.Host), Advice: "Check its name, and that the token is of a member of it."}
	}
	if err != nil {
		return b.explain(err)
	}
	if v := resp.Header.Get("TFP-API-Version"); b.kind == cloudName && !atLeast(v, 2, 5) {
		return &backend.Error{Argument: "hostname", Summary: "Unsupported service", Answer: fmt.Sprintf("%s serves version %q of the API, and cloud blocks need 2.5 at least", b.Host, v), Advice: "Use the backend \"remote\" with this host, or upgrade its software."}
	}
	doc, err := decode(resp.Body)
	if err != nil {
		return b.explain(err)
	}
	var can struct{ Operations bool }
	if err := doc.attributes(&can); err != nil {
		return b.explain(err)
	}
	b.operations = can.Operations
	return nil
}

func atLeast(version string, major, minor int) bool {
	x, y, _ := strings.Cut(version, ".")
	m, err := strconv.Atoi(x)
	if err != nil {
		return false
	}
	n, _ := strconv.Atoi(y)
	return m > major || m == major && n >= minor
}

// errNoDefault is the error that a configuration has no default workspace.
var errNoDefault = &backend.Error{Code: diag.CodeCloudWorkspace, Summary: "Default workspace not supported", Answer: "this configuration has workspaces with names of their own and no default one", Advice: "Select one with \"workspace select\", or create one with \"workspace new\"."}

// remote returns the name of a workspace at the service.
func (b *Backend) remote(workspace string) (string, error) {
	if workspace == "" {
		workspace = store.Default
	}
	switch {
	case b.kind == remoteName && b.name != "":
		if workspace != store.Default {
			return "", backend.ErrNoWorkspaces
		}
		return b.name, nil
	case b.name != "":
		if workspace != b.name && workspace != store.Default { // there is no other workspace
			return "", backend.ErrNoWorkspaces
		}
		return b.name, nil
	case workspace == store.Default:
		return "", errNoDefault
	}
	return b.prefix + workspace, nil
}

// Store implements backend.Backend.
func (b *Backend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	name, err := b.remote(workspace)
	if err != nil {
		return nil, err
	}
	return backend.NewStore(&object{b: b, name: name, anyVersion: o.IgnoreVersion}, b.Host+"/"+b.Organization+"/"+name, o, b.s), nil
}

// describe returns the location of the workspaces, for messages.
func (b *Backend) describe() string { return b.Host + "/" + b.Organization }

// errNoSuchWorkspace is the error that the service has no workspace of a name.
var errNoSuchWorkspace = errors.New("there is no such workspace")

// Check implements backend.Checker.
func (b *Backend) Check(ctx context.Context, workspace string, report func(backend.Finding)) {
	who := "a token"
	if doc, _, err := b.document(ctx, call{method: "GET", path: "account/details"}); err == nil {
		var user struct{ Username string }
		if doc.attributes(&user) == nil && user.Username != "" {
			who = "the token of " + user.Username
		}
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: who}) // the state was read with it
	b.checkPermissions(ctx, workspace, report)
	report(backend.Finding{What: "conditional writes", OK: true, Detail: "the service takes states from who holds the lock alone, and none with a serial that it has"})
	backend.CheckVersioning(true, report) // the service always keeps versions
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: "as the service does it; an encryption block seals the state"})
	backend.CheckClock(b.http, report)
}

// checkPermissions checks the permissions that the token has on a workspace.
func (b *Backend) checkPermissions(ctx context.Context, workspace string, report func(backend.Finding)) {
	f := backend.Finding{What: "permissions", OK: true, Detail: "those that states and locks need"}
	name, err := b.remote(workspace)
	if err != nil {
		return // reading the state has reported it
	}
	w, err := b.find(ctx, name, false)
	switch {
	case err == errNoSuchWorkspace:
		f.Detail = "the workspace is not there yet"
	case err != nil:
		report(backend.Failed(f.What, err))
		return
	default:
		var missing []string
		for _, p := range []string{"can-read-state-versions", "can-create-state-versions", "can-lock", "can-unlock"} {
			if !w.May(p) {
				missing = append(missing, p)
			}
		}
		if len(missing) > 0 {
			f.OK, f.Detail, f.Permission = false, "the token may not do all that is needed in the workspace "+name, strings.Join(missing, ", ")
		}
	}
	report(f)
}
