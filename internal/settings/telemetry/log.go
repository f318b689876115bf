package telemetry

import (
	"context"
	"time"
)

// A Record is one message or line of output for the user.
type Record struct {
	At    time.Time
	Level string // "error", "warn", "info" and other keys of severities
	Text  string
	Attrs []Attr
	Trace [16]byte // trace of the current span; zeros mean none
	Span  [8]byte
	Flags byte
}

// severities contains the numbers of levels (OpenTelemetry logs data model, severity fields).
var severities = map[string]int{"trace": 1, "debug": 5, "info": 9, "stdout": 9, "warn": 13, "error": 17, "stderr": 17}

// Severity returns the number of the record's level.
func (r *Record) Severity() int { return severities[r.Level] }

// Log exports a record of output, if logs are exported. about is the subject of the text, such as
// a unit; "" means the run.
func Log(ctx context.Context, level, text, about string) {
	at, _ := ctx.Value(contextKey{}).(*in)
	if at == nil || at.tracer.o.Logs == nil || text == "" {
		return
	}
	if redact := at.tracer.o.Redact; redact != nil {
		text = redact(text)
	}
	r := &Record{At: at.tracer.o.Now(), Level: level, Text: text}
	if about != "" {
		r.Attrs = []Attr{{"prefix", about}}
	}
	if s := at.span; s != nil && s.Traced() {
		r.Trace, r.Span, r.Flags = s.Trace, s.ID, s.Flags
	}
	at.tracer.o.Logs(r)
}
