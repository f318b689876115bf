// Package telemetry tells what a run of the program does, and for how long: spans in
// the manner of OpenTelemetry, and measures that are made of them.
//
// Main types: Tracer and Span. A context carries the span that is going on; Start
// begins one below it. The one rule: where nobody asked for telemetry a context
// carries none, Start returns a nil Span, whose methods do nothing, and nothing is
// allocated. No value that may be sensitive goes into a span: names, paths, counts
// and statuses do; arguments, values and the details of messages do not.
package telemetry

import (
	"context"
	"io"
	"sync"
	"time"
)

// Options say what is recorded. Now and Random are required.
type Options struct {
	Now    func() time.Time
	Random io.Reader // of identifiers
	Parent Parent    // what the first span is below; the zero value is nothing
	// Redact takes out of texts what must not be shown. Nil: nothing.
	Redact func(string) string
	// Spans gets each span when it has ended, and must not change it. It is called
	// concurrently. Nil: there are no traces, only measures.
	Spans func(*Span)
	// Logs gets each message for the user. It is called concurrently, and may be nil.
	Logs func(*Record)
	// Measures gets what spans say in numbers; nil: there are none.
	Measures *Measures
}

// A Tracer makes the spans of one run. Its methods may be called concurrently.
type Tracer struct {
	o    Options
	mu   sync.Mutex // of Random
	root ids
}

type ids struct {
	trace [16]byte
	flags byte
}

// sampled is the flag of a trace that is to be recorded.
const sampled = 1

// New makes a tracer.
func New(o Options) *Tracer {
	t := &Tracer{o: o, root: ids{o.Parent.Trace, o.Parent.Flags}}
	if !o.Parent.Given() {
		t.root.flags = sampled
		t.random(t.root.trace[:])
	}
	return t
}

// random fills in an identifier, which is never all zeros.
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

// in is what a context carries.
type in struct {
	tracer *Tracer
	span   *Span // nil before the first
}

// With is a context in which spans are made.
func (t *Tracer) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &in{tracer: t})
}

// Start begins a span below the one that the context carries. Without telemetry the
// context is returned as it is, with a nil Span. Whoever begins a span must end it.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	at, _ := ctx.Value(contextKey{}).(*in)
	if at == nil {
		return ctx, nil
	}
	s := at.tracer.span(name, at.span)
	return context.WithValue(ctx, contextKey{}, &in{at.tracer, s}), s
}

// Below gives a context the span that another one has, for work that is ended by the first and
// belongs to the second.
func Below(ctx, above context.Context) context.Context {
	if at, _ := above.Value(contextKey{}).(*in); at != nil {
		return context.WithValue(ctx, contextKey{}, at)
	}
	return ctx
}

// On reports whether spans are made, for callers whose names and attributes cost
// something to make.
func On(ctx context.Context) bool {
	at, _ := ctx.Value(contextKey{}).(*in)
	return at != nil
}

// span begins a span.
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
