package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/terrace-iac/terrace/internal/net/transfer"
)

func (c *Client) authorize(h http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" {
		h.Set("Authorization", c.token)
	}
}

// get reads a response. If the registry answers with a challenge, get authenticates and repeats
// the request once. rest is the part of the URL after the repository, or a complete URL.
func (c *Client) get(ctx context.Context, rest string, header http.Header, limit int64) ([]byte, *http.Response, error) {
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	c.authorize(h)
	full := func() string {
		if strings.Contains(rest, "://") {
			return rest
		}
		return c.url(rest)
	}
	body, resp, err := c.HTTP.Get(ctx, full(), h, limit)
	if c.goPlain(err) {
		body, resp, err = c.HTTP.Get(ctx, full(), h, limit)
	}
	var se *transfer.StatusError
	if resp == nil || !errors.As(err, &se) || se.Code != http.StatusUnauthorized {
		return body, resp, err
	}
	if aerr := c.answer(ctx, resp.Header.Values("WWW-Authenticate")); aerr != nil {
		return nil, resp, aerr
	}
	c.authorize(h)
	return c.HTTP.Get(ctx, full(), h, limit)
}

// answer authenticates as the challenges require.
func (c *Client) answer(ctx context.Context, challenges []string) error {
	var creds Credentials
	if c.Credentials != nil {
		var err error
		if creds, err = c.Credentials(ctx, c.Host, c.Repository); err != nil {
			return err
		}
	}
	for _, ch := range challenges {
		scheme, rest, _ := strings.Cut(ch, " ")
		switch strings.ToLower(scheme) {
		case "bearer":
			return c.bearer(ctx, params(rest), creds)
		case "basic":
			if creds.Username == "" {
				return fmt.Errorf("the registry %s wants a user name and password, and there are none for it", c.Host)
			}
			c.set("Basic " + basic(creds))
			return nil
		}
	}
	return fmt.Errorf("the registry %s refuses the request and asks for no kind of credentials that is known", c.Host)
}

func basic(c Credentials) string {
	return base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
}

func (c *Client) set(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
}

// bearer gets a token from the server that the challenge names.
func (c *Client) bearer(ctx context.Context, p map[string]string, creds Credentials) error {
	if creds.AccessToken != "" {
		c.set("Bearer " + creds.AccessToken)
		return nil
	}
	realm, err := url.Parse(p["realm"])
	if err != nil || realm.Host == "" || realm.Scheme != "https" && !(c.isPlain() && realm.Scheme == "http") {
		return fmt.Errorf("the registry %s sends for a token to %q, which is not an https: URL", c.Host, p["realm"])
	}
	q := realm.Query()
	if p["service"] != "" {
		q.Set("service", p["service"])
	}
	scope := p["scope"]
	if scope == "" {
		scope = "repository:" + c.Repository + ":pull"
	}
	q.Set("scope", scope)
	h := http.Header{}
	if creds.Username != "" {
		h.Set("Authorization", "Basic "+basic(creds))
	}
	if creds.RefreshToken != "" {
		q.Set("grant_type", "refresh_token")
		q.Set("refresh_token", creds.RefreshToken)
	}
	realm.RawQuery = q.Encode()
	body, _, err := c.HTTP.Get(ctx, realm.String(), h, 1<<20)
	if err != nil {
		return fmt.Errorf("cannot get a token for %s: %w", c.Host, err)
	}
	var out struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &out); err != nil || out.Token+out.AccessToken == "" {
		return fmt.Errorf("cannot get a token for %s: the answer holds none", c.Host)
	}
	if out.Token == "" {
		out.Token = out.AccessToken
	}
	c.set("Bearer " + out.Token)
	return nil
}

// params parses the key="value" pairs of a challenge.
func params(s string) map[string]string {
	out := make(map[string]string)
	for s != "" {
		key, rest, ok := strings.Cut(s, "=")
		if !ok {
			break
		}
		key = strings.ToLower(strings.Trim(key, " ,"))
		var value string
		if strings.HasPrefix(rest, `"`) {
			value, s, _ = strings.Cut(rest[1:], `"`)
		} else {
			value, s, _ = strings.Cut(rest, ",")
		}
		out[key] = strings.TrimSpace(value)
	}
	return out
}
