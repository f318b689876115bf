package fetch

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
)

// telling returns the git option that enables or disables progress output.
func (w *work) telling() string {
	if w.Progress != nil {
		return "--progress"
	}
	return "--quiet"
}

// meter reads git's standard error. Progress lines, which may end with a carriage
// return, become progress of the package. All other lines are written to rest.
type meter struct {
	w    *work
	rest io.Writer
	line []byte
}

// maxLine is the number of bytes kept of each line; the rest is dropped.
const maxLine = 4096

func (m *meter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			m.line = append(m.line, p[:min(len(p), maxLine-min(len(m.line), maxLine))]...)
			break
		}
		m.line = append(m.line, p[:i]...)
		p = p[i+1:]
		if err := m.take(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// take handles one complete line.
func (m *meter) take() error {
	line := string(m.line)
	m.line = m.line[:0]
	if strings.TrimSpace(line) == "" {
		return nil
	}
	if m.w.Progress == nil || !aboutProgress(line) {
		_, err := io.WriteString(m.rest, line+"\n")
		return err
	}
	if n, ok := received(line); ok {
		m.w.arrived(n, 0)
	}
	return nil
}

// flush handles the last line if it has no end.
func (m *meter) flush() {
	if len(m.line) > 0 {
		_ = m.take() // cannot fail: rest is a buffer
	}
}

// progressWords are the beginnings of git's progress lines.
var progressWords = []string{"Enumerating ", "Counting ", "Compressing ", "Receiving ", "Unpacking ", "Total ", "Resolving ", "Updating ", "Filtering ", "Checking ", "Cloning into "}

func aboutProgress(line string) bool {
	line = strings.TrimPrefix(line, "remote: ")
	return slices.ContainsFunc(progressWords, func(w string) bool { return strings.HasPrefix(line, w) })
}

var gitUnits = map[string]float64{"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// received parses "Receiving objects:  45% (9/20), 1.50 MiB | 3.00 MiB/s".
func received(line string) (bytes int64, ok bool) {
	rest, ok := strings.CutPrefix(line, "Receiving objects: ")
	if !ok {
		return 0, false
	}
	_, rest, _ = strings.Cut(rest, ", ")
	f := strings.Fields(strings.ReplaceAll(rest, ",", " "))
	if len(f) < 2 || gitUnits[f[1]] == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(f[0], 64)
	return int64(n * gitUnits[f[1]]), err == nil && n >= 0 && n < 1<<40
}
