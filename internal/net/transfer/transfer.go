// Package transfer sends HTTP requests with limits: responses are limited in size and time,
// requests are retried if that may succeed, and interrupted downloads are resumed.
//
// Main type: Client. The one rule: no response is read into memory or written to disk without a
// limit.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"golang.org/x/net/http/httpproxy"
)

// A Client sends requests. The zero value sends each once with Go's defaults; New returns a
// client with the program's defaults. Its methods may be called concurrently.
type Client struct {
	HTTP      *http.Client
	Retries   int           // number of retries after the first attempt
	Timeout   time.Duration // timeout up to the headers of the response; 0 means 60 s
	Idle      time.Duration // maximum time without data in a body; 0 means 60 s
	Backoff   time.Duration // delay before the first retry, doubled for each further one; 0 means 500 ms
	UserAgent string
}

const maxPause = 30 * time.Second

// New returns a client with the proxy settings in env.
func New(env sys.Env) *Client {
	agent := "Terrace"
	if more := env.Get("TF_APPEND_USER_AGENT"); more != "" {
		agent += " " + more
	}
	return &Client{HTTP: &http.Client{Transport: Transport(env)}, Retries: 2, UserAgent: agent}
}

// Transport returns a transport with the proxy settings in env.
func Transport(env sys.Env) *http.Transport {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	settings := httpproxy.Config{
		HTTPProxy:  either(env, "HTTP_PROXY", "http_proxy"),
		HTTPSProxy: either(env, "HTTPS_PROXY", "https_proxy"),
		NoProxy:    either(env, "NO_PROXY", "no_proxy"),
		CGI:        env.Get("REQUEST_METHOD") != "",
	}
	proxy := settings.ProxyFunc()
	tr.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	tr.MaxIdleConnsPerHost = 16
	tr.ResponseHeaderTimeout = 60 * time.Second
	return tr
}

func either(env sys.Env, names ...string) string {
	for _, n := range names {
		if v := env.Get(n); v != "" {
			return v
		}
	}
	return ""
}

// With returns the client with another number of retries and another timeout. 0 keeps the
// timeout.
func (c *Client) With(retries int, timeout time.Duration) *Client {
	out := *c
	out.Retries = retries
	if timeout > 0 {
		out.Timeout = timeout
	}
	return &out
}

// A StatusError is a response with an error status.
type StatusError struct {
	Code   int
	Status string
	URL    string // without user and query, which may contain secrets
	Body   string // start of the response, if it is text
	Tries  int    // number of attempts of a download that was repeated as often as allowed; otherwise 0
}

func (e *StatusError) Error() string {
	if e.Tries > 0 {
		return fmt.Sprintf("%s giving up after %d attempt(s): the server answered %q", e.URL, e.Tries, e.Status)
	}
	return fmt.Sprintf("%s answered %q", e.URL, e.Status)
}

// Public returns a URL without the parts that may be secret.
func Public(u *url.URL) string {
	c := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return c.String()
}

func (c *Client) client() *http.Client {
	if c.HTTP == nil {
		return http.DefaultClient
	}
	return c.HTTP
}

// Do sends a request without a body. It retries after errors of the connection and after the
// statuses 429 and 5xx. The caller closes the body of the response.
func (c *Client) Do(ctx context.Context, req *http.Request) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, err := c.once(ctx, req)
		last := try >= c.Retries || ctx.Err() != nil
		switch {
		case err != nil && (last || !worthRepeating(err)):
			return nil, plainError(err)
		case err == nil && (last || !busy(resp.StatusCode)):
			return resp, nil
		}
		pause := c.pause(try, resp)
		if resp != nil {
			drain(resp.Body)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func busy(code int) bool {
	return code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented
}

// once sends the request one time. The timeout covers everything up to the headers of the
// response. Idle limits the body.
func (c *Client) once(ctx context.Context, req *http.Request) (*http.Response, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 60 * time.Second
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(timeout, func() { cancel(fmt.Errorf("no answer within %s", timeout)) })
	r := req.Clone(ctx)
	if c.UserAgent != "" && r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", c.UserAgent)
	}
	resp, err := c.client().Do(r)
	if !timer.Stop() && err == nil {
		drain(resp.Body)
		err = context.Cause(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil && !errors.Is(cause, context.Canceled) {
			err = &url.Error{Op: "Get", URL: Public(req.URL), Err: cause}
		}
		cancel(nil)
		return nil, err
	}
	idle := c.Idle
	if idle == 0 {
		idle = 60 * time.Second
	}
	resp.Body = &watched{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, idle: idle}
	return resp, nil
}

// watched is a body that fails if the server sends too little data for a while: a server that
// sends one byte at a time could block the program for years. Only the time that is spent in Read
// counts.
type watched struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	waited time.Duration // time in Read since came was 0
	came   int
}

// leastPerIdle is the number of bytes that must arrive within the idle time.
const leastPerIdle = 4 << 10

func (w *watched) Read(p []byte) (int, error) {
	start := time.Now()
	timer := time.AfterFunc(w.idle-w.waited, func() { w.cancel(errStalled) })
	n, err := w.ReadCloser.Read(p)
	timer.Stop()
	if w.came += n; w.came >= leastPerIdle {
		w.came, w.waited = 0, 0
	} else {
		w.waited += time.Since(start)
	}
	if err != nil && err != io.EOF && context.Cause(w.ctx) == errStalled {
		err = errStalled
	}
	return n, err
}

func (w *watched) Close() error {
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

var errStalled = errors.New("the server stopped sending")

// worthRepeating reports whether an error may be temporary. Errors in the request itself are not.
func worthRepeating(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	text := err.Error()
	for _, final := range []string{"redirects", "unsupported protocol scheme", "x509:", "certificate", "no such host", "refusing", "server gave HTTP response"} {
		if strings.Contains(text, final) {
			return false
		}
	}
	return true
}

// plainError replaces the URL in an error, whose query may contain a secret.
func plainError(err error) error {
	var ue *url.Error
	if !errors.As(err, &ue) {
		return err
	}
	shown := ue.URL
	if u, perr := url.Parse(ue.URL); perr == nil {
		shown = Public(u)
	}
	return &url.Error{Op: ue.Op, URL: shown, Err: ue.Err}
}

// Unreachable reports whether an error means that the server could not be reached, as opposed to
// an error response.
func Unreachable(err error) bool {
	var ne net.Error
	var ue *url.Error
	return errors.As(err, &ne) || errors.As(err, &ue)
}

func (c *Client) pause(try int, resp *http.Response) time.Duration {
	d := c.Backoff
	if d == 0 {
		d = 500 * time.Millisecond
	}
	d = min(d<<min(try, 10), maxPause)
	if resp != nil {
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
			d = max(d, min(time.Duration(s)*time.Second, 2*maxPause))
		}
	}
	return d
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
