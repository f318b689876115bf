package otlp

import (
	"math"
	"time"

	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"google.golang.org/protobuf/encoding/protowire"
)

// # Messages of OTLP
//
// The field numbers are those of opentelemetry-proto 1.x (trace/v1, metrics/v1, logs/v1,
// common/v1). Requests of all three kinds have the same structure: a resource (1.1.1), a scope
// (1.2.1) and records (1.2.2).

// message appends a field that contains a message.
func message(b []byte, field protowire.Number, m []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, m)
}

func text(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func number(b []byte, field protowire.Number, n uint64) []byte {
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, n)
}

func fixed(b []byte, field protowire.Number, n uint64) []byte {
	b = protowire.AppendTag(b, field, protowire.Fixed64Type)
	return protowire.AppendFixed64(b, n)
}

func instant(b []byte, field protowire.Number, t time.Time) []byte {
	return fixed(b, field, uint64(t.UnixNano()))
}

// attr encodes a KeyValue.
func attr(a telemetry.Attr) []byte {
	var v []byte
	switch x := a.Value.(type) {
	case string:
		v = protowire.AppendTag(v, 1, protowire.BytesType)
		v = protowire.AppendString(v, valid(x))
	case bool:
		v = number(v, 2, protowire.EncodeBool(x))
	case int:
		v = number(v, 3, uint64(x))
	}
	return message(text(nil, 1, valid(a.Key)), 2, v)
}

func attrs(b []byte, field protowire.Number, list []telemetry.Attr) []byte {
	for _, a := range list {
		b = message(b, field, attr(a))
	}
	return b
}

// Flags of a span: whether it is known if the parent is remote, and whether it is.
const (
	knowsRemote = 0x100
	isRemote    = 0x200
)

// statusError is Status.STATUS_CODE_ERROR, kindInternal Span.SPAN_KIND_INTERNAL.
const (
	statusError  = 2
	kindInternal = 1
)

// spanProto encodes a Span.
func spanProto(s *telemetry.Span) []byte {
	b := make([]byte, 0, 512)
	b = message(b, 1, s.Trace[:])
	b = message(b, 2, s.ID[:])
	if s.Above != [8]byte{} {
		b = message(b, 4, s.Above[:])
	}
	b = text(b, 5, valid(s.Name))
	b = number(b, 6, kindInternal)
	b = instant(b, 7, s.Began)
	b = instant(b, 8, s.Ended)
	b = attrs(b, 9, s.Attrs)
	for _, f := range s.Failures {
		ev := text(instant(nil, 1, f.At), 2, "exception")
		b = message(b, 11, attrs(ev, 3, failureAttrs(f)))
	}
	if len(s.Failures) > 0 {
		b = message(b, 15, number(text(nil, 2, valid(s.Failures[0].Message)), 3, statusError))
	}
	flags := uint32(s.Flags) | knowsRemote
	if s.Remote {
		flags |= isRemote
	}
	b = protowire.AppendTag(b, 16, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, flags)
}

// failureAttrs returns the attributes of an "exception" event, according to OpenTelemetry's
// conventions.
func failureAttrs(f telemetry.Failure) []telemetry.Attr {
	return []telemetry.Attr{{Key: "exception.type", Value: f.Type}, {Key: "exception.message", Value: f.Message}}
}

// cumulative is AGGREGATION_TEMPORALITY_CUMULATIVE.
const cumulative = 2

// measureProto encodes a Metric.
func measureProto(m *telemetry.Measure, now time.Time) []byte {
	var data []byte
	for _, p := range m.Points {
		if m.Spread {
			data = message(data, 1, spreadProto(m, p, now))
			continue
		}
		pt := instant(instant(nil, 2, m.Began), 3, now)
		data = message(data, 1, attrs(fixed(pt, 6, p.Count), 7, p.Attrs))
	}
	data = number(data, 2, cumulative)
	b := text(nil, 1, m.Name)
	if m.Spread {
		return message(b, 9, data)
	}
	return message(b, 7, number(data, 3, 1)) // monotonic
}

// spreadProto encodes a HistogramDataPoint.
func spreadProto(m *telemetry.Measure, p *telemetry.Point, now time.Time) []byte {
	b := instant(instant(nil, 2, m.Began), 3, now)
	b = fixed(b, 4, p.Count)
	b = fixed(b, 5, math.Float64bits(float64(p.Sum)))
	var buckets, bounds []byte
	for _, n := range p.Buckets {
		buckets = protowire.AppendFixed64(buckets, n)
	}
	for _, x := range telemetry.Bounds {
		bounds = protowire.AppendFixed64(bounds, math.Float64bits(x))
	}
	b = attrs(message(message(b, 6, buckets), 7, bounds), 9, p.Attrs)
	b = fixed(b, 11, math.Float64bits(float64(p.Min)))
	return fixed(b, 12, math.Float64bits(float64(p.Max)))
}

// recordProto encodes a LogRecord.
func recordProto(r *telemetry.Record) []byte {
	b := instant(nil, 1, r.At)
	b = number(b, 2, uint64(r.Severity()))
	b = text(b, 3, r.Level)
	b = message(b, 5, text(nil, 1, valid(r.Text)))
	b = attrs(b, 6, r.Attrs)
	if r.Span != [8]byte{} {
		b = protowire.AppendTag(b, 8, protowire.Fixed32Type)
		b = protowire.AppendFixed32(b, uint32(r.Flags))
		b = message(message(b, 9, r.Trace[:]), 10, r.Span[:])
	}
	return instant(b, 11, r.At)
}

// request encodes a request with records.
func (s source) request(records [][]byte) []byte {
	size := 0
	for _, r := range records {
		size += len(r) + 8
	}
	in := make([]byte, 0, size+64)
	in = message(in, 1, text(nil, 1, s.scope))
	for _, r := range records {
		in = message(in, 2, r)
	}
	of := message(nil, 1, attrs(nil, 1, s.attrs))
	return message(nil, 1, message(of, 2, in))
}

// rejected returns the number of records that the receiver rejected, and the reason. An invalid
// response rejects none.
func rejected(answer []byte) (n int64, why string) {
	field(answer, func(num protowire.Number, typ protowire.Type, v []byte) {
		if num != 1 || typ != protowire.BytesType {
			return
		}
		field(v, func(num protowire.Number, typ protowire.Type, v []byte) {
			switch {
			case num == 1 && typ == protowire.VarintType:
				x, _ := protowire.ConsumeVarint(v)
				n = int64(x)
			case num == 2 && typ == protowire.BytesType:
				why = string(v)
			}
		})
	})
	return n, why
}

// field calls f for each field of a message until an invalid one. It passes the content of fields
// with a length, and the encoded value of others.
func field(b []byte, f func(protowire.Number, protowire.Type, []byte)) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, typ, b)
		if size < 0 {
			return
		}
		v := b[:size]
		if typ == protowire.BytesType {
			v, _ = protowire.ConsumeBytes(v)
		}
		f(num, typ, v)
		b = b[size:]
	}
}
