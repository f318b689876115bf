package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
)

// A Service describes an object store: its names, and its advice to users.
type Service struct {
	Name      string // in messages, such as "COS"
	Prefix    string // the prefix of its headers and permissions, such as "cos"
	ACLHeader string // the header with the ACL of a new object, such as "X-Cos-Acl"

	ListPermission string // the permission to list a bucket, without the prefix
	Permissions    string // all permissions that the backend needs, for a message

	HostArgument string // the argument that determines the host, for messages if it is unreachable
	HostAdvice   string
	BucketAdvice string // advice if there is no such bucket
	KeyArgument  string // the argument for messages about wrong keys
	KeyAdvice    string
}

// A Vendor signs requests to a service and contains its rules for checksums. Its methods
// may be called concurrently.
type Vendor interface {
	// Credentials returns the current credentials.
	Credentials(ctx context.Context) (Credentials, error)
	// Sign adds a signature to the headers of a request.
	Sign(r *http.Request, c Credentials)
	// Checksum returns the header of a new object with the MD5 sum of its content.
	Checksum(sum [md5.Size]byte) (header, value string)
	// Verify returns an error if the headers of an object do not contain the MD5 sum of its
	// content, in hexadecimal digits.
	Verify(key string, header http.Header, sum string) error
}

// A Client sends the requests of one bucket. Its methods may be called concurrently.
type Client struct {
	Service Service
	Vendor  Vendor
	Layout  Layout
	Bucket  string
	Address string // of the bucket, without a final slash
	Encrypt bool   // the service encrypts new objects with AES256
	ACL     string // of new objects; "" means the bucket's
	HTTP    *rest.Client
}

// Connect creates the HTTP client. timeout is the time limit of one request.
func (c *Client) Connect(s backend.Services, timeout time.Duration) {
	c.HTTP = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: timeout}, Retries: 4, Sleep: s.Sleep, Now: s.Now, Prepare: c.prepare}
}

// prepare signs an attempt of a request.
func (c *Client) prepare(ctx context.Context, r *http.Request, _ func() [sha256.Size]byte) error {
	keys, err := c.Vendor.Credentials(ctx)
	if err != nil {
		return err
	}
	if keys.Token != "" {
		r.Header.Set("X-"+c.Service.Prefix+"-Security-Token", keys.Token)
	}
	c.Vendor.Sign(r, keys)
	return nil
}

func (c *Client) url(key string) string {
	return c.Address + (&url.URL{Path: "/" + key}).EscapedPath()
}

// do sends a request. A response with any status is not an error.
func (c *Client) do(ctx context.Context, r rest.Request) (*rest.Response, error) {
	resp, err := c.HTTP.Do(ctx, r)
	if err != nil {
		if e, ok := err.(*backend.Error); ok { // an error of the credentials
			return nil, e
		}
		return nil, &backend.Error{Argument: c.Service.HostArgument, Answer: diag.Reason(err), Advice: rest.Reach(err, "SSL_CERT_FILE", c.Service.HostAdvice), Err: err}
	}
	return resp, nil
}

