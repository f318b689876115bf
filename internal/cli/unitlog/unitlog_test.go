package unitlog

import (
	"strings"
	"testing"
	"time"
)

// FuzzLogFormat checks that every format is either refused or can be written.
func FuzzLogFormat(f *testing.F) {
	f.Add("%time %level(case=upper) %msg")
	f.Add("%%%(")
	f.Fuzz(func(t *testing.T, form string) {
		parts, err := parseLogFormat(form)
		if err != nil {
			return
		}
		l := &Log{level: 6, format: "custom", parts: parts, now: func() time.Time { return time.Time{} }}
		if got := l.Lines("info", "u", "text"); !strings.HasSuffix(got, "\n") {
			t.Errorf("%q gives %q", form, got)
		}
	})
}
