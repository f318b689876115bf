package otlp

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// # Console exporter
//
// The exporter writes one line of JSON for each span, and one for the metrics at the end, in the
// form of OpenTelemetry's console exporters.

// console writes lines.
type console struct {
	out io.Writer
	mu  sync.Mutex
	err error
}

func (c *console) add(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.out.Write(line); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *console) close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// valid replaces invalid UTF-8 in a text.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

type jsonValue struct {
	Type  string
	Value any
}

type jsonAttr struct {
	Key   string
	Value jsonValue
}

func jsonAttrs(list []telemetry.Attr) []jsonAttr {
	out := make([]jsonAttr, 0, len(list))
	for _, a := range list {
		typ := "STRING"
		switch a.Value.(type) {
		case int:
			typ = "INT64"
		case bool:
			typ = "BOOL"
		}
		out = append(out, jsonAttr{a.Key, jsonValue{typ, a.Value}})
	}
	return out
}

type jsonContext struct {
	TraceID, SpanID, TraceFlags, TraceState string
	Remote                                  bool
}

type jsonScope struct {
	Name, Version, SchemaURL string
	Attributes               any
}

type jsonEvent struct {
	Name                  string
	Attributes            []jsonAttr
	DroppedAttributeCount int
	Time                  time.Time
}

type jsonSpan struct {
	Name                                           string
	SpanContext, Parent                            jsonContext
	SpanKind                                       int
	StartTime, EndTime                             time.Time
	Attributes                                     []jsonAttr
	Events                                         []jsonEvent
	Links                                          any
	Status                                         struct{ Code, Description string }
	DroppedAttributes, DroppedEvents, DroppedLinks int
	ChildSpanCount                                 int
	Resource                                       []jsonAttr
	InstrumentationScope, InstrumentationLibrary   jsonScope
}

// spanJSON returns a span as a line of JSON.
func (s source) spanJSON(sp *telemetry.Span) []byte {
	of := func(id [8]byte, remote bool) jsonContext {
		return jsonContext{hex.EncodeToString(sp.Trace[:]), hex.EncodeToString(id[:]), hex.EncodeToString([]byte{sp.Flags}), "", remote}
	}
	out := jsonSpan{
		Name: sp.Name, SpanContext: of(sp.ID, false), Parent: of(sp.Above, sp.Remote), SpanKind: kindInternal,
		StartTime: sp.Began, EndTime: sp.Ended, Attributes: jsonAttrs(sp.Attrs), ChildSpanCount: sp.Children,
		Resource: jsonAttrs(s.attrs), InstrumentationScope: jsonScope{Name: s.scope}, InstrumentationLibrary: jsonScope{Name: s.scope},
	}
	if sp.Above == [8]byte{} {
		out.Parent = jsonContext{TraceID: strings.Repeat("0", 32), SpanID: strings.Repeat("0", 16), TraceFlags: "00"}
	}
	for _, f := range sp.Failures {
		out.Events = append(out.Events, jsonEvent{Name: "exception", Attributes: jsonAttrs(failureAttrs(f)), Time: f.At})
	}
	out.Status.Code = "Unset"
	if len(sp.Failures) > 0 {
		out.Status.Code, out.Status.Description = "Error", sp.Failures[0].Message
	}
	return line(out)
}

type jsonPoint struct {
	Attributes      []jsonAttr
	StartTime, Time time.Time
}

type jsonCount struct {
	jsonPoint
	Value uint64
}

type jsonSpread struct {
	jsonPoint
	Count         uint64
	Bounds        []float64
	BucketCounts  []uint64
	Min, Max, Sum int64
}

type jsonData struct {
	DataPoints  []any
	Temporality string
	IsMonotonic bool `json:",omitempty"`
}

type jsonMetric struct {
	Name, Description, Unit string
	Data                    jsonData
}

type jsonScopeMetrics struct {
	Scope   jsonScope
	Metrics []jsonMetric
}

// measuresJSON returns all metrics as a line of JSON.
func (s source) measuresJSON(all *telemetry.Measures, now time.Time) []byte {
	of := jsonScopeMetrics{Scope: jsonScope{Name: s.scope}, Metrics: []jsonMetric{}}
	all.Each(func(m *telemetry.Measure) {
		x := jsonMetric{Name: m.Name, Data: jsonData{DataPoints: []any{}, Temporality: "CumulativeTemporality", IsMonotonic: !m.Spread}}
		for _, p := range m.Points {
			at := jsonPoint{jsonAttrs(p.Attrs), m.Began, now}
			if m.Spread {
				x.Data.DataPoints = append(x.Data.DataPoints, jsonSpread{at, p.Count, telemetry.Bounds[:], p.Buckets[:], p.Min, p.Max, p.Sum})
			} else {
				x.Data.DataPoints = append(x.Data.DataPoints, jsonCount{at, p.Count})
			}
		}
		of.Metrics = append(of.Metrics, x)
	})
	return line(struct {
		Resource     []jsonAttr
		ScopeMetrics []jsonScopeMetrics
	}{jsonAttrs(s.attrs), []jsonScopeMetrics{of}})
}

// recordJSON returns a log record as a line of JSON. The type names of its values differ from
// those of spans.
func (s source) recordJSON(r *telemetry.Record) []byte {
	of := make([]jsonAttr, 0, len(r.Attrs))
	for _, a := range r.Attrs {
		of = append(of, jsonAttr{a.Key, jsonValue{"String", a.Value}})
	}
	return line(struct {
		Timestamp, ObservedTimestamp time.Time
		Severity                     int
		SeverityText                 string
		Body                         jsonValue
		Attributes                   []jsonAttr
		TraceID, SpanID, TraceFlags  string
		Resource                     []jsonAttr
		Scope                        jsonScope
		DroppedAttributes            int
	}{
		r.At, r.At, r.Severity(), r.Level, jsonValue{"String", valid(r.Text)}, of,
		hex.EncodeToString(r.Trace[:]), hex.EncodeToString(r.Span[:]), hex.EncodeToString([]byte{r.Flags}),
		jsonAttrs(s.attrs), jsonScope{Name: s.scope, Attributes: struct{}{}}, 0,
	})
}

// line returns a value as one line of JSON.
func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil // all values can be marshaled
	}
	return append(b, '\n')
}
