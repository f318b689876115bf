//go:build unix

package readfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Devices are rejected immediately, under any name.
func TestDevices(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/zero", link} {
		if _, err := Whole(path); !errors.Is(err, errDevice) {
			t.Errorf("Whole(%s): %v", path, err)
		}
		if _, err := Given(path); !errors.Is(err, errDevice) {
			t.Errorf("Given(%s): %v", path, err)
		}
		if _, err := Open(path); !errors.Is(err, errDevice) {
			t.Errorf("Open(%s): %v", path, err)
		}
	}
	null := filepath.Join(t.TempDir(), "null")
	if err := os.Symlink(os.DevNull, null); err != nil {
		t.Fatal(err)
	}
	if b, err := Whole(null); err != nil || len(b) > 0 {
		t.Errorf("a link to %s: %q, %v", os.DevNull, b, err)
	}
}

// A named pipe is read until the writer closes it, even if it is opened for writing later.
// Without a writer, reading ends after a timeout.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pipe); !errors.Is(err, errPipe) {
		t.Errorf("Open: %v", err)
	}
	if _, err := Whole(pipe); !errors.Is(err, errNoWriter) {
		t.Errorf("nobody writes: %v", err)
	}
	want := strings.Repeat("text\n", 100000)
	done := make(chan error)
	go func() {
		time.Sleep(50 * time.Millisecond)
		done <- os.WriteFile(pipe, []byte(want), 0o600)
	}()
	if b, err := Given(pipe); err != nil || string(b) != want {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A file from a shell's <(…) is read to its end.
func TestStreams(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("SKIP: there is no /dev/fd here")
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		_, _ = w.WriteString("x = 1\n")
		_ = w.Close()
	}()
	if b, err := Given(path); err != nil || string(b) != "x = 1\n" {
		t.Errorf("%q, %v", b, err)
	}
}
