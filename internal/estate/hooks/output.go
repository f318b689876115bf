package hooks

import (
	"bytes"
	"strings"
	"sync"
)

// # What hooks write
//
// Lines are reported while the hook runs. Both streams of it go through one pipe where
// they go the same way, so that their lines keep their order. The last lines are kept
// for the error, since errors blocks look for what a program said.

const (
	longestLine = 64 << 10 // bytes; longer ones come in pieces
	lastLines   = 20       // of a hook that failed
)

// output is what one hook writes.
type output struct {
	mu   sync.Mutex
	last []string
}

// open makes a writer that tells lines; tell may be nil.
func (o *output) open(tell func(line string)) *stream {
	return &stream{o: o, tell: tell}
}

// tail is the last that was written, "" if that is nothing.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.last, "\n")
}

// A stream is one stream, written to by one goroutine.
type stream struct {
	o    *output
	tell func(line string)
	part []byte // of a line that has not ended
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

// flush tells a line that never ended.
func (s *stream) flush() {
	if len(s.part) > 0 {
		s.line(s.part)
		s.part = nil
	}
}

// line tells one line, as a terminal would have it at its end: what was written over
// by a carriage return is gone.
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
