// Package rest sends HTTP requests for backends. It repeats requests, waits between attempts as
// the service requests, and limits the size of responses.
//
// Main types: Client, Request and Response. The one rule: a request is only repeated if that is
// harmless (Request.Repeat), or if the service reported that it did nothing (429, 503 with
// Retry-After). Any other result is final.
package rest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Client sends requests. It is safe for concurrent use.
type Client struct {
	HTTP    *http.Client
	Retries int           // maximum number of repetitions; 0 means none
	Min     time.Duration // the first wait; 0 means 500 ms
	Max     time.Duration // the longest wait; 0 means 20 s
	// Sleep waits for d. If the context ends first, it returns the context's error.
	Sleep func(ctx context.Context, d time.Duration) error
	Now   func() time.Time
	// Prepare modifies each attempt before it is sent, for example to sign it. sum returns the
	// checksum of the body. nil means no change.
	Prepare func(ctx context.Context, r *http.Request, sum func() [sha256.Size]byte) error

	ahead   atomic.Pointer[time.Duration] // of this machine's clock, according to the last response
	patient atomic.Pointer[http.Client]   // client for large bodies
}

// Clock returns how far the clock of this machine is ahead of the service's clock, according to
// the last response. known is false if no response contained a time.
func (c *Client) Clock() (ahead time.Duration, known bool) {
	if d := c.ahead.Load(); d != nil {
		return *d, true
	}
	return 0, false
}

// Unprepared returns a client like c without Prepare.
func (c *Client) Unprepared() *Client {
	return &Client{HTTP: c.HTTP, Retries: c.Retries, Min: c.Min, Max: c.Max, Sleep: c.Sleep, Now: c.Now}
}

// Once wraps a Client.Prepare so that errors for which lasting returns true are Final.
func Once(prepare func(context.Context, *http.Request, func() [sha256.Size]byte) error, lasting func(error) bool) func(context.Context, *http.Request, func() [sha256.Size]byte) error {
	return func(ctx context.Context, r *http.Request, sum func() [sha256.Size]byte) error {
		err := prepare(ctx, r, sum)
		if err != nil && lasting(err) {
			err = Final(err)
		}
		return err
	}
}

// A Request is an HTTP request.
type Request struct {
	Method string
	URL    string
	Header http.Header // nil means none
	Body   []byte      // nil means none
	// Content is a large body, instead of Body.
	Content Content
	// Into reads the body of a successful response to its end; the Response then has no body.
	// If the response breaks off and the request is repeated, Into is called again.
	Into func(body io.Reader) error
	// Repeat means that sending the request twice has the same effect as sending it once. This
	// does not apply to a conditional write: its second attempt may fail because the first
	// succeeded.
	Repeat bool
	// Most is the maximum size of the response in bytes; 0 means 1 GiB.
	Most int64
}

// A Content is a body that is not in memory.
type Content interface {
	Size() int64
	SHA256() [sha256.Size]byte
	Open() io.ReadCloser // starts at the beginning
}

// A Response is a response that was read completely.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	// Repeated is the number of earlier attempts, whose results may be unknown.
	Repeated int
}

// Do sends a request. A response with any status is not an error. An error means that there was
// no response. It contains the host, but no secrets of the URL.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if r.Into == nil {
		return c.repeat(ctx, r)
	}
	take, given := r.Into, false
	r.Into = func(body io.Reader) error {
		given = true
		return take(body)
	}
	resp, err := c.repeat(ctx, r)
	if err == nil && given && resp.Status/100 != 2 { // results of earlier attempts do not count
		err = take(http.NoBody)
	}
	return resp, err
}

// repeat sends a request until it has a final response.
func (c *Client) repeat(ctx context.Context, r Request) (*Response, error) {
	for try := 0; ; try++ {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := store.Fenced(ctx); err != nil {
				return nil, err
			}
		}
		resp, err := c.once(ctx, r)
		if err == nil {
			resp.Repeated = try
		}
		if ctx.Err() != nil || try >= c.Retries || !again(r, resp, err) || try > 0 && late(err) {
			return resp, err
		}
		if c.Sleep(ctx, c.pause(try, resp)) != nil {
			return resp, err
		}
	}
}

