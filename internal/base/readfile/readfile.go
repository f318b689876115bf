// Package readfile reads untrusted files: a checkout can contain a named pipe or a link to
// a device in place of any file.
//
// Main functions: Whole, Given, Large and Open; Kept caches file contents for a command.
// The one rule: every read ends in bounded time and memory.
package readfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Most is the maximum size of a configuration or variable file, in bytes.
const Most = 256 << 20

// Timeouts of a named pipe: until a program opens it for writing, and between two writes.
const (
	noWriter      = time.Second
	noWriterGiven = 10 * time.Second // for a pipe that the user named
	silence       = 30 * time.Second
)

var (
	errLarge    = errors.New("it is larger than 256 MiB")
	errDevice   = errors.New("it is a device, not a file")
	errPipe     = errors.New("it is a named pipe, not a file")
	errSocket   = errors.New("it is a socket, not a file")
	errNoWriter = errors.New("it is a named pipe, and no program writes into it")
	errSilent   = errors.New("it is a named pipe, and nothing came from it for 30 seconds")
)

// Whole reads a configuration or variable file, like os.ReadFile. It returns an error for
// a device other than /dev/null. It reads a named pipe to its end.
func Whole(path string) ([]byte, error) { return read(path, Most, noWriter) }

// Large is like Whole without a limit of the size, for example for states.
func Large(path string) ([]byte, error) { return read(path, -1, noWriter) }

// Given is like Whole for a file that the user named on the command line. The file may be
// a stream of the process, such as /dev/stdin or the file of a shell's <(…).
func Given(path string) ([]byte, error) {
	p := filepath.ToSlash(filepath.Clean(path))
	if p != "/dev/stdin" && !strings.HasPrefix(p, "/dev/fd/") && !strings.HasPrefix(p, "/proc/self/fd/") {
		return read(path, Most, noWriterGiven)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return all(f, path, Most)
}

// Open opens a regular file.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = Regular(path, info)
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
}

// Regular returns an error for devices, pipes and sockets. Directories pass, since opening
// one as a file fails anyway.
func Regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() || info.IsDir() {
		return nil
	}
	return refused("open", path, info.Mode())
}

func refused(op, path string, mode fs.FileMode) error {
	why := errDevice
	switch {
	case mode&fs.ModeNamedPipe != 0:
		why = errPipe
	case mode&fs.ModeSocket != 0:
		why = errSocket
	}
	return &fs.PathError{Op: op, Path: path, Err: why}
}

func read(path string, most int64, patience time.Duration) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	case err != nil || info.Mode().IsRegular() || info.IsDir():
		// the caller's open reports other errors, and directories
	case info.Mode()&fs.ModeNamedPipe != 0:
		return readPipe(path, patience)
	case filepath.Clean(path) == os.DevNull || isNull(info):
		return nil, nil
	default:
		return nil, refused("read", path, info.Mode())
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0) // the file may have been replaced with a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return all(f, path, most)
}

// isNull reports whether a file is /dev/null under another name.
func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}

// all reads a file to its end. It returns an error beyond most bytes; a negative most
// means no limit.
func all(f *os.File, path string, most int64) ([]byte, error) {
	var size int64
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	if most >= 0 && size > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errLarge}
	}
	b := make([]byte, 0, size+512) // files in /proc report a size of 0
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		if most >= 0 && int64(len(b)) > most {
			return nil, &fs.PathError{Op: "read", Path: path, Err: errLarge}
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// readPipe reads a named pipe. It waits for patience until a program opens it for writing.
func readPipe(path string, patience time.Duration) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b []byte
	piece := make([]byte, 64<<10)
	const pause = 10 * time.Millisecond
	for waited := time.Duration(0); ; {
		if err := f.SetReadDeadline(deadline(silence)); err != nil {
			return nil, refused("read", path, fs.ModeNamedPipe) // the system cannot wait for it
		}
		n, err := f.Read(piece)
		b = append(b, piece[:n]...)
		switch {
		case len(b) > Most:
			return nil, &fs.PathError{Op: "read", Path: path, Err: errLarge}
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, &fs.PathError{Op: "read", Path: path, Err: errSilent}
		case errors.Is(err, io.EOF) && len(b) > 0:
			return b, nil
		case errors.Is(err, io.EOF) && waited >= patience:
			return nil, &fs.PathError{Op: "read", Path: path, Err: errNoWriter}
		case errors.Is(err, io.EOF):
			time.Sleep(pause)
			waited += pause
		case err != nil:
			return nil, err
		}
	}
}

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }
