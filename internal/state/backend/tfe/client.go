package tfe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
)

// A Client sends requests to the API of one host. Its methods may be called concurrently.
type Client struct {
	Host         string // as in the configuration
	Organization string

	base  *url.URL // ends with a slash
	token string
	kind  string // "remote" or "cloud"
	http  *rest.Client
	block bool // the configuration contains a token
}

// mediaType is the media type of JSON:API documents.
const mediaType = "application/vnd.api+json"

func newClient(kind, host, organization, token string, base *url.URL, s backend.Services) *Client {
	return &Client{
		Host: host, Organization: organization, base: base, token: token, kind: kind,
		http: &rest.Client{HTTP: &http.Client{Transport: s.Transport}, Retries: 5, Sleep: s.Sleep, Now: s.Now},
	}
}

// A resource is an object of a JSON:API document.
type resource struct {
	ID            string              `json:"id"`
	Type          string              `json:"type"`
	Attributes    json.RawMessage     `json:"attributes"`
	Relationships map[string]relation `json:"relationships"`
}

type relation struct {
	Data json.RawMessage `json:"data"`
}

// one returns the ID of a relation to one resource; "" for none.
func (r resource) one(name string) string {
	var ref struct{ ID string }
	if json.Unmarshal(r.Relationships[name].Data, &ref) != nil {
		return ""
	}
	return ref.ID
}

// attributes decodes the attributes of a resource into v. Missing attributes are unchanged
// in v.
func (r resource) attributes(v any) error {
	if len(r.Attributes) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Attributes, v); err != nil {
		return fmt.Errorf("the attributes of %s %s are not of the expected form", r.Type, r.ID)
	}
	return nil
}

// included returns a resource that is included in a document, by its ID.
func included(all []resource, id string) (resource, bool) {
	for _, r := range all {
		if r.ID == id {
			return r, true
		}
	}
	return resource{}, false
}

// A StatusError is an unsuccessful response.
type StatusError struct {
	Status int
	Title  string // the service's short description
	Detail string
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("the service answered with %d %s", e.Status, http.StatusText(e.Status))
	for _, more := range []string{e.Detail, e.Title} {
		if more != "" && !strings.EqualFold(more, http.StatusText(e.Status)) {
			return s + ": " + strings.TrimRight(more, ".")
		}
	}
	return s
}

// IsStatus reports whether an error is a response with a status.
func IsStatus(err error, status int) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == status
}

// call is one request to the API.
type call struct {
	method string
	path   string // below the base; segments are escaped
	query  url.Values
	body   any // encoded as JSON; nil for none
	// repeat means that sending the request twice has the same effect as sending it once.
	repeat bool
}

