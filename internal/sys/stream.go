package sys

import (
	"os"
	"sync"
)

// A stream is Stdout or Stderr of the process.
type stream struct {
	f  *os.File
	by *unread
}

// Write implements io.Writer. What nobody reads is dropped.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	if brokenPipe(err) && s.by.found() {
		return len(p), nil
	}
	return n, err
}

// unread is what streams of the process tell when nobody reads them any more, as the first
// program in "terrace plan | head -1".
type unread struct {
	mu     sync.Mutex
	gone   chan struct{} // nil: nobody asked
	closed bool
}

// watch is System.Unread.
func (u *unread) watch() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone == nil {
		u.gone = make(chan struct{})
		surviveBrokenPipes()
	}
	return u.gone
}

// found notes that a stream is not read, and reports whether somebody asked for that.
func (u *unread) found() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone != nil && !u.closed {
		u.closed = true
		close(u.gone)
	}
	return u.gone != nil
}

// fileOf is the file that a writer or reader is, so that a child gets it itself; nil if it
// is none.
func fileOf(w any) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *stream:
		return w.f
	}
	return nil
}
