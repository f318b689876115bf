// Package telemetry records the steps of a run and their durations, as spans and metrics in the
// sense of OpenTelemetry.
//
// Main types: Tracer and Span. A context contains the current span, and Start creates a child of
// it. The one rule: without telemetry, a context contains no span, Start returns a nil Span,
// whose methods do nothing, and nothing is allocated. Spans contain names, paths, counts and
// statuses, but no data that may be sensitive: no arguments, values or details of messages.
package telemetry

import (
	"context"
	"io"
	"sync"
	"time"
)

// Options configures a Tracer. Now and Random are required.
type Options struct {
	Now    func() time.Time
	Random io.Reader // source of identifiers
	Parent Parent    // parent of the first span; zero means none
	// Redact removes secrets from texts. nil means that texts are unchanged.
	Redact func(string) string
	// Spans receives each span when it has ended, and must not change it. It is called
	// concurrently. nil means that there are no traces, only metrics.
	Spans func(*Span)
	// Logs receives each message for the user. It is called concurrently, and may be nil.
	Logs func(*Record)
	// Measures receives the metrics of spans. nil means none.
	Measures *Measures
}

// A Tracer creates the spans of one run. Its methods may be called concurrently.
type Tracer struct {
	o    Options
	mu   sync.Mutex // guards Random
	root ids
}

type ids struct {
	trace [16]byte
	flags byte
}

// sampled is the flag of a recorded trace.
const sampled = 1

// New returns a Tracer.
func New(o Options) *Tracer {
	t := &Tracer{o: o, root: ids{o.Parent.Trace, o.Parent.Flags}}
	if !o.Parent.Given() {
		t.root.flags = sampled
		t.random(t.root.trace[:])
	}
	return t
}

// random sets id to a random identifier that is not all zeros.
func (t *Tracer) random(id []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.ReadFull(t.o.Random, id) // crypto/rand never fails
	for _, b := range id {
		if b != 0 {
			return
		}
	}
	id[0] = 1
}

type contextKey struct{}

// in is the value in a context.
type in struct {
	tracer *Tracer
	span   *Span // nil before the first span
}

// With returns a context in which Start creates spans.
func (t *Tracer) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &in{tracer: t})
}

// Start creates a child of the span in ctx. Without telemetry it returns ctx and a nil Span. The
// caller must end the span.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	at, _ := ctx.Value(contextKey{}).(*in)
	if at == nil {
		return ctx, nil
	}
	s := at.tracer.span(name, at.span)
	return context.WithValue(ctx, contextKey{}, &in{at.tracer, s}), s
}

// Below returns ctx with the span of above. It is for work that ends with ctx but belongs to the
// span of above.
func Below(ctx, above context.Context) context.Context {
	if at, _ := above.Value(contextKey{}).(*in); at != nil {
		return context.WithValue(ctx, contextKey{}, at)
	}
	return ctx
}

// On reports whether ctx has telemetry, for callers whose names and attributes are expensive to
// compute.
func On(ctx context.Context) bool {
	at, _ := ctx.Value(contextKey{}).(*in)
	return at != nil
}

// span creates a span.
func (t *Tracer) span(name string, above *Span) *Span {
	s := &Span{tracer: t, Name: name, Trace: t.root.trace, Flags: t.root.flags, Began: t.o.Now()}
	t.random(s.ID[:])
	if above != nil {
		s.Above = above.ID
		above.mu.Lock()
		above.Children++
		above.mu.Unlock()
	} else if t.o.Parent.Given() {
		s.Above, s.Remote = t.o.Parent.Span, true
	}
	return s
}
