// Package registry is the client of hosts of modules and providers: service discovery, the module
// and provider registry protocols, and credentials.
//
// Main type: Client. The one rule: an access token is only sent to its host and to the URLs of
// that host's services.
//
// OpenTofu documents the protocols: "Remote Service Discovery", "Module Registry Protocol" and
// "Provider Registry Protocol".
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/opentofu/svchost"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
)

const (
	maxDiscovery = 1 << 20
	maxAnswer    = 32 << 20
	maxRedirects = 3

	// languageVersion is the OpenTofu version sent to registries in requests, so that they return
	// compatible versions.
	languageVersion = "1.12.6"
)

// A Client sends requests to services. Its methods may be called concurrently. The services of a
// host are cached; a failed request is not.
type Client struct {
	HTTP   *transfer.Client
	Config *cliconfig.Config // hosts, credentials, retries and timeout; nil means the defaults
	// Run starts a credentials helper. nil means that helpers are not run.
	Run        func(context.Context, sys.Command) error
	Env        sys.Env  // environment of helpers
	WorkDir    string   // working directory of helpers
	HelperDirs []string // directories that are searched for helpers, before PATH
	// Here returns the host that replaces a host in Standins: the host of the service that stores
	// the state of the directory, or "" for none. nil means that there is never one.
	Here func() string

	hosts  parallel.Cache[string, hostServices]
	tokens parallel.Cache[string, tokenAnswer]
	mu     sync.Mutex
	slow   *transfer.Client // HTTP with the retries and timeout for registries
}

type hostServices struct {
	base *url.URL
	m    map[string]any
	err  error
}

// A ServiceError means that a host does not offer a service.
type ServiceError struct {
	Host    string // display form of the host name
	Service string
	Kind    string // description of the service, such as "a provider registry"
}

func (e *ServiceError) Error() string {
	return fmt.Sprintf("host %s does not offer %s", e.Host, e.Kind)
}

// http returns the client for small requests.
func (c *Client) http() *transfer.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slow == nil {
		c.slow = c.HTTP
		if c.slow == nil {
			c.slow = &transfer.Client{}
		}
		if c.Config != nil {
			c.slow = c.slow.With(c.Config.Registry.Retries, c.Config.Registry.Timeout)
		}
	}
	return c.slow
}

// Standins are host names in addresses of modules and providers that are replaced by the host of
// the service that stores the state. One configuration can thus be used with several services.
var Standins = []string{"localterraform.com", "localtofu.com"}

// normalHost returns the normalized form of a host name: lower case, in punycode.
func normalHost(host string) (string, error) {
	h, err := svchost.ForComparison(host)
	if err != nil {
		return "", fmt.Errorf("%q is not a host name: %w", host, err)
	}
	return string(h), nil
}

// host returns the normalized host that is used for a host name in an address.
func (c *Client) host(name string) (string, error) {
	h, err := normalHost(name)
	if err == nil && c.Here != nil && slices.Contains(Standins, h) {
		if here := c.Here(); here != "" {
			return normalHost(here)
		}
	}
	return h, err
}

// Service returns the base URL of a service such as "providers.v1", which ends with a slash. If
// the host does not offer the service, the error is a *ServiceError.
func (c *Client) Service(ctx context.Context, host, service, kind string) (*url.URL, error) {
	hs, err := c.discover(ctx, host)
	if err != nil {
		return nil, err
	}
	missing := &ServiceError{Host: svchost.ForDisplay(host), Service: service, Kind: kind}
	text, ok := hs.m[service].(string)
	if !ok || text == "" {
		return nil, missing
	}
	u, err := hs.base.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("host %s says that its service %s is at %q, which is not an http or https URL", missing.Host, service, text)
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u, nil
}

