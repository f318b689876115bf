//go:build unix

package atomicfile

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe, or a device such as /dev/null, is written to and not replaced. Only root could
// replace it, which would break every other program.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("pipe", link); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func() error{
		"Write":         func() error { return Write(path, []byte("text"), 0o600) },
		"Write, link":   func() error { return Write(link, []byte("text"), 0o600) },
		"WriteUnlinked": func() error { return WriteUnlinked(path, []byte("text"), 0o600) },
	} {
		f, err := os.OpenFile(path, os.O_RDWR, 0) // prevents the writer from blocking
		if err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if st, err := os.Lstat(path); err != nil || st.Mode().Type() != os.ModeNamedPipe {
			t.Fatalf("%s: the pipe was replaced: %v %v", name, st, err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(f, got); err != nil || string(got) != "text" {
			t.Errorf("%s: %q %v", name, got, err)
		}
		f.Close()
	}
}
