package hooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The output of hooks is reported line by line, as soon as a line has ended.
func TestHookStream(t *testing.T) {
	var reported []string
	var o output
	s := o.open(func(line string) { reported = append(reported, line) })
	for _, step := range []struct {
		write    string
		reported []string
	}{
		{"one\ntw", []string{"one"}},
		{"o\n\nthree", []string{"two", ""}},
		{"\r\n10%\r20%", []string{"three"}},
		{"\r30%\r\n", []string{"30%"}},
		{strings.Repeat("x", longestLine), []string{strings.Repeat("x", longestLine)}},
		{"y\nlast", []string{"y"}},
	} {
		reported = nil
		if n, err := s.Write([]byte(step.write)); n != len(step.write) || err != nil {
			t.Fatalf("%q: %d, %v", step.write, n, err)
		}
		if diff := cmp.Diff(step.reported, reported); diff != "" {
			t.Errorf("%q (-want +got):\n%s", step.write, diff)
		}
	}
	reported = nil
	s.flush()
	s.flush()
	if diff := cmp.Diff([]string{"last"}, reported); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

// The last lines of a hook are kept whether or not the output is observed.
func TestHookTail(t *testing.T) {
	var o output
	s := o.open(nil)
	for range 5 {
		_, _ = s.Write([]byte("old\n"))
	}
	for range lastLines - 1 {
		_, _ = s.Write([]byte("new\n"))
	}
	_, _ = s.Write([]byte("end"))
	s.flush()
	if want := strings.Repeat("new\n", lastLines-1) + "end"; o.tail() != want {
		t.Errorf("got %q, want %q", o.tail(), want)
	}
}
