package rpc

import (
	"io"
	"strings"
	"sync"
)

// tail passes on the output of a plugin and keeps its end, for the message after an
// unexpected end of the plugin. It may be used concurrently.
type tail struct {
	out io.Writer // may be nil

	mu    sync.Mutex
	kept  []byte
	panic []byte // from the first line of a crash report, limited
}

const (
	tailSize  = 8 << 10
	panicSize = 4 << 10
	tailLines = 12
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(p)
	if t.out != nil {
		_, _ = t.out.Write(p) // an error of the log must not stop the plugin
	}
	return len(p), nil
}

func (t *tail) keep(p []byte) {
	if t.panic != nil {
		t.panic = append(t.panic, p[:min(len(p), panicSize-len(t.panic))]...)
		return
	}
	from := max(0, len(t.kept)-len("\nfatal error: "))
	t.kept = append(t.kept, p...)
	if i := crashAt(t.kept, from); i >= 0 {
		t.panic = append([]byte{}, t.kept[i:min(len(t.kept), i+panicSize)]...)
		return
	}
	if n := len(t.kept) - tailSize; n > tailSize { // not after each line
		t.kept = append(t.kept[:0], t.kept[n:]...)
	}
}

// crashAt returns the offset, from from on, of the line at which Go's runtime reports a crash.
func crashAt(b []byte, from int) int {
	s := string(b[from:])
	for _, sign := range []string{"panic: ", "fatal error: "} {
		if from == 0 && strings.HasPrefix(s, sign) {
			return 0
		}
		if i := strings.Index(s, "\n"+sign); i >= 0 {
			return from + i + 1
		}
	}
	return -1
}

// String returns the crash report, or else the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.panic != nil {
		return strings.TrimSpace(strings.ToValidUTF8(string(t.panic), "?"))
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "?")), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// ending returns the end of the output for the end of a message's detail, or "".
func (t *tail) ending() string {
	if t == nil {
		return ""
	}
	s := t.String()
	if s == "" {
		return ""
	}
	return "\n\nThe last that it wrote:\n  " + strings.ReplaceAll(s, "\n", "\n  ")
}
