package sys

import (
	"os"
	"sync"
)

// stream is Stdout or Stderr of the process.
type stream struct {
	f    *os.File
	by   *unread
	lost *Lost // gets the errors of Stdout; nil for Stderr, where nothing could be reported
}

// An OutputError is the error of a write to Stdout or Stderr of the process. That of Stdout is
// in System.Lost, and is reported when the command ends.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// Write implements io.Writer. What nobody reads is dropped.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	if brokenPipe(err) && s.by.found() {
		return len(p), nil
	}
	if err != nil {
		s.lost.Note("Standard output", err)
		err = &OutputError{err}
	}
	return n, err
}

// A Lost knows which output of a command could not be written, as on a disk that is full. Its
// methods may be called concurrently; a nil Lost notes nothing.
type Lost struct {
	mu   sync.Mutex
	what string
	err  error
}

// Note notes an error of a write. what begins a sentence, such as "Standard output". Only the
// first error is kept.
func (l *Lost) Note(what string, err error) {
	if l == nil || err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.what, l.err = what, err
	}
}

// First returns the error that was noted first, and what could not be written; nil for none.
func (l *Lost) First() (what string, err error) {
	if l == nil {
		return "", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.what, l.err
}

// unread is what streams of the process tell when nobody reads them any more, as the first
// program in "terrace plan | head -1".
type unread struct {
	mu     sync.Mutex
	gone   chan struct{} // nil until watch is called
	closed bool
}

// watch implements System.Unread.
func (u *unread) watch() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone == nil {
		u.gone = make(chan struct{})
		surviveBrokenPipes()
	}
	return u.gone
}

// found records that a stream has no reader. It reports whether watch was called.
func (u *unread) found() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone != nil && !u.closed {
		u.closed = true
		close(u.gone)
	}
	return u.gone != nil
}

// fileOf returns the file behind a writer or reader, which a child can use directly, or nil.
func fileOf(w any) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *stream:
		return w.f
	}
	return nil
}
