package sys

import (
	"os"
	"sync"
)

// stream is Stdout or Stderr of the process.
type stream struct {
	f    *os.File
	by   *unread
	lost *Lost // receives the errors of Stdout; nil for Stderr, whose errors cannot be reported
}

// An OutputError is the error of a write to Stdout or Stderr of the process. The error of
// Stdout is also recorded in System.Lost, and reported at the end of the command.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// Write implements io.Writer. Output without a reader is dropped.
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

// A Lost records which output of a command could not be written, for example because the
// disk is full. Its methods may be called concurrently; a nil Lost records nothing.
type Lost struct {
	mu   sync.Mutex
	what string
	err  error
}

// Note records a write error. what is the beginning of a sentence, such as "Standard
// output". Only the first error is kept.
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

// First returns the first recorded error, and the output that was lost; nil if there is
// none.
func (l *Lost) First() (what string, err error) {
	if l == nil {
		return "", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.what, l.err
}

// unread records that the reader of the output has ended, as in "terrace plan | head -1".
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
