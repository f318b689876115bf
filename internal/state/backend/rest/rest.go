// Package rest sends the requests of the backends that speak HTTP: it repeats what
// may be repeated, waits as the service asks, and bounds what it reads.
//
// Main types: Client, Request and Response. The one rule: a request is repeated only
// where that is harmless (Request.Repeat) or the service said that it did nothing
// (429, 503 with Retry-After); what comes back after that is final.
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

// A Client sends requests. Its methods may be called concurrently.
type Client struct {
	HTTP    *http.Client
	Retries int           // how often a request is repeated; 0 means never
	Min     time.Duration // the first wait; 0 means 500 ms
	Max     time.Duration // the longest wait; 0 means 20 s
	// Sleep waits, or returns the context's error sooner.
	Sleep func(ctx context.Context, d time.Duration) error
	Now   func() time.Time
	// Prepare changes each attempt before it is sent, e.g. signs it; nil for nothing.
	// sum is the checksum of the body.
	Prepare func(ctx context.Context, r *http.Request, sum func() [sha256.Size]byte) error

	ahead   atomic.Pointer[time.Duration] // of this machine's clock, by the last answer
	patient atomic.Pointer[http.Client]   // for large bodies
}

// Clock is how far the clock of this machine is ahead of the service's, by what its last
// answer said; known is false if none did.
func (c *Client) Clock() (ahead time.Duration, known bool) {
	if d := c.ahead.Load(); d != nil {
		return *d, true
	}
	return 0, false
}

// Unprepared is a client like c whose requests are sent as they are.
func (c *Client) Unprepared() *Client {
	return &Client{HTTP: c.HTTP, Retries: c.Retries, Min: c.Min, Max: c.Max, Sleep: c.Sleep, Now: c.Now}
}

// Once is a Client.Prepare whose errors are Final where they are lasting ones.
func Once(prepare func(context.Context, *http.Request, func() [sha256.Size]byte) error, lasting func(error) bool) func(context.Context, *http.Request, func() [sha256.Size]byte) error {
	return func(ctx context.Context, r *http.Request, sum func() [sha256.Size]byte) error {
		err := prepare(ctx, r, sum)
		if err != nil && lasting(err) {
			err = Final(err)
		}
		return err
	}
}

// A Request is what is sent.
type Request struct {
	Method string
	URL    string
	Header http.Header // nil for none
	Body   []byte      // nil for none
	// Content is a large body, in place of Body.
	Content Content
	// Into is given the body of a success, which it reads to its end, in place of the
	// Response; where the answer breaks off and the request is repeated, once more.
	Into func(body io.Reader) error
	// Repeat says that sending the request twice does what sending it once does. A
	// write with a condition is not such a request: its second attempt may fail by the
	// success of the first.
	Repeat bool
	// Most is how many bytes of the answer are read; 0 means 1 GiB.
	Most int64
}

// A Content is a body that is not in memory.
type Content interface {
	Size() int64
	SHA256() [sha256.Size]byte
	Open() io.ReadCloser // from its beginning
}

// A Response is an answer that was read whole.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	// Repeated is how many attempts came before this one, whose fate may be unknown.
	Repeated int
}

// Do sends a request. Whatever its status, an answer is no error. An error says that
// there was no answer; it names the host and nothing of the URL's secrets.
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
	if err == nil && given && resp.Status/100 != 2 { // what an earlier attempt gave does not count
		err = take(http.NoBody)
	}
	return resp, err
}

// repeat sends a request until it has an answer that counts.
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

// late reports whether nobody answered in time. Each attempt of that takes long, so that there
// is one more and not as many as of other errors.
func late(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// Final marks an error of Prepare that would be the same in another attempt, such as an
// account that may not be used.
func Final(err error) error { return finalError{err} }

type finalError struct{ error }

func (f finalError) Unwrap() error { return f.error }

// Lasting reports whether a service cannot be reached for a reason that lies in settings or
// certificates.
func Lasting(err error) bool { return err != nil && final(err) }

// final reports whether another attempt would fail for the same reason: the mistake lies in
// settings or certificates, not in the network or the service at this moment.
func final(err error) bool {
	var f finalError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	return errors.Is(err, ErrPage) || errors.Is(err, ErrProxy) || errors.Is(err, http.ErrSchemeMismatch) ||
		Refused(err) || errors.As(err, &f) || errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid) || errors.As(err, &record)
}

// pause is how long to wait before the next attempt: what the service asks for, or
// twice as long each time, less up to half of it so that many clients spread out.
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
	if resp.StatusCode == http.StatusProxyAuthRequired { // no service of its own says that
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
	if n := resp.ContentLength; n > 0 && n <= most && r.Method != http.MethodHead { // a large state is not copied again and again while it arrives
		answer.Grow(int(n) + bytes.MinRead)
	}
	_, err = answer.ReadFrom(io.LimitReader(resp.Body, most+1))
	b := answer.Bytes()
	if b == nil {
		b = []byte{} // an answer without a body is an answer
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

// sum is the checksum of the body.
func (r Request) sum() [sha256.Size]byte {
	if r.Content != nil {
		return r.Content.SHA256()
	}
	return sha256.Sum256(r.Body)
}

// size is how many bytes the body has.
func (r Request) size() int64 {
	if r.Content != nil {
		return r.Content.Size()
	}
	return int64(len(r.Body))
}

// into hands on the body of an answer while it arrives.
func into(take func(io.Reader) error, resp *http.Response, most int64, q *quiet) (*Response, error) {
	limited := &io.LimitedReader{R: resp.Body, N: most + 1}
	body := bufio.NewReaderSize(limited, 64<<10)
	if head, _ := body.Peek(512); page(head) { // what is wrong with the body is seen by who reads it
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

// sized is a body whose length was announced.
type sized struct {
	*bufio.Reader
	size int64
}

// Size is how many bytes the body has.
func (s sized) Size() int64 { return s.size }

func brokeOff(r *http.Request, err error) error {
	return fmt.Errorf("%s: the answer broke off: %w", r.URL.Host, Plain(err))
}

func tooLarge(r *http.Request, most int64) error {
	return fmt.Errorf("%s: the answer is larger than %d bytes", r.URL.Host, most)
}

// Plain is the error of a request, or of its transport, in words, without the URL, which may
// hold credentials. Of a proxy that refuses a tunnel it has nothing but the text of the status.
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

// Cause is what failed about a connection, without what wrapped it on the way; "" if
// nothing did.
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
	case errors.As(err, &unknown): // its own text goes on with what is tried in vain
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

// innermost is what the system said of a connection.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// plainError is an error whose text names the cause alone, without what wrapped it on
// the way.
type plainError struct {
	text string
	error
}

func (t plainError) Error() string { return t.text }
func (t plainError) Unwrap() error { return t.error }

// Line is the first line of a text answer, cut to what fits a message.
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

// page reports whether an answer is made for browsers.
func page(b []byte) bool {
	head := strings.ToLower(string(b[:min(len(b), 512)]))
	return strings.HasPrefix(strings.TrimSpace(head), "<") && strings.Contains(head, "<html")
}
