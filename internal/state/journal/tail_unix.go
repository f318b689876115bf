//go:build unix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile creates a file of zeros, readable by its owner only, and maps it into memory. The
// result is nil if that fails.
func mapFile(path string, size int) (memory []byte, unmap func()) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600) // a checkout may contain a link with this name
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		_ = os.Remove(path)
		return nil, nil
	}
	memory, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = os.Remove(path)
		return nil, nil
	}
	for i := 0; i < size; i += 4096 {
		memory[i] = 0 // allocates the page and makes it writable before it is needed
	}
	return memory, func() { _ = unix.Munmap(memory) }
}
