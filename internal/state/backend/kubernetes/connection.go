package kubernetes

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
)

// A connection sends requests to one cluster as one user. Its methods may be called
// concurrently.
type connection struct {
	access *access
	s      backend.Services

	mu     sync.Mutex
	client *rest.Client // nil before its first use, and after its credentials were rejected
	bearer string
	until  time.Time // when the credentials must be renewed; zero: never
}

// send sends a request; its URL is a path. Rejected credentials are renewed once if they
// come from a file or a plugin.
func (c *connection) send(ctx context.Context, r rest.Request) (*rest.Response, error) {
	path := r.URL
	r.URL = c.access.Server + path
	for try := 0; ; try++ {
		client, bearer, err := c.ready(ctx)
		if err != nil {
			return nil, err
		}
		r.Header = c.header(r.Header, bearer)
		resp, err := client.Do(ctx, r)
		if err != nil {
			return nil, &backend.Error{Argument: "host", Answer: diag.Reason(err), Advice: rest.Reach(err, "cluster_ca_certificate", "Check the address of the cluster, its certificate, and that it can be reached from here."), Err: err}
		}
		if resp.Status == http.StatusUnauthorized && try == 0 && (c.access.Exec != nil || c.access.TokenFile != "") {
			c.mu.Lock()
			if c.bearer == bearer {
				c.client = nil
			}
			c.mu.Unlock()
			continue
		}
		return resp, nil
	}
}

func (c *connection) header(h http.Header, bearer string) http.Header {
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	if h.Get("Accept") == "" {
		h.Set("Accept", "application/json")
	}
	h.Set("User-Agent", "Terrace") // the server records who wrote which field
	x := c.access
	switch {
	case !strings.HasPrefix(x.Server, "https://"): // credentials are not sent unencrypted, as with kubectl
	case bearer != "":
		h.Set("Authorization", "Bearer "+bearer)
	case x.User != "" || x.Pass != "":
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(x.User+":"+x.Pass)))
	}
	if x.As.User != "" {
		h.Set("Impersonate-User", x.As.User)
		if x.As.UID != "" {
			h.Set("Impersonate-Uid", x.As.UID)
		}
		h["Impersonate-Group"] = x.As.Groups
		for k, vs := range x.As.Extra {
			h["Impersonate-Extra-"+http.CanonicalHeaderKey(url.PathEscape(k))] = vs
		}
	}
	return h
}

// ready returns a client with valid credentials.
func (c *connection) ready(ctx context.Context) (*rest.Client, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil && (c.until.IsZero() || c.s.Now().Before(c.until)) {
		return c.client, c.bearer, nil
	}
	x := c.access
	tls := backend.TLS{Insecure: x.Insecure, CA: x.CA, Cert: x.Cert, Key: x.Key, ServerName: x.ServerName}
	c.bearer, c.until = x.Token, time.Time{}
	if x.TokenFile != "" {
		b, err := readfile.Whole(x.TokenFile)
		if err != nil {
			return nil, "", &backend.Error{Argument: x.argument, Answer: "the file with the token cannot be read: " + diag.Reason(err)}
		}
		c.bearer, c.until = strings.TrimSpace(string(b)), c.s.Now().Add(time.Minute)
	}
	if x.Exec != nil && c.bearer == "" {
		got, err := c.exec(ctx)
		if err != nil {
			return nil, "", err
		}
		c.bearer, c.until = got.Token, got.ExpirationTimestamp
		if got.ClientCertificateData != "" {
			tls.Cert, tls.Key = got.ClientCertificateData, got.ClientKeyData
		}
	}
	transport, err := c.s.TLSTransport(tls)
	if err != nil {
		return nil, "", &backend.Error{Argument: x.argument, Answer: "the certificates for the cluster cannot be used: " + diag.Reason(err)}
	}
	if x.Proxy != "" {
		proxy, err := url.Parse(x.Proxy)
		if err != nil {
			return nil, "", &backend.Error{Argument: x.argument, Answer: "the proxy-url of the kubeconfig is not valid"}
		}
		transport = transport.Clone()
		transport.Proxy = http.ProxyURL(proxy)
	}
	c.client = &rest.Client{HTTP: &http.Client{Transport: transport}, Retries: 4, Sleep: c.s.Sleep, Now: c.s.Now}
	return c.client, c.bearer, nil
}

// A credential is the result of a plugin.
type credential struct {
	Token                 string
	ClientCertificateData string
	ClientKeyData         string
	ExpirationTimestamp   time.Time
}

// exec runs the plugin. Its output is never shown, because it is secret.
func (c *connection) exec(ctx context.Context) (*credential, error) {
	p := c.access.Exec
	fail := func(format string, args ...any) (*credential, error) {
		return nil, &backend.Error{Argument: c.access.argument, Code: diag.CodeBackendNoCluster, Summary: "No credentials for the cluster", Answer: fmt.Sprintf("the program %q, which gives the credentials, ", p.Command) + fmt.Sprintf(format, args...), Advice: "Run it by hand to see what it lacks."}
	}
	spec := map[string]any{"interactive": false}
	if p.ProvideClusterInfo {
		spec["cluster"] = map[string]any{"server": c.access.Server, "tls-server-name": c.access.ServerName, "insecure-skip-tls-verify": c.access.Insecure, "certificate-authority-data": []byte(c.access.CA), "proxy-url": c.access.Proxy}
	}
	info, err := json.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": "ExecCredential", "spec": spec})
	if err != nil {
		return nil, err
	}
	path := p.Command
	if strings.ContainsRune(path, '/') && !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	var out, errs bytes.Buffer
	err = c.s.Run(ctx, sys.Command{Path: path, Args: p.Args, Dir: c.s.Dir, Env: p.environment(c.s.Env, string(info)), Stdout: &out, Stderr: &errs})
	if err != nil {
		if line := rest.Line(errs.Bytes()); line != "" {
			return fail("failed: %s", line)
		}
		return fail("failed: %s", err)
	}
	var answer struct {
		APIVersion string
		Kind       string
		Status     *credential
	}
	switch err := json.Unmarshal(out.Bytes(), &answer); {
	case err != nil:
		return fail("did not write JSON")
	case answer.Kind != "ExecCredential" || answer.Status == nil:
		return fail("did not write an ExecCredential with a status")
	case answer.APIVersion != p.APIVersion:
		return fail("speaks %q, where %q is configured", answer.APIVersion, p.APIVersion)
	case answer.Status.Token == "" && answer.Status.ClientCertificateData == "":
		return fail("gave neither a token nor a certificate")
	}
	return answer.Status, nil
}
