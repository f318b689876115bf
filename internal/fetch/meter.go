package fetch

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
)

// telling is the option of git's transfers: progress where somebody watches.
func (w *work) telling() string {
	if w.Progress != nil {
		return "--progress"
	}
	return "--quiet"
}

// A meter reads what git writes to its standard error: lines about progress,
// which end with a carriage return while they are drawn over, become progress of
// the package, everything else goes on to rest.
type meter struct {
	w    *work
	rest io.Writer
	line []byte
}

// maxLine bounds what is kept of a line.
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

// take handles a line that has ended.
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

// flush hands on a last line without an end.
func (m *meter) flush() {
	if len(m.line) > 0 {
		_ = m.take() // rest is a buffer
	}
}

// progressWords begin what git writes about its progress.
var progressWords = []string{"Enumerating ", "Counting ", "Compressing ", "Receiving ", "Unpacking ", "Total ", "Resolving ", "Updating ", "Filtering ", "Checking ", "Cloning into "}

func aboutProgress(line string) bool {
	line = strings.TrimPrefix(line, "remote: ")
	return slices.ContainsFunc(progressWords, func(w string) bool { return strings.HasPrefix(line, w) })
}

var gitUnits = map[string]float64{"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// received reads "Receiving objects:  45% (9/20), 1.50 MiB | 3.00 MiB/s".
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
