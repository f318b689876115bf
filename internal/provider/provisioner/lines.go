package provisioner

import (
	"bytes"
	"sync"
	"time"
)

// maxLine is how much of a line is kept before it is handed on unfinished.
const maxLine = 64 << 10

// partialAfter is how long the start of a line waits for its end, so that a
// prompt is seen though it has no line break.
const partialAfter = 500 * time.Millisecond

// A liner cuts what is written to it into lines. A line ends with LF, CR LF or a
// lone CR, as progress bars have it. Its methods may be called concurrently.
type liner struct {
	mu    sync.Mutex
	emit  func(string)
	buf   []byte
	sawCR bool // the last byte was a CR: an LF that follows belongs to it
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

// flush hands on what has come of an unfinished line.
func (l *liner) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > 0 {
		l.put()
	}
}

// close hands on the rest; nothing comes afterwards.
func (l *liner) close() {
	l.timer.Stop()
	l.flush()
}

// A tail keeps the last n bytes of what is written to it.
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

// oneAtATime makes a function that may be called concurrently of one that may not.
func oneAtATime(f func(string)) func(string) {
	var mu sync.Mutex
	return func(s string) {
		mu.Lock()
		defer mu.Unlock()
		f(s)
	}
}
