package readfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, Most+1); err != nil {
		t.Skip("SKIP: there are no sparse files here:", err)
	}
	for _, read := range []func(string) ([]byte, error){Whole, Given, Large} {
		if b, err := read(file); err != nil || len(b) != 5000 {
			t.Errorf("a file: %d bytes, %v", len(b), err)
		}
		if _, err := read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no file: %v", err)
		}
		if _, err := read(dir); err == nil {
			t.Error("a directory was read")
		}
		if b, err := read(os.DevNull); err != nil || len(b) != 0 {
			t.Errorf("%s: %d bytes, %v", os.DevNull, len(b), err)
		}
	}
	if _, err := Whole(large); !errors.Is(err, errLarge) {
		t.Errorf("a large file: %v", err)
	}
}
