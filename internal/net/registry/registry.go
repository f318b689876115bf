// Package registry speaks with the services of hosts that modules and providers
// come from: service discovery, the module and provider registry protocols, and
// credentials.
//
// Main type: Client. The one rule: an access token is sent to the host that it
// is for and to the places that this host names as its services, nowhere else.
//
// The protocols are those of the OpenTofu documentation: "Remote Service
// Discovery", "Module Registry Protocol", "Provider Registry Protocol".
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

	// languageVersion is what we say that we are, so that registries know what
	// we understand.
	languageVersion = "1.12.6"
)

// A Client asks services. Its methods may be called concurrently. A host is asked for its
// services until it answers, and once then.
type Client struct {
	HTTP   *transfer.Client
	Config *cliconfig.Config // hosts, credentials, retries and timeout; nil means the defaults
	// Run starts a credentials helper; nil: helpers are not asked.
	Run        func(context.Context, sys.Command) error
	Env        sys.Env  // of helpers
	WorkDir    string   // of helpers
	HelperDirs []string // where helpers are looked for, before PATH
	// Here is the host that the Standins stand for, asked when one is needed: that of
	// the service which keeps the state of the folder; "" for none. nil: there never is one.
	Here func() string

	hosts  parallel.Cache[string, hostServices]
	tokens parallel.Cache[string, tokenAnswer]
	mu     sync.Mutex
	slow   *transfer.Client // HTTP with the settings for registries
}

type hostServices struct {
	base *url.URL
	m    map[string]any
	err  error
}

// A ServiceError says that a host does not have a service.
type ServiceError struct {
	Host    string // as shown
	Service string
	Kind    string // e.g. "a provider registry"
}

func (e *ServiceError) Error() string {
	return fmt.Sprintf("host %s does not offer %s", e.Host, e.Kind)
}

// http is the client for small requests.
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

// Standins are names of hosts in addresses of modules and providers that stand for the
// service which keeps the state, so that one configuration serves several of them.
var Standins = []string{"localterraform.com", "localtofu.com"}

// normalHost is a host name for comparison: lower case, in punycode.
func normalHost(host string) (string, error) {
	h, err := svchost.ForComparison(host)
	if err != nil {
		return "", fmt.Errorf("%q is not a host name: %w", host, err)
	}
	return string(h), nil
}

// host is the host that is asked in place of the one that an address names.
func (c *Client) host(name string) (string, error) {
	h, err := normalHost(name)
	if err == nil && c.Here != nil && slices.Contains(Standins, h) {
		if here := c.Here(); here != "" {
			return normalHost(here)
		}
	}
	return h, err
}

// Service is the base URL of a service, such as "providers.v1", with a slash at
// its end. It fails with a *ServiceError if the host does not have it.
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

// discover asks a host for its services, unless the settings name them. The answer is kept; a
// failure is not.
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

// fewRedirects is the client for discovery, which follows three redirects.
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

// get asks a service and decodes its answer.
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

// ErrNotFound is wrapped by errors about what a registry does not have.
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

// tokenVariable is how a host name is written in TF_TOKEN_*.
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
