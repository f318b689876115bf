package testprovider

import (
	"fmt"
	"os"
	"time"
)

// note appends a line to the record of calls. One write of one short line with
// O_APPEND is whole even if the process is killed at any moment.
func (s *server) note(word, op, name string) {
	path := s.settings().recordPath
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := fmt.Fprintf(f, "%s\t%s\t%s\n", word, op, name); err != nil {
		panic(err)
	}
}

// recorded writes a begin line now and the answered line when the function that
// it returns is called. With answered_delay_ms the answered line is written so
// long after, and only if the caller is still alive then: what such a line tells
// of was certainly received.
func (s *server) recorded(op, name string) (answered func()) {
	s.note("begin", op, name)
	return func() {
		d := s.settings().answeredDelay
		if d <= 0 {
			s.note("answered", op, name)
			return
		}
		parent := os.Getppid()
		time.AfterFunc(d, func() {
			if os.Getppid() == parent {
				s.note("answered", op, name)
			}
		})
	}
}