// at joins and escapes segments of a path.
func at(parts ...string) string {
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

func (c *Client) send(ctx context.Context, q call) (*rest.Response, error) {
	u := *c.base
	text := strings.TrimSuffix(u.EscapedPath(), "/") + "/" + q.path
	var err error
	if u.Path, err = url.PathUnescape(text); err != nil {
		return nil, err
	}
	u.RawPath, u.RawQuery = text, q.query.Encode()
	h := http.Header{"Accept": {mediaType}, "Authorization": {"Bearer " + c.token}}
	if c.kind == cloudName {
		h.Set("X-Terraform-Integration", cloudName)
	}
	var body []byte
	if q.body != nil {
		if body, err = json.Marshal(q.body); err != nil {
			return nil, err
		}
		h.Set("Content-Type", mediaType)
	}
	resp, err := c.http.Do(ctx, rest.Request{Method: q.method, URL: u.String(), Header: h, Body: body, Repeat: q.repeat || q.method == "GET"})
	if err != nil {
		return nil, err
	}
	if resp.Status >= 300 {
		return resp, statusError(resp)
	}
	return resp, nil
}

func statusError(resp *rest.Response) *StatusError {
	e := &StatusError{Status: resp.Status}
	var doc struct {
		Errors []struct{ Title, Detail string }
	}
	if json.Unmarshal(resp.Body, &doc) == nil && len(doc.Errors) > 0 {
		e.Title, e.Detail = rest.Line([]byte(doc.Errors[0].Title)), rest.Line([]byte(doc.Errors[0].Detail))
	}
	return e
}

// document requests one document. It returns its data and the included resources.
func (c *Client) document(ctx context.Context, q call) (data resource, also []resource, err error) {
	resp, err := c.send(ctx, q)
	if err != nil || len(resp.Body) == 0 {
		return resource{}, nil, err
	}
	var doc struct {
		Data     resource
		Included []resource
	}
	if err := json.Unmarshal(resp.Body, &doc); err != nil {
		return resource{}, nil, fmt.Errorf("the answer of %s is not a document of the expected form", c.Host)
	}
	return doc.Data, doc.Included, nil
}

// pages requests all pages of a list.
func (c *Client) pages(ctx context.Context, path string, query url.Values) ([]resource, error) {
	var out []resource
	if query == nil {
		query = url.Values{}
	}
	query.Set("page[size]", "100")
	for page := 1; page > 0; {
		query.Set("page[number]", strconv.Itoa(page))
		resp, err := c.send(ctx, call{method: "GET", path: path, query: query})
		if err != nil {
			return nil, err
		}
		var doc struct {
			Data []resource
			Meta struct {
				Pagination struct {
					Next *int `json:"next-page"`
				}
			}
		}
		if err := json.Unmarshal(resp.Body, &doc); err != nil {
			return nil, fmt.Errorf("the answer of %s is not a list of the expected form", c.Host)
		}
		out = append(out, doc.Data...)
		next := doc.Meta.Pagination.Next
		if next == nil || *next <= page {
			break
		}
		page = *next
	}
	return out, nil
}

// blob sends a request to an address that the service returned.
func (c *Client) blob(ctx context.Context, method, address string, body []byte) (*rest.Response, error) {
	return c.transfer(ctx, address, rest.Request{Method: method, Body: body})
}

// transfer sends a request to an address that the service returned. It includes the token
// only if the address is on the service's own host.
func (c *Client) transfer(ctx context.Context, address string, r rest.Request) (*rest.Response, error) {
	u, err := c.base.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != c.base.Scheme || u.Host == "" {
		return nil, errors.New("the service gave an address that is none of https")
	}
	h := http.Header{}
	if u.Host == c.base.Host {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if r.Body != nil || r.Content != nil {
		h.Set("Content-Type", "application/octet-stream")
	}
	r.URL, r.Header, r.Repeat = u.String(), h, true
	resp, err := c.http.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if resp.Status >= 300 {
		return resp, statusError(resp)
	}
	return resp, nil
}

// explain returns the error of a failed request, with the affected argument.
func (c *Client) explain(err error) error {
	if err == nil {
		return nil
	}
	var known *backend.Error
	var locked *backend.LockedError
	if errors.As(err, &known) || errors.As(err, &locked) {
		return err
	}
	out := &backend.Error{Answer: c.Host + ": " + strings.TrimPrefix(err.Error(), c.Host+": "), Err: err}
	var status *StatusError
	if !errors.As(err, &status) {
		out.Argument, out.Advice = "hostname", rest.Reach(err, "SSL_CERT_FILE", "Check that the host is right and that it can be reached from here, through its proxy if there is one.")
		return out
	}
	switch {
	case status.Status == http.StatusUnauthorized && c.block:
		out.Argument, out.Advice = "token", "The host does not accept this token: it may be expired, revoked or of another host. Better than in the block it is kept by \"terrace login "+c.Host+"\" or in "+TokenVariable(c.Host)+"."
	case status.Status == http.StatusUnauthorized:
		out.Argument, out.Advice = "hostname", "The host does not accept the token that was found for it: run \"terrace login "+c.Host+"\", or look at "+TokenVariable(c.Host)+" and the credentials of the CLI configuration."
	case status.Status == http.StatusForbidden:
		out.Argument, out.Advice = "organization", "The token is accepted but may not do this: ask an owner of the organization for the permission."
	case status.Status == http.StatusNotFound:
		out.Argument, out.Advice = "organization", "It is not there, or this token may not see it."
	case status.Status >= 500:
		out.Advice = "The service failed; try again later."
	default:
		out.Advice = "What the service answered says what it does not accept."
	}
	return out
}

// TokenVariable returns the environment variable for the token of a host.
func TokenVariable(host string) string {
	host, _, _ = strings.Cut(host, ":")
	return "TF_TOKEN_" + strings.ReplaceAll(strings.ReplaceAll(host, "-", "__"), ".", "_")
}
