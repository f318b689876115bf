package provisioner

import (
	"bytes"
	"sync"
	"time"
)

// maxLine is the length, in bytes, after which an unfinished line is passed on.
const maxLine = 64 << 10

// partialAfter is the time after which an unfinished line is passed on, so that the user
// sees a prompt without a line break.
const partialAfter = 500 * time.Millisecond

// A liner splits its input into lines. A line ends with LF, CR LF or a single CR, which
// progress bars write. Its methods may be called concurrently.
type liner struct {
	mu    sync.Mutex
	emit  func(string)
	buf   []byte
	sawCR bool // the last byte was a CR, and a following LF belongs to it
	timer *time.Timer
}

func newLiner(emit func(string)) *liner {
	l := &liner{emit: emit}
	l.timer = time.AfterFunc(time.Hour, l.flush)
	l.timer.Stop()
	return l
}

func (l *liner) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		if l.sawCR {
			l.sawCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			l.keep(p)
			break
		}
		l.buf = append(l.buf, p[:end]...)
		l.put()
		l.sawCR = p[end] == '\r'
		p = p[end+1:]
	}
	if len(l.buf) > 0 {
		l.timer.Reset(partialAfter)
	}
	return n, nil
}

func (l *liner) keep(p []byte) {
	for len(l.buf)+len(p) >= maxLine {
		room := maxLine - len(l.buf)
		l.buf = append(l.buf, p[:room]...)
		l.put()
		p = p[room:]
	}
	l.buf = append(l.buf, p...)
}

func (l *liner) put() {
	l.emit(string(l.buf))
	l.buf = l.buf[:0]
}

// flush passes on an unfinished line.
func (l *liner) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > 0 {
		l.put()
	}
}

// close passes on the rest. Nothing may be written afterwards.
func (l *liner) close() {
	l.timer.Stop()
	l.flush()
}

// A tail keeps the last n bytes written to it.
type tail struct {
	n   int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.n; over > t.n {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.buf[max(0, len(t.buf)-t.n):]) }

// oneAtATime returns a function that may be called concurrently and calls f one at a time.
func oneAtATime(f func(string)) func(string) {
	var mu sync.Mutex
	return func(s string) {
		mu.Lock()
		defer mu.Unlock()
		f(s)
	}
}
