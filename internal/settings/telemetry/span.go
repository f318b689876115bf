package telemetry

import (
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
)

// A Span is a step of a run: its name, times, parent and result. A nil Span ignores everything.
// Its methods may be called concurrently until it has ended. Its fields are for receivers of
// ended spans.
type Span struct {
	Name     string
	Trace    [16]byte
	ID       [8]byte
	Above    [8]byte // ID of the parent span; zeros mean none
	Remote   bool    // the parent span belongs to another program
	Flags    byte
	Began    time.Time
	Ended    time.Time
	Attrs    []Attr
	Failures []Failure
	Children int

	tracer *Tracer
	mu     sync.Mutex
	about  int // number of leading Attrs that describe the subject; metrics are grouped by these
}

// An Attr is an attribute. Value is a string, an int or a bool.
type Attr struct {
	Key   string
	Value any
}

// A Failure is an error of a span.
type Failure struct {
	At            time.Time
	Type, Message string
}

// Text adds an attribute that describes the subject of a span. Metrics are grouped by these
// attributes, so they must precede those of the result. It returns s.
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

// Flag is Text for a boolean.
func (s *Span) Flag(key string, yes bool) *Span {
	if s != nil {
		s.add(Attr{key, yes}, true)
	}
	return s
}

// Outcome adds an attribute that describes the result.
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

// Fail records an error. message must not contain sensitive data.
func (s *Span) Fail(typ, message string) {
	if s == nil {
		return
	}
	at := s.tracer.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Failures = append(s.Failures, Failure{at, typ, message})
}

// mostFailures is the maximum number of errors of a list that are recorded.
const mostFailures = 5

// Messages records the errors in ds: their summaries and source positions. Details are omitted,
// since they may contain the output of programs.
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

// End ends the span and exports it.
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

// redact removes secrets from the texts of the span. The caller holds the mutex.
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

// Traced reports whether the span is part of a trace, so that programs that run in it receive its
// ID.
func (s *Span) Traced() bool { return s != nil && s.tracer.o.Spans != nil }

// Parent returns the ID of the span for other programs, in the form of the header traceparent
// (W3C Trace Context).
func (s *Span) Parent() string {
	return "00-" + hex.EncodeToString(s.Trace[:]) + "-" + hex.EncodeToString(s.ID[:]) + "-" + hex.EncodeToString([]byte{s.Flags})
}
