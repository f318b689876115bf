package rest

import (
	"context"
	"io"
	"net/http"
	"time"
)

// large is from which size on a body takes a service longer than other requests: it is given
// a second more for each of these.
const large = 1 << 20

// A quiet gives up a request where the service neither takes nor sends anything for as long
// as it may: the transport sees to that only between a request and the head of its answer.
type quiet struct {
	longest time.Duration // 0: as long as it likes
	size    int64         // of the body of the request

	timer *time.Timer // nil: nobody waits
	end   context.CancelCauseFunc
	ctx   context.Context
}

// errQuiet is an error of a connection that takes too long.
type errQuiet struct{}

func (errQuiet) Error() string   { return "no answer in time" }
func (errQuiet) Timeout() bool   { return true }
func (errQuiet) Temporary() bool { return true }

// quiet is how long a service may say nothing: as long as the transport lets it.
func (c *Client) quiet() time.Duration {
	if t, ok := c.HTTP.Transport.(*http.Transport); ok {
		return t.ResponseHeaderTimeout
	}
	return 0
}

// forLarge is the client whose transport leaves it to a quiet how long an answer may take.
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

// within is the context of the request. done ends it.
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

// sending watches that the body is taken, and then that there is an answer.
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

// receiving watches that the body of the answer arrives.
func (q *quiet) receiving(r *http.Response) {
	if q.longest <= 0 {
		return
	}
	q.start(q.longest)
	// Who reads may take longer.
	r.Body = &watched{ReadCloser: r.Body, before: func() { q.timer.Reset(q.longest) }, after: func(error) { q.timer.Stop() }}
}

// cause is what an error came from that may be one of this context.
func (q *quiet) cause(err error) error {
	if err != nil && q.ctx != nil {
		if late, ok := context.Cause(q.ctx).(errQuiet); ok {
			return late
		}
	}
	return err
}

// watched tells when something is read, and what that ended with.
type watched struct {
	io.ReadCloser
	before func() // nil: nobody wants to know
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
