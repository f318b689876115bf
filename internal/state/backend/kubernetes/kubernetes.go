// Package kubernetes is the backend "kubernetes": state in a Secret, locked by a Lease.
//
// Main types: Kind opens a namespace with a suffix, an object is the Secret and the Lease
// of one workspace. The one rule: a Secret is only replaced with the resourceVersion that
// was read, and after checking the Lease. This package uses the API over plain HTTP,
// because the client library would slow down every start of the program.
package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "kubernetes".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "kubernetes",
		Reached: []string{"host", "config_path"},
		Schema: &schema.Block{
			Attributes: backend.Optional(map[string]cty.Type{
				"secret_suffix":            cty.String,
				"labels":                   cty.Map(cty.String),
				"namespace":                cty.String,
				"in_cluster_config":        cty.Bool,
				"load_config_file":         cty.Bool,
				"host":                     cty.String,
				"username":                 cty.String,
				"password":                 cty.String,
				"insecure":                 cty.Bool,
				"client_certificate":       cty.String,
				"client_key":               cty.String,
				"cluster_ca_certificate":   cty.String,
				"config_paths":             cty.List(cty.String),
				"config_path":              cty.String,
				"config_context":           cty.String,
				"config_context_auth_info": cty.String,
				"config_context_cluster":   cty.String,
				"token":                    cty.String,
			}, "secret_suffix"),
			Blocks: map[string]*schema.NestedBlock{
				"exec": {Nesting: schema.List, MaxItems: 1, Block: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
					"api_version": cty.String,
					"command":     cty.String,
					"env":         cty.Map(cty.String),
					"args":        cty.List(cty.String),
				}, "api_version", "command")}},
			},
		},
		Open: open,
	}
}

// maxSecret is the maximum size of a Secret, in bytes.
const maxSecret = 1 << 20

type kubernetesBackend struct {
	s         backend.Services
	c         *connection
	namespace string
	suffix    string
	labels    map[string]string // the labels in the configuration
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &kubernetesBackend{
		s:         s,
		suffix:    a.Required("secret_suffix"),
		namespace: a.String("namespace", "default", "KUBE_NAMESPACE"),
		labels:    a.Map("labels"),
	}
	if !isName(b.secret(store.Default)) {
		a.Fail("secret_suffix", "The %q gives the name %q, which is none that a Secret can have: lower-case letters, digits, %q and %q, at most 253", "secret_suffix", b.secret(store.Default), "-", ".")
	}
	if !isName(b.namespace) {
		a.Fail("namespace", "The %q is not the name of a namespace", "namespace")
	}
	x := accessOf(a, s)
	if err := a.Err(); err != nil {
		return nil, err
	}
	b.c = s.Shared.Get("kubernetes "+x.key(), func() any { return &connection{access: x, s: s} }).(*connection)
	return b, nil
}

// isName reports whether a text is a subdomain by RFC 1123, which is required for names of
// objects.
func isName(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return len(s) <= 253
}

func (b *kubernetesBackend) secret(workspace string) string {
	return "tfstate-" + workspace + "-" + b.suffix
}

func (b *kubernetesBackend) secrets() string {
	return "/api/v1/namespaces/" + b.namespace + "/secrets"
}

func (b *kubernetesBackend) leases() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + b.namespace + "/leases"
}

// labelsOf returns the labels of the objects of a workspace.
func (b *kubernetesBackend) labelsOf(workspace string) map[string]string {
	out := map[string]string{
		"tfstate":                      "true",
		"tfstateSecretSuffix":          b.suffix,
		"tfstateWorkspace":             workspace,
		"app.kubernetes.io/managed-by": "terraform",
	}
	for k, v := range b.labels {
		out[k] = v
	}
	return out
}

