// Package otlp brings what package telemetry records out of the program: by the
// OpenTelemetry protocol (OTLP 1.x) over HTTP or gRPC, or as lines of JSON on the
// console.
//
// Main types: Settings, which the environment gives, and Sink, which takes spans,
// measures and log records. The one rule: nothing that a receiver does, or does not,
// makes a run fail, hang or grow: what waits to be sent is bounded, each request ends
// in time, and what could not be delivered is counted and reported once.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// Options say how a Sink is made. All but Dir are required.
type Options struct {
	Settings Settings
	Env      sys.Env   // for proxies
	Dir      string    // which files of certificates are relative to
	Console  io.Writer // for those who want it there; lines are written whole
	Now      func() time.Time
	// Name and Version are those of the program.
	Name, Version string
}

// A Sink takes what is recorded and sends it. Its methods may be called concurrently,
// but nothing may be given to it any more once Close was called. A nil Sink takes
// everything.
type Sink struct {
	o                    Options
	source               source
	measures             *telemetry.Measures
	spans, metrics, logs output
}

// source is what all records are about.
type source struct {
	attrs []telemetry.Attr
	scope string
}

// output is where one kind of records goes.
type output interface {
	add(item []byte)
	// close sends what is left until the context ends, and tells what was not sent.
	close(ctx context.Context) error
}

// Open makes a sink. What stands in the way, such as a certificate that cannot be
// read, is an error.
func Open(o Options) (*Sink, error) {
	k := &Sink{o: o, source: source{resource(o), o.Name}}
	var err error
	for _, x := range []struct {
		kind Kind
		of   Signal
		into *output
	}{{Traces, o.Settings.Traces, &k.spans}, {Metrics, o.Settings.Metrics, &k.metrics}, {Logs, o.Settings.Logs, &k.logs}} {
		if *x.into, err = k.output(x.kind, x.of); err != nil {
			return nil, err
		}
	}
	if k.metrics != nil {
		k.measures = &telemetry.Measures{Now: o.Now}
	}
	return k, nil
}

func (k *Sink) output(kind Kind, s Signal) (output, error) {
	switch s.Exporter {
	case None:
		return nil, nil
	case Console:
		return &console{out: k.o.Console}, nil
	}
	send, err := newSender(kind, s, k.o)
	if err != nil {
		return nil, err
	}
	return newQueue(kind, send, k.source), nil
}

// resource are the attributes of the program, as the environment adds to them.
func resource(o Options) []telemetry.Attr {
	set := map[string]bool{}
	var out []telemetry.Attr
	add := func(key, value string) {
		if !set[key] {
			set[key] = true
			out = append(out, telemetry.Attr{Key: key, Value: value})
		}
	}
	if o.Settings.Service != "" {
		add("service.name", o.Settings.Service)
	}
	for _, a := range o.Settings.Resource {
		add(a[0], a[1])
	}
	add("service.name", o.Name)
	add("service.version", o.Version)
	add("telemetry.sdk.language", "go")
	add("telemetry.sdk.name", o.Name)
	add("telemetry.sdk.version", o.Version)
	return out
}

// Spans takes spans that have ended; nil where there are no traces.
func (k *Sink) Spans() func(*telemetry.Span) {
	if k == nil || k.spans == nil {
		return nil
	}
	if k.o.Settings.Traces.Exporter == Console {
		return func(s *telemetry.Span) { k.spans.add(k.source.spanJSON(s)) }
	}
	return func(s *telemetry.Span) { k.spans.add(spanProto(s)) }
}

// Logs exports messages for the user; nil where logs are not exported.
func (k *Sink) Logs() func(*telemetry.Record) {
	if k == nil || k.logs == nil {
		return nil
	}
	if k.o.Settings.Logs.Exporter == Console {
		return func(r *telemetry.Record) { k.logs.add(k.source.recordJSON(r)) }
	}
	return func(r *telemetry.Record) { k.logs.add(recordProto(r)) }
}

// Measures is where spans are counted; nil where nobody wants that.
func (k *Sink) Measures() *telemetry.Measures {
	if k == nil {
		return nil
	}
	return k.measures
}

// Close sends what is left, until the context ends. The error tells what could not be
// delivered.
func (k *Sink) Close(ctx context.Context) error {
	if k == nil {
		return nil
	}
	if k.metrics != nil {
		k.addMeasures()
	}
	var errs []error
	ends := make(chan error, 3)
	n := 0
	for _, out := range []output{k.spans, k.metrics, k.logs} {
		if out != nil {
			n++
			go func() { ends <- out.close(ctx) }() // waited for below
		}
	}
	for range n {
		errs = append(errs, <-ends)
	}
	return errors.Join(errs...)
}

// addMeasures gives the measures as they are now.
func (k *Sink) addMeasures() {
	now := k.o.Now()
	if k.o.Settings.Metrics.Exporter == Console {
		k.metrics.add(k.source.measuresJSON(k.measures, now))
		return
	}
	k.measures.Each(func(m *telemetry.Measure) { k.metrics.add(measureProto(m, now)) })
}

// plural is n of what a kind of records is called.
func (k Kind) plural(n int) string {
	one := map[Kind]string{Traces: "span", Metrics: "metric", Logs: "log record"}[k]
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}

// name is the word of the kind in paths and variables.
func (k Kind) name() string { return strings.ToLower(string(k)) }
