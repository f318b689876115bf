package testprovider

import (
	"encoding/base64"
	"os"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
)

// dump appends the values of a call, as they went over the wire, to the file that
// the provider configuration names, for tests of what callers send.
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

// note appends a line to the record of calls. One write of one short line with
// O_APPEND is whole even if the process is killed at any moment.
func (s *server) note(word, op, name string) {
	appendLine(s.settings().recordPath, word, op, name)
}

// appendLine appends fields, with tabs between, to a file; none if the path is "".
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