func again(r Request, resp *Response, err error) bool {
	if err != nil {
		return r.Repeat && !final(err)
	}
	switch resp.Status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		return r.Repeat || resp.Header.Get("Retry-After") != ""
	case http.StatusNotImplemented:
		return false
	}
	return r.Repeat && (resp.Status >= 500 || resp.Status == http.StatusRequestTimeout)
}

// late reports whether an error is a timeout. Each such attempt takes long, so that it is only
// repeated once.
func late(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// Final marks an error of Prepare that another attempt would return again, such as an account
// without access.
func Final(err error) error { return finalError{err} }

type finalError struct{ error }

func (f finalError) Unwrap() error { return f.error }

// Lasting reports whether a service cannot be reached because of settings or certificates.
func Lasting(err error) bool { return err != nil && final(err) }

// final reports whether another attempt would fail for the same reason: settings or
// certificates, not the network or the present state of the service.
func final(err error) bool {
	var f finalError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	return errors.Is(err, ErrPage) || errors.Is(err, ErrProxy) || errors.Is(err, http.ErrSchemeMismatch) ||
		Refused(err) || errors.As(err, &f) || errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid) || errors.As(err, &record)
}

// pause returns the time to wait before the next attempt: the time that the service requested,
// or otherwise a time that doubles with each attempt. Up to half of it is subtracted randomly,
// so that many clients spread out.
func (c *Client) pause(try int, resp *Response) time.Duration {
	least, most := c.Min, c.Max
	if least == 0 {
		least = 500 * time.Millisecond
	}
	if most == 0 {
		most = 20 * time.Second
	}
	if resp != nil {
		if v := resp.Header.Get("Retry-After"); v != "" {
			if n, err := strconv.Atoi(v); err == nil && n >= 0 {
				return min(time.Duration(n)*time.Second, 2*time.Minute)
			}
			if at, err := http.ParseTime(v); err == nil {
				return min(max(at.Sub(c.Now()), 0), 2*time.Minute)
			}
		}
	}
	d := min(least<<min(try, 20), most)
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}

func (c *Client) once(ctx context.Context, r Request) (*Response, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	q := &quiet{longest: c.quiet(), size: r.size()}
	ctx, end := store.Request(ctx)
	defer end()
	ctx, done := q.within(ctx)
	defer done()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, fmt.Errorf("the address is not valid")
	}
	if r.Content != nil {
		req.Body = http.NoBody
		if req.ContentLength = r.Content.Size(); req.ContentLength > 0 {
			req.GetBody = func() (io.ReadCloser, error) { return r.Content.Open(), nil }
			req.Body = r.Content.Open()
		}
	}
	for k, vs := range r.Header {
		req.Header[k] = vs
	}
	if c.Prepare != nil {
		if err := c.Prepare(ctx, req, r.sum); err != nil {
			return nil, err
		}
	}
	client := c.HTTP
	if q.size > large && q.longest > 0 {
		client = c.forLarge()
		q.sending(req)
	}
	resp, err := client.Do(req)
	if err != nil && errors.Is(context.Cause(ctx), store.ErrUnanswered) {
		err = store.ErrUnanswered
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.URL.Host, Plain(q.cause(err)))
	}
	defer resp.Body.Close()
	q.receiving(resp)
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		d := c.Now().Sub(at)
		c.ahead.Store(&d)
	}
	if resp.StatusCode == http.StatusProxyAuthRequired { // only a proxy returns this status
		return nil, fmt.Errorf("%s: %w: it answered 407 %s", req.URL.Host, ErrProxy, http.StatusText(http.StatusProxyAuthRequired))
	}
	most := r.Most
	if most == 0 {
		most = 1 << 30
	}
	if r.Into != nil && resp.StatusCode/100 == 2 {
		return into(r.Into, resp, most, q)
	}
	var answer bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= most && r.Method != http.MethodHead { // avoids copying a large state repeatedly while it arrives
		answer.Grow(int(n) + bytes.MinRead)
	}
	_, err = answer.ReadFrom(io.LimitReader(resp.Body, most+1))
	b := answer.Bytes()
	if b == nil {
		b = []byte{} // not nil: a response with an empty body
	}
	if err != nil {
		return nil, brokeOff(req, q.cause(err))
	}
	if int64(len(b)) > most {
		return nil, tooLarge(req, most)
	}
	if resp.StatusCode/100 == 2 && (page(b) || r.Method == http.MethodHead && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")) {
		return nil, fmt.Errorf("%s: %w", resp.Request.URL.Host, ErrPage)
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: b}, nil
}

