package hooks

import (
	"bytes"
	"strings"
	"sync"
)

// # Output of hooks
//
// Lines are reported while the hook runs. If both streams are reported the same way, they use one
// pipe, so that their lines keep their order. The last lines are kept for the error message,
// since errors blocks match the output of a program.

const (
	longestLine = 64 << 10 // in bytes; longer lines are split
	lastLines   = 20       // number of lines that the error of a hook contains
)

// output collects the output of one hook.
type output struct {
	mu   sync.Mutex
	last []string
}

// open returns a writer that passes lines to tell, which may be nil.
func (o *output) open(tell func(line string)) *stream {
	return &stream{o: o, tell: tell}
}

// tail returns the last lines that were written, or "" if there are none.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.last, "\n")
}

// A stream is one output stream, written to by one goroutine.
type stream struct {
	o    *output
	tell func(line string)
	part []byte // start of a line that has not ended
}

func (s *stream) Write(b []byte) (int, error) {
	s.part = append(s.part, b...)
	rest := s.part
	for {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if !ended && len(line) < longestLine {
			break
		}
		s.line(line)
		rest = after
	}
	s.part = append(s.part[:0], rest...)
	return len(b), nil
}

// flush reports a last line without a newline.
func (s *stream) flush() {
	if len(s.part) > 0 {
		s.line(s.part)
		s.part = nil
	}
}

// line reports one line as a terminal would show it: text before the last carriage return is
// dropped.
func (s *stream) line(b []byte) {
	b = bytes.TrimRight(b, "\r")
	text := string(b[bytes.LastIndexByte(b, '\r')+1:])
	if s.o.mu.Lock(); len(s.o.last) == lastLines {
		s.o.last = append(s.o.last[:0], s.o.last[1:]...)
	}
	s.o.last = append(s.o.last, text)
	s.o.mu.Unlock()
	if s.tell != nil {
		s.tell(text)
	}
}
