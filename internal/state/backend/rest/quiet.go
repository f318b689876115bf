package rest

import (
	"context"
	"io"
	"net/http"
	"time"
)

// large is the size in bytes from which a body gets additional time: one second for each
// multiple of this size.
const large = 1 << 20

// A quiet cancels a request if the service neither receives nor sends anything for the maximum
// time. The transport only checks that between a request and the header of its response.
type quiet struct {
	longest time.Duration // maximum time; 0 means no limit
	size    int64         // size of the request's body in bytes

	timer *time.Timer // nil if there is no limit
	end   context.CancelCauseFunc
	ctx   context.Context
}

// errQuiet is the error of a connection that is silent for too long.
type errQuiet struct{}

func (errQuiet) Error() string   { return "no answer in time" }
func (errQuiet) Timeout() bool   { return true }
func (errQuiet) Temporary() bool { return true }

// quiet returns the maximum silence of a service, as configured in the transport.
func (c *Client) quiet() time.Duration {
	if t, ok := c.HTTP.Transport.(*http.Transport); ok {
		return t.ResponseHeaderTimeout
	}
	return 0
}

// forLarge returns a client whose transport has no limit for the response, because a quiet
// enforces it.
func (c *Client) forLarge() *http.Client {
	if p := c.patient.Load(); p != nil {
		return p
	}
	p := *c.HTTP
	t := c.HTTP.Transport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 0
	p.Transport = t
	if !c.patient.CompareAndSwap(nil, &p) {
		return c.patient.Load()
	}
	return &p
}

// within returns the context of the request. done ends it.
func (q *quiet) within(ctx context.Context) (_ context.Context, done func()) {
	if q.longest <= 0 {
		return ctx, func() {}
	}
	q.ctx, q.end = context.WithCancelCause(ctx)
	return q.ctx, func() {
		if q.timer != nil {
			q.timer.Stop()
		}
		q.end(nil)
	}
}

func (q *quiet) start(d time.Duration) {
	if q.timer == nil {
		q.timer = time.AfterFunc(d, func() { q.end(errQuiet{}) })
		return
	}
	q.timer.Reset(d)
}

// sending watches that the body is sent, and then that the response begins.
func (q *quiet) sending(r *http.Request) {
	q.start(q.longest)
	watch := func(b io.ReadCloser) io.ReadCloser {
		return &watched{ReadCloser: b, after: func(err error) {
			d := q.longest
			if err != nil {
				d += time.Duration(q.size/large) * time.Second
			}
			q.timer.Reset(d)
		}}
	}
	if r.Body != nil {
		r.Body = watch(r.Body)
	}
	if again := r.GetBody; again != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			b, err := again()
			if err != nil {
				return nil, err
			}
			return watch(b), nil
		}
	}
}

// receiving watches that the body of the response arrives.
func (q *quiet) receiving(r *http.Response) {
	if q.longest <= 0 {
		return
	}
	q.start(q.longest)
	// The time that the reader takes does not count.
	r.Body = &watched{ReadCloser: r.Body, before: func() { q.timer.Reset(q.longest) }, after: func(error) { q.timer.Stop() }}
}

// cause returns the cause of an error that may come from this context.
func (q *quiet) cause(err error) error {
	if err != nil && q.ctx != nil {
		if late, ok := context.Cause(q.ctx).(errQuiet); ok {
			return late
		}
	}
	return err
}

// watched calls functions before and after each read.
type watched struct {
	io.ReadCloser
	before func() // nil means none
	after  func(error)
}

func (w *watched) Read(p []byte) (int, error) {
	if w.before != nil {
		w.before()
	}
	n, err := w.ReadCloser.Read(p)
	w.after(err)
	return n, err
}