// sum returns the checksum of the body.
func (r Request) sum() [sha256.Size]byte {
	if r.Content != nil {
		return r.Content.SHA256()
	}
	return sha256.Sum256(r.Body)
}

// size returns the size of the body in bytes.
func (r Request) size() int64 {
	if r.Content != nil {
		return r.Content.Size()
	}
	return int64(len(r.Body))
}

// into passes the body of a response to take while it arrives.
func into(take func(io.Reader) error, resp *http.Response, most int64, q *quiet) (*Response, error) {
	limited := &io.LimitedReader{R: resp.Body, N: most + 1}
	body := bufio.NewReaderSize(limited, 64<<10)
	if head, _ := body.Peek(512); page(head) { // take reports other errors in the body
		return nil, fmt.Errorf("%s: %w", resp.Request.URL.Host, ErrPage)
	}
	content := io.Reader(body)
	if n := resp.ContentLength; n > 0 {
		content = sized{body, n}
	}
	if err := take(content); err != nil {
		return nil, brokeOff(resp.Request, q.cause(err))
	}
	if limited.N <= 0 {
		return nil, tooLarge(resp.Request, most)
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: []byte{}}, nil
}

// sized is a body with an announced length.
type sized struct {
	*bufio.Reader
	size int64
}

// Size returns the size of the body in bytes.
func (s sized) Size() int64 { return s.size }

func brokeOff(r *http.Request, err error) error {
	return fmt.Errorf("%s: the answer broke off: %w", r.URL.Host, Plain(err))
}

func tooLarge(r *http.Request, most int64) error {
	return fmt.Errorf("%s: the answer is larger than %d bytes", r.URL.Host, most)
}

// Plain returns the error of a request or its transport without the URL, which may contain
// credentials. If a proxy refuses a tunnel, the error is only the text of the status.
func Plain(err error) error {
	if u, ok := err.(*url.Error); ok {
		err = u.Err
	}
	if text := Cause(err); text != "" {
		return plainError{text, err}
	}
	text := err.Error()
	for status := 300; status < 600; status++ {
		if text == http.StatusText(status) && text != "" {
			return fmt.Errorf("%w: it answered %d %s", ErrProxy, status, text)
		}
	}
	return err
}

// Cause returns the cause of a connection error without wrapping text; "" if it is not a
// connection error.
func Cause(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "the proxy cannot be reached, " + innermost(op)
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &unknown): // its own text lists failed attempts
		return "certificate signed by unknown authority"
	case late(err):
		return "no answer in time"
	case errors.As(err, &cert):
		return strings.TrimPrefix(cert.Err.Error(), "x509: ")
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "what answers there does not speak TLS"
	case errors.As(err, &op):
		return innermost(op)
	}
	return ""
}

// innermost returns the system's error of a connection.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// plainError is an error whose text contains only the cause, without wrapping text.
type plainError struct {
	text string
	error
}

func (t plainError) Error() string { return t.text }
func (t plainError) Unwrap() error { return t.error }

// Line returns the first line of a text response, truncated for a message.
func Line(b []byte) string {
	if page(b) {
		return "a page of HTML, which a proxy may have sent"
	}
	s, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// page reports whether a body is an HTML page.
func page(b []byte) bool {
	head := strings.ToLower(string(b[:min(len(b), 512)]))
	return strings.HasPrefix(strings.TrimSpace(head), "<") && strings.Contains(head, "<html")
}
