package telemetry

import (
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
)

// A Span is something that was done: what, when, below what else, and what came of
// it. A nil Span takes everything and does nothing. Its methods may be called
// concurrently until it has ended; the fields are for those who get it then.
type Span struct {
	Name     string
	Trace    [16]byte
	ID       [8]byte
	Above    [8]byte // the span that it belongs to; zeros: none
	Remote   bool    // Above is of another program
	Flags    byte
	Began    time.Time
	Ended    time.Time
	Attrs    []Attr
	Failures []Failure
	Children int

	tracer *Tracer
	mu     sync.Mutex
	about  int // of Attrs: how many say what it is about, which measures go by
}

// An Attr is one attribute. Value is a string, an int or a bool.
type Attr struct {
	Key   string
	Value any
}

// A Failure is an error that a span ended with.
type Failure struct {
	At            time.Time
	Type, Message string
}

// Text says what a span is about. Such attributes come before those of what came of
// it, since measures are kept apart by them.
func (s *Span) Text(key, value string) *Span {
	if s != nil {
		s.add(Attr{key, value}, true)
	}
	return s
}

// Count is Text for a number.
func (s *Span) Count(key string, n int) *Span {
	if s != nil {
		s.add(Attr{key, n}, true)
	}
	return s
}

// Flag is Text for yes or no.
func (s *Span) Flag(key string, yes bool) *Span {
	if s != nil {
		s.add(Attr{key, yes}, true)
	}
	return s
}

// Outcome says what came of it.
func (s *Span) Outcome(key, value string) {
	if s != nil {
		s.add(Attr{key, value}, false)
	}
}

// OutcomeCount is Outcome for a number.
func (s *Span) OutcomeCount(key string, n int) {
	if s != nil {
		s.add(Attr{key, n}, false)
	}
}

func (s *Span) add(a Attr, about bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Attrs = append(s.Attrs, a)
	if about {
		s.about = len(s.Attrs)
	}
}

// Fail notes an error. message must hold nothing that may be sensitive.
func (s *Span) Fail(typ, message string) {
	if s == nil {
		return
	}
	at := s.tracer.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Failures = append(s.Failures, Failure{at, typ, message})
}

// mostFailures is how many errors of a list are noted.
const mostFailures = 5

// Messages notes the errors among messages: their summaries and places, since
// details may hold what programs wrote.
func (s *Span) Messages(ds diag.List) {
	if s == nil {
		return
	}
	errs := ds.Errors()
	for i, m := range errs {
		if i == mostFailures {
			s.Fail("error", fmt.Sprintf("and %d more errors", len(errs)-i))
			return
		}
		text, typ := m.Summary, m.Code
		if m.At != nil {
			text += fmt.Sprintf(" (%s:%d,%d)", m.At.Filename, m.At.Start.Line, m.At.Start.Column)
		}
		if typ == "" {
			typ = "error"
		}
		s.Fail(typ, text)
	}
}

// End ends the span and hands it over.
func (s *Span) End() {
	if s == nil {
		return
	}
	o := &s.tracer.o
	s.mu.Lock()
	s.Ended = o.Now()
	s.redact(o.Redact)
	s.mu.Unlock()
	o.Measures.note(s)
	if o.Spans != nil && s.Flags&sampled != 0 {
		o.Spans(s)
	}
}

// redact takes out of what the span says what must not be shown. The caller holds the mutex.
func (s *Span) redact(text func(string) string) {
	if text == nil {
		return
	}
	for i, a := range s.Attrs {
		if v, ok := a.Value.(string); ok {
			s.Attrs[i].Value = text(v)
		}
	}
	for i, f := range s.Failures {
		s.Failures[i].Message = text(f.Message)
	}
}

// Traced reports whether the span is part of a trace, so that programs that are
// started in it get its ID.
func (s *Span) Traced() bool { return s != nil && s.tracer.o.Spans != nil }

// Parent is the ID of the span for other programs, in the form of the header
// traceparent of the W3C's Trace Context.
func (s *Span) Parent() string {
	return "00-" + hex.EncodeToString(s.Trace[:]) + "-" + hex.EncodeToString(s.ID[:]) + "-" + hex.EncodeToString([]byte{s.Flags})
}
