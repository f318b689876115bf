// Package otlp exports the records of package telemetry: with the OpenTelemetry protocol (OTLP
// 1.x) over HTTP or gRPC, or as lines of JSON on the console.
//
// Main types: Settings, which come from the environment, and Sink, which receives spans, metrics
// and log records. The one rule: no receiver can make a run fail, hang or use unlimited memory.
// The queue is limited, each request has a timeout, and undelivered records are counted and
// reported once.
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

// Options configures a Sink. All fields except Dir are required.
type Options struct {
	Settings Settings
	Env      sys.Env   // environment with proxy settings
	Dir      string    // directory that certificate files are relative to
	Console  io.Writer // receives the lines of the console exporter, each in one write
	Now      func() time.Time
	// Name and Version are the name and the version of the program.
	Name, Version string
}

// A Sink receives records and exports them. Its methods may be called concurrently. It must not
// receive records after Close. A nil Sink ignores everything.
type Sink struct {
	o                    Options
	source               source
	measures             *telemetry.Measures
	spans, metrics, logs output
}

// source contains the attributes of all records.
type source struct {
	attrs []telemetry.Attr
	scope string
}

// output receives the records of one kind.
type output interface {
	add(item []byte)
	// close sends the remaining records until the context ends, and returns an error about
	// undelivered ones.
	close(ctx context.Context) error
}

// Open returns a Sink. It returns an error for invalid settings, such as a certificate that
// cannot be read.
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

// resource returns the attributes of the program, with those from the environment.
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

// Spans returns the receiver of ended spans, or nil if traces are not exported.
func (k *Sink) Spans() func(*telemetry.Span) {
	if k == nil || k.spans == nil {
		return nil
	}
	if k.o.Settings.Traces.Exporter == Console {
		return func(s *telemetry.Span) { k.spans.add(k.source.spanJSON(s)) }
	}
	return func(s *telemetry.Span) { k.spans.add(spanProto(s)) }
}

// Logs returns the receiver of messages for the user, or nil if logs are not exported.
func (k *Sink) Logs() func(*telemetry.Record) {
	if k == nil || k.logs == nil {
		return nil
	}
	if k.o.Settings.Logs.Exporter == Console {
		return func(r *telemetry.Record) { k.logs.add(k.source.recordJSON(r)) }
	}
	return func(r *telemetry.Record) { k.logs.add(recordProto(r)) }
}

// Measures returns the metrics, or nil if they are not exported.
func (k *Sink) Measures() *telemetry.Measures {
	if k == nil {
		return nil
	}
	return k.measures
}

// Close sends the remaining records until the context ends. It returns an error about undelivered
// ones.
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

// addMeasures exports the current metrics.
func (k *Sink) addMeasures() {
	now := k.o.Now()
	if k.o.Settings.Metrics.Exporter == Console {
		k.metrics.add(k.source.measuresJSON(k.measures, now))
		return
	}
	k.measures.Each(func(m *telemetry.Measure) { k.metrics.add(measureProto(m, now)) })
}

// plural returns n with the name of the kind's records.
func (k Kind) plural(n int) string {
	one := map[Kind]string{Traces: "span", Metrics: "metric", Logs: "log record"}[k]
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}

// name returns the kind in the form that URL paths use.
func (k Kind) name() string { return strings.ToLower(string(k)) }
