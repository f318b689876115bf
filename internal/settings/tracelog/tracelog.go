// Package tracelog writes the log that TF_LOG and related variables enable: the steps of this
// program, and the logs of providers.
//
// Main type: Log. The one rule: a line contains names, source positions and times, and never the
// value of a variable, an argument or an environment variable.
package tracelog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// A Level is a log level. A log contains all lines up to its level.
type Level int

const (
	Off Level = iota
	Error
	Warn
	Info
	Debug
	Trace
)

var names = [...]string{"OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"}

// level parses the value of a variable. json means one JSON object per line.
func level(text string) (l Level, json, known bool) {
	text = strings.ToUpper(text)
	if text == "JSON" {
		return Trace, true, true
	}
	i := slices.Index(names[:], text)
	if text == "" {
		i = 0
	}
	return Level(max(i, 0)), false, i >= 0
}

// A Log writes lines. Its methods may be called concurrently. A nil Log ignores everything.
type Log struct {
	core, providers Level
	json            bool
	now             func() time.Time

	mu  sync.Mutex
	out io.Writer
}

// Open returns the log that the environment enables, or nil. TF_LOG sets the level for the
// program and for providers, TF_LOG_CORE and TF_LOG_PROVIDER set one of them. Lines are appended
// to the file in TF_LOG_PATH, which may be relative to dir, or otherwise written to stderr.
// Errors in these variables are written to stderr too. close may be called after the last line.
func Open(env sys.Env, dir string, stderr io.Writer, now func() time.Time) (l *Log, close func()) {
	close = func() {}
	l = &Log{now: now, out: stderr}
	var odd []string
	for name, into := range map[string]*Level{"TF_LOG_CORE": &l.core, "TF_LOG_PROVIDER": &l.providers} {
		text := cmp.Or(env.Get(name), env.Get("TF_LOG"))
		got, asJSON, known := level(text)
		if !known {
			got = Trace // as OpenTofu does
			odd = append(odd, text)
		}
		*into = got
		l.json = l.json || asJSON
	}
	if l.core == Off && l.providers == Off {
		return nil, close
	}
	if path := env.Get("TF_LOG_PATH"); path != "" {
		f, err := os.OpenFile(sys.Join(dir, path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err != nil {
			fmt.Fprintf(stderr, "Error opening log file: %v\n", err)
		} else {
			l.out, close = f, func() { f.Close() }
		}
	}
	slices.Sort(odd)
	for _, text := range slices.Compact(odd) {
		l.write(Warn, "", fmt.Sprintf("%q is no level of the log. Those that there are: TRACE, DEBUG, INFO, WARN, ERROR, OFF and JSON. It is taken for TRACE.", text))
	}
	return l, close
}

// Core reports whether lines of this program are logged.
func (l *Log) Core() bool { return l != nil && l.core > Off }

// Printf writes a line of this program.
func (l *Log) Printf(level Level, format string, args ...any) {
	if l.Core() && level <= l.core {
		l.write(level, "", fmt.Sprintf(format, args...))
	}
}

// Span writes a line about a span that has ended, and its errors.
func (l *Log) Span(s *telemetry.Span) {
	if !l.Core() {
		return
	}
	text := s.Name
	for _, a := range s.Attrs {
		text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
	}
	l.Printf(Debug, "%s took %s", text, s.Ended.Sub(s.Began).Round(time.Microsecond))
	for _, f := range s.Failures {
		l.Printf(Error, "%s: %s", s.Name, f.Message)
	}
}

// write writes a line. from is the provider that logged it; "" means this program.
func (l *Log) write(level Level, from, text string) {
	at := l.now()
	var b []byte
	if l.json {
		line := map[string]string{"@level": strings.ToLower(names[level]), "@message": text, "@timestamp": at.Format("2006-01-02T15:04:05.000000Z07:00")}
		if from != "" {
			line["@module"] = from
		}
		b, _ = json.Marshal(line) // marshaling strings never fails
		b = append(b, '\n')
	} else {
		if from != "" {
			from += ": "
		}
		b = fmt.Appendf(nil, "%s %-7s %s%s\n", at.Format("2006-01-02T15:04:05.000Z0700"), "["+names[level]+"]", from, text)
	}
	l.raw(b)
}

func (l *Log) raw(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(b) // a failure to log is ignored
}

// Provider returns the writer for the log of a provider's process, or nil if it is not logged.
func (l *Log) Provider(name string) io.Writer {
	if l == nil || l.providers == Off {
		return nil
	}
	return &lines{log: l, name: "provider." + name}
}

// lines splits the output of a process into lines.
type lines struct {
	log  *Log
	name string

	mu   sync.Mutex
	rest []byte // start of a line that has not ended
}

// maxLine is the maximum size, in bytes, of a buffered line. Longer lines are split.
const maxLine = 1 << 20

func (w *lines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		line, after, ended := bytes.Cut(w.rest, []byte("\n"))
		if !ended && len(line) < maxLine {
			return len(b), nil
		}
		w.line(bytes.TrimRight(line, "\r"))
		w.rest = append(w.rest[:0], after...)
	}
}

// line writes one line. Plugin libraries write lines that are JSON objects with a level.
func (w *lines) line(b []byte) {
	if len(b) == 0 {
		return
	}
	var of map[string]any
	if json.Unmarshal(b, &of) != nil || of["@message"] == nil {
		w.log.provided(Debug, w.name, string(b))
		return
	}
	at, _, known := level(fmt.Sprint(of["@level"]))
	if !known {
		at = Debug
	}
	if w.log.json && at <= w.log.providers {
		w.log.raw(append(slices.Clip(b), '\n'))
		return
	}
	text := fmt.Sprint(of["@message"])
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if !strings.HasPrefix(k, "@") {
			text += fmt.Sprintf(" %s=%v", k, of[k])
		}
	}
	w.log.provided(at, w.name, text)
}

func (l *Log) provided(at Level, from, text string) {
	if at <= l.providers {
		l.write(at, from, text)
	}
}