// discover returns the services of a host, from the settings or by a request. It caches results,
// but not failures.
func (c *Client) discover(ctx context.Context, host string) (hostServices, error) {
	name, err := c.host(host)
	if err != nil {
		return hostServices{}, err
	}
	hs, err := c.hosts.Do(ctx, name, func() (hostServices, bool) {
		base := &url.URL{Scheme: "https", Host: name, Path: "/.well-known/terraform.json"}
		if c.Config != nil {
			if m, ok := c.Config.Hosts[name]; ok {
				return hostServices{base: base, m: m}, true
			}
		}
		hs := c.ask(ctx, name, base)
		return hs, hs.err == nil
	})
	if err != nil {
		return hostServices{}, fmt.Errorf("could not connect to %s: %w", svchost.ForDisplay(name), err)
	}
	return hs, hs.err
}

func (c *Client) ask(ctx context.Context, name string, base *url.URL) hostServices {
	fail := func(format string, args ...any) hostServices {
		return hostServices{err: fmt.Errorf("could not connect to %s: "+format, append([]any{svchost.ForDisplay(name)}, args...)...)}
	}
	h := http.Header{"Accept": {"application/json"}}
	if err := c.authorize(ctx, name, h); err != nil {
		return fail("%w", err)
	}
	body, resp, err := c.fewRedirects().Get(ctx, base.String(), h, maxDiscovery)
	var se *transfer.StatusError
	if errors.As(err, &se) && se.Code == http.StatusNotFound {
		return hostServices{base: base} // a host without services
	}
	if err != nil {
		return fail("failed to request discovery document: %w", err)
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fail("the discovery document is not of type application/json but %q", resp.Header.Get("Content-Type"))
	}
	out := hostServices{base: resp.Request.URL}
	if err := json.Unmarshal(body, &out.m); err != nil {
		return fail("the discovery document is not valid JSON: %w", err)
	}
	return out
}

// fewRedirects returns the client for discovery, which follows at most three redirects.
func (c *Client) fewRedirects() *transfer.Client {
	t := *c.http()
	h := http.Client{}
	if t.HTTP != nil {
		h = *t.HTTP
	}
	h.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		}
		if r.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
			return errors.New("refusing to be sent from https to http")
		}
		return nil
	}
	t.HTTP = &h
	return &t
}

// get sends a request to a service and decodes the response.
func (c *Client) get(ctx context.Context, host string, u *url.URL, out any) (*http.Response, error) {
	h := http.Header{"Accept": {"application/json"}, "X-Terraform-Version": {languageVersion}}
	if err := c.authorize(ctx, host, h); err != nil {
		return nil, err
	}
	body, resp, err := c.http().Get(ctx, u.String(), h, maxAnswer)
	if err != nil {
		return resp, c.explain(host, err)
	}
	if resp.StatusCode == http.StatusNoContent || out == nil || len(body) == 0 {
		return resp, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return resp, fmt.Errorf("the answer of %s is not valid JSON of the expected form: %w", transfer.Public(u), err)
	}
	return resp, nil
}

// ErrNotFound is wrapped by errors about missing modules, providers and versions.
var ErrNotFound = errors.New("not found")

func (c *Client) explain(host string, err error) error {
	var se *transfer.StatusError
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code {
	case http.StatusNotFound:
		return fmt.Errorf("%w (%s)", ErrNotFound, se)
	case http.StatusUnauthorized, http.StatusForbidden:
		if _, ok := c.Config.Token(host); ok {
			return fmt.Errorf("%w: the host %s does not accept the credentials that are configured for it", err, host)
		}
		return fmt.Errorf("%w: the host %s wants credentials; run \"terrace login %s\" or set TF_TOKEN_%s", err, host, host, tokenVariable(host))
	}
	return err
}

// tokenVariable returns a host name in the form that TF_TOKEN_* variables use.
func tokenVariable(host string) string {
	return strings.ReplaceAll(strings.ReplaceAll(host, "-", "__"), ".", "_")
}

func join(base *url.URL, parts ...string) *url.URL {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	out := *base
	out.RawPath = ""
	out.Path = base.Path + path.Join(parts...)
	if raw := base.EscapedPath() + strings.Join(escaped, "/"); raw != out.Path {
		out.RawPath = raw
	}
	return &out
}
