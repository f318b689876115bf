package estate

import (
	"bytes"
	"strings"
	"sync"
)

// # What hooks write
//
// Lines are told while the hook runs. Both streams of it go through one pipe where
// they are told alike, so that their lines keep their order. The last lines are kept
// for the error, since errors blocks look for what a program said.

const (
	longestLine = 64 << 10 // bytes; longer ones are told in pieces
	lastLines   = 20       // of a hook that failed
)

// hookOutput is what one hook writes.
type hookOutput struct {
	mu   sync.Mutex
	last []string
}

// stream makes a writer that tells lines; tell may be nil.
func (o *hookOutput) stream(tell func(line string)) *hookStream {
	return &hookStream{o: o, tell: tell}
}

// tail is the last that was written, "" if that is nothing.
func (o *hookOutput) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.last, "\n")
}

// A hookStream is one stream, written to by one goroutine.
type hookStream struct {
	o    *hookOutput
	tell func(line string)
	part []byte // of a line that has not ended
}

func (s *hookStream) Write(b []byte) (int, error) {
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
func (s *hookStream) flush() {
	if len(s.part) > 0 {
		s.line(s.part)
		s.part = nil
	}
}

// line tells one line, as a terminal would have it at its end: what was written over
// by a carriage return is gone.
func (s *hookStream) line(b []byte) {
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