// A meta is the metadata of an object.
type meta struct {
	Name            string            `json:"name"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	UID             string            `json:"uid,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// list returns the metadata of the objects that the labels select.
func (b *kubernetesBackend) list(ctx context.Context, path, selector string) ([]meta, error) {
	var out []meta
	for next := ""; ; {
		q := url.Values{"labelSelector": {selector}, "limit": {"500"}}
		if next != "" {
			q.Set("continue", next)
		}
		resp, err := b.c.send(ctx, rest.Request{Method: "GET", URL: path + "?" + q.Encode(), Repeat: true,
			Header: http.Header{"Accept": {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"}}})
		if err != nil {
			return nil, err
		}
		var list struct {
			Metadata struct{ Continue string }
			Items    []struct{ Metadata meta }
		}
		if resp.Status != http.StatusOK {
			return nil, b.refused("", "list", path, resp)
		}
		if err := json.Unmarshal(resp.Body, &list); err != nil {
			return nil, odd()
		}
		for _, i := range list.Items {
			out = append(out, i.Metadata)
		}
		if next = list.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}

func (b *kubernetesBackend) List(ctx context.Context) ([]string, error) {
	found, err := b.list(ctx, b.secrets(), "tfstate=true")
	if err != nil {
		return nil, err
	}
	names := []string{store.Default}
	for _, m := range found {
		if w := m.Labels["tfstateWorkspace"]; w != "" && w != store.Default && m.Labels["tfstateSecretSuffix"] == b.suffix {
			names = append(names, w)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

// Delete deletes the Secret, the Lease unless it is held, and the objects next to the
// state.
func (b *kubernetesBackend) Delete(ctx context.Context, workspace string) error {
	secret := b.secrets() + "/" + b.secret(workspace)
	lease := b.leases() + "/lock-" + b.secret(workspace)
	for _, path := range []string{secret, lease} {
		var now struct {
			Metadata meta
			Spec     struct{ HolderIdentity *string }
		}
		found, err := b.get(ctx, path, &now)
		if err != nil {
			return err
		}
		if !found || now.Metadata.Labels["tfstate"] != "true" || now.Spec.HolderIdentity != nil {
			continue
		}
		if err := b.delete(ctx, path, &now.Metadata); err != nil {
			return err
		}
	}
	o := &object{b: b, workspace: workspace}
	return backend.DeleteBlobs(ctx, o)
}

func (b *kubernetesBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	if name := b.secret(workspace); !isName(name) {
		return nil, &backend.Error{Argument: "secret_suffix", Answer: fmt.Sprintf("the workspace %q and the secret_suffix give the name %q, which is none that a Secret can have: lower-case letters, digits, %q and %q, at most 253", workspace, name, "-", ".")}
	}
	return backend.NewStore(&object{b: b, workspace: workspace}, "kubernetes:"+b.namespace+"/"+b.secret(workspace), o, b.s), nil
}

// get reads an object. found is false if it does not exist.
func (b *kubernetesBackend) get(ctx context.Context, path string, into any) (found bool, err error) {
	resp, err := b.c.send(ctx, rest.Request{Method: "GET", URL: path, Repeat: true})
	if err != nil {
		return false, err
	}
	switch resp.Status {
	case http.StatusOK:
		if err := json.Unmarshal(resp.Body, into); err != nil {
			return false, odd()
		}
		return true, nil
	case http.StatusNotFound:
		// The object is missing, not the path or the namespace: the details of the response
		// show it.
		return false, nil
	}
	return false, b.refused("", "get", path, resp)
}

// namespaced returns an error if the namespace does not exist: for objects in a missing
// namespace, the server only reports that the object is missing. It returns nil if the user
// may not read the namespace.
func (b *kubernetesBackend) namespaced(ctx context.Context) error {
	path := "/api/v1/namespaces/" + url.PathEscape(b.namespace)
	resp, err := b.c.send(ctx, rest.Request{Method: "GET", URL: path, Repeat: true})
	if err != nil || resp.Status != http.StatusNotFound {
		return err
	}
	return b.refused("", "get", path, resp)
}

// delete deletes an object, if it is still the one that was read.
func (b *kubernetesBackend) delete(ctx context.Context, path string, m *meta) error {
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map[string]string{"uid": m.UID, "resourceVersion": m.ResourceVersion}})
	if err != nil {
		return err
	}
	resp, err := b.c.send(ctx, rest.Request{Method: "DELETE", URL: path, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Repeat: true})
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK && resp.Status != http.StatusAccepted && resp.Status != http.StatusNotFound {
		return b.refused("", "delete", path, resp)
	}
	return nil
}

// put creates (POST) or replaces (PUT) an object. It is not repeated, because the second
// attempt may fail after the first succeeded.
func (b *kubernetesBackend) put(ctx context.Context, method, path string, v any) (*rest.Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return b.c.send(ctx, rest.Request{Method: method, URL: path, Header: http.Header{"Content-Type": {"application/json"}}, Body: body})
}

func odd() error {
	return &backend.Error{Argument: "host", Answer: "the answer is not one of Kubernetes", Advice: "Check that the address is that of the API server."}
}

// refused returns the error for an unsuccessful response.
func (b *kubernetesBackend) refused(summary, verb, path string, resp *rest.Response) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: "host", Answer: answer, Advice: advice}
	}
	e := &backend.Error{Summary: summary, Argument: "host", Answer: fmt.Sprintf("Kubernetes answered %d %s", resp.Status, http.StatusText(resp.Status))}
	var status struct{ Message, Reason string }
	if json.Unmarshal(resp.Body, &status) == nil && status.Message != "" {
		e.Answer += ": " + rest.Line([]byte(status.Message))
	} else if line := rest.Line(resp.Body); line != "" && !strings.HasPrefix(line, "<") {
		e.Answer += ": " + line
	}
	kind := "secrets"
	if strings.Contains(path, "/leases") {
		kind = "leases"
	}
	switch resp.Status {
	case http.StatusUnauthorized:
		e.Argument = b.c.access.argument
		e.Advice = "The credentials are not accepted: check token, exec, the client certificate or the kubeconfig file and its context."
	case http.StatusForbidden:
		e.Argument = "namespace"
		e.Permission = verb + " " + kind
		e.Advice = fmt.Sprintf("The account needs the right to %s %s in the namespace %q; for all of this backend: get, create, update, delete and list secrets; get, create, update and delete leases.", verb, kind, b.namespace)
	case http.StatusNotFound:
		e.Argument = "namespace"
		e.Advice = fmt.Sprintf("Check that there is a namespace %q.", b.namespace)
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		e.Argument = "secret_suffix"
		if strings.Contains(e.Answer, "Too long") || strings.Contains(e.Answer, "too large") || resp.Status == http.StatusRequestEntityTooLarge {
			e.Advice = tooLarge
		}
	}
	if e.Advice == "" {
		e.Advice = backend.AdviceOn(resp.Status)
	}
	return e
}

const tooLarge = "A Secret holds 1 MiB, and the state is kept compressed in one: split the state, or keep it in another backend."

// Check implements backend.Checker.
func (b *kubernetesBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	report(b.checkUser(ctx))
	for _, c := range []struct{ group, resource, verbs string }{
		{"", "secrets", "get create update delete list"},
		{"coordination.k8s.io", "leases", "get create update delete"},
	} {
		var missing []string
		for verb := range strings.FieldsSeq(c.verbs) {
			var answer struct{ Status struct{ Allowed bool } }
			known, err := b.review(ctx, "authorization.k8s.io/v1", "SelfSubjectAccessReview", map[string]any{
				"resourceAttributes": map[string]string{"namespace": b.namespace, "verb": verb, "group": c.group, "resource": c.resource}}, &answer)
			if err != nil {
				report(backend.Failed("rights on "+c.resource, err))
				return
			}
			if known && !answer.Status.Allowed {
				missing = append(missing, verb)
			}
		}
		f := backend.Finding{What: "rights on " + c.resource, OK: len(missing) == 0, Detail: "in the namespace " + b.namespace}
		if !f.OK {
			f.Permission = strings.Join(missing, ", ") + " " + c.resource
		}
		report(f)
	}
	backend.CheckNoVersioning("Kubernetes keeps no older states: back up etcd, or the Secret", report)
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: "the cluster does not say whether it encrypts Secrets; an encryption block seals the state"})
	b.c.mu.Lock()
	client := b.c.client
	b.c.mu.Unlock()
	if client != nil {
		backend.CheckClock(client, report)
	}
}

// review sends a review request about the user to the server. known is false if the server
// does not support it.
func (b *kubernetesBackend) review(ctx context.Context, version, kind string, spec map[string]any, out any) (known bool, err error) {
	resp, err := b.put(ctx, "POST", "/apis/"+version+"/"+strings.ToLower(kind)+"s", map[string]any{"apiVersion": version, "kind": kind, "spec": spec})
	if err != nil {
		return false, err
	}
	return (resp.Status == http.StatusCreated || resp.Status == http.StatusOK) && json.Unmarshal(resp.Body, out) == nil, nil
}

func (b *kubernetesBackend) checkUser(ctx context.Context) backend.Finding {
	f := backend.Finding{What: "credentials", OK: true, Detail: "the cluster does not say whose they are"}
	var answer struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	known, err := b.review(ctx, "authentication.k8s.io/v1", "SelfSubjectReview", map[string]any{}, &answer)
	switch {
	case err != nil:
		return backend.Failed(f.What, err)
	case known && answer.Status.UserInfo.Username != "":
		f.Detail = "those of " + answer.Status.UserInfo.Username
	}
	return f
}