// get sends a request to the bucket itself.
func (c *Client) get(ctx context.Context, q url.Values, permission string) ([]byte, error) {
	resp, err := c.do(ctx, rest.Request{Method: "GET", URL: c.url("") + "?" + strings.ReplaceAll(q.Encode(), "+", "%20"), Repeat: true})
	if err == nil && resp.Status != http.StatusOK {
		err = c.Refused("", permission, resp)
	}
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Workspaces lists the workspaces, the default one first.
func (c *Client) Workspaces(ctx context.Context) ([]string, error) {
	return c.Layout.workspaces(ctx, c.list)
}

// list returns the names of all objects with a prefix, sorted.
func (c *Client) list(ctx context.Context, prefix string) ([]string, error) {
	return list(prefix, func(q url.Values) ([]byte, error) { return c.get(ctx, q, c.Service.ListPermission) })
}

// Fetch passes the content of an object to take, and returns its MD5 sum in hexadecimal
// digits, or "" if the object does not exist. take is called again if an attempt breaks
// off.
func (c *Client) Fetch(ctx context.Context, key string, take func(io.Reader) error) (sum string, err error) {
	hash := md5.New()
	resp, err := c.do(ctx, rest.Request{Method: "GET", URL: c.url(key), Repeat: true, Into: func(r io.Reader) error {
		hash.Reset()
		return take(backend.Tee(r, hash))
	}})
	switch {
	case err != nil:
		return "", err
	case resp.Status == http.StatusNotFound && !strings.Contains(string(resp.Body), "NoSuchBucket"):
		return "", nil
	case resp.Status != http.StatusOK:
		return "", c.Refused("", "GetObject", resp)
	}
	sum = hex.EncodeToString(hash.Sum(nil))
	return sum, c.Vendor.Verify(key, resp.Header, sum)
}

// Read returns the content of an object, or nil if it does not exist.
func (c *Client) Read(ctx context.Context, key string) ([]byte, error) {
	var all bytes.Buffer
	sum, err := c.Fetch(ctx, key, backend.Fill(&all))
	if err != nil || sum == "" {
		return nil, err
	}
	return append([]byte{}, all.Bytes()...), nil
}

// Put replaces an object. A response with any status is not an error. If more contains
// headers, they are conditions, and the request is sent only once.
func (c *Client) Put(ctx context.Context, key string, t *backend.Text, more http.Header) (*rest.Response, error) {
	name, value := c.Vendor.Checksum(t.MD5())
	h := http.Header{"Content-Type": {"application/json"}}
	h.Set(name, value)
	if c.ACL != "" {
		h.Set(c.Service.ACLHeader, c.ACL)
	}
	if c.Encrypt {
		h.Set("X-"+c.Service.Prefix+"-Server-Side-Encryption", "AES256")
	}
	for name, values := range more {
		h[name] = values
	}
	return c.do(ctx, rest.Request{Method: "PUT", URL: c.url(key), Header: h, Content: t, Repeat: len(more) == 0})
}

// Write replaces an object. summary is the summary of an error.
func (c *Client) Write(ctx context.Context, key string, t *backend.Text, summary string) error {
	resp, err := c.Put(ctx, key, t, nil)
	if err == nil && resp.Status != http.StatusOK {
		err = c.Refused(summary, "PutObject", resp)
	}
	return err
}

// Remove deletes an object, if it exists.
func (c *Client) Remove(ctx context.Context, key string) error {
	resp, err := c.do(ctx, rest.Request{Method: "DELETE", URL: c.url(key), Repeat: true})
	if err == nil && resp.Status != http.StatusOK && resp.Status != http.StatusNoContent && resp.Status != http.StatusNotFound {
		err = c.Refused("", "DeleteObject", resp)
	}
	return err
}

// Refused returns the error for an unsuccessful response. permission is the required
// permission, without the prefix.
func (c *Client) Refused(summary, permission string, resp *rest.Response) error {
	s := &c.Service
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: s.HostArgument, Answer: answer, Advice: advice}
	}
	e := &backend.Error{Summary: summary, Argument: "bucket", Answer: fmt.Sprintf("%s answered %d %s", s.Name, resp.Status, http.StatusText(resp.Status))}
	var said struct{ Code, Message, Endpoint string }
	if xml.Unmarshal(resp.Body, &said) == nil && said.Code != "" {
		e.Answer += ": " + said.Code + ": " + rest.Line([]byte(said.Message))
	}
	switch {
	case said.Code == "NoSuchBucket":
		e.Advice = s.BucketAdvice
	case said.Code == "InvalidAccessKeyId", said.Code == "SignatureDoesNotMatch":
		e.Argument, e.Advice = s.KeyArgument, s.KeyAdvice
	case said.Code == "RequestTimeTooSkewed", said.Code == "RequestIsExpired":
		e.Advice = "Check the clock of this machine."
	case s.HostArgument == "endpoint" && said.Endpoint != "" && strings.Contains(said.Message, "endpoint"):
		e.Argument, e.Advice = "endpoint", fmt.Sprintf("The bucket is in another region: set endpoint to %s, or the region of it.", said.Endpoint)
	case resp.Status == http.StatusForbidden:
		e.Permission = s.Prefix + ":" + permission
		e.Advice = fmt.Sprintf("The account needs the permission %s; for all of this backend: %s.", e.Permission, s.Permissions)
	default:
		e.Advice = backend.AdviceOn(resp.Status)
	}
	return e
}

// Check reports the bucket's conditional writes, versioning and encryption for
// backend.Checker.
func (c *Client) Check(ctx context.Context, report func(backend.Finding)) {
	report(backend.Finding{What: "conditional writes", OK: true, Detail: "the service has none: the state is read before each write"})
	body, err := c.get(ctx, url.Values{"versioning": {""}}, "GetBucketVersioning")
	if err != nil {
		report(backend.Failed("versioning", err))
	} else {
		var v struct{ Status string }
		_ = xml.Unmarshal(body, &v) // a missing setting is off
		backend.CheckVersioning(v.Status == "Enabled", report)
	}
	report(backend.Finding{What: "encryption at rest", OK: c.Encrypt, Detail: map[bool]string{true: "AES256", false: "encrypt is false"}[c.Encrypt]})
}
