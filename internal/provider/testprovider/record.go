package testprovider

import (
	"encoding/base64"
	"os"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
)

// dump appends the encoded values of a call to the file in the provider configuration, for tests
// that check the values that callers send.
func (s *server) dump(call, typ, name string, values ...*pb6.Value) {
	path := s.settings().dumpPath
	if path == "" {
		return
	}
	fields := []string{call, typ, name}
	for _, v := range values {
		fields = append(fields, base64.StdEncoding.EncodeToString(v.GetMsgpack()))
	}
	appendLine(path, fields...)
}

// note appends a line to the record of calls. A single short write with O_APPEND is
// complete even if the process is killed at any moment.
func (s *server) note(word, op, name string) {
	appendLine(s.settings().recordPath, word, op, name)
}

// appendLine appends tab-separated fields to a file. It does nothing if the path is "".
func appendLine(path string, fields ...string) {
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString(strings.Join(fields, "\t") + "\n"); err != nil {
		panic(err)
	}
}

// recorded writes a begin line immediately, and the answered line when answered is called.
// With answered_delay_ms it writes the answered line after that delay, and only if the
// caller is still alive. So the caller has received every response with such a line.
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
