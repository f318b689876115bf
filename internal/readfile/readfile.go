// Package readfile reads files that somebody else may have chosen: a checkout can hold a
// named pipe or a link to a device in the place of every file.
//
// Main functions: Whole, Given, Large and Open; Kept opens each file once for a command. The
// one rule: a read ends, in bounded time and memory.
package readfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Most is how large a file of configuration or values may be.
const Most = 256 << 20

// How long nothing may come from a named pipe: before there is somebody who writes, and
// afterwards.
const (
	noWriter      = time.Second
	noWriterGiven = 10 * time.Second // to a pipe that the user names
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

// Whole reads a file of configuration or values, as os.ReadFile does. A device is refused,
// but for the one that is always empty; from a named pipe it reads while somebody writes.
func Whole(path string) ([]byte, error) { return read(path, Most, noWriter) }

// Large is Whole for files that may have any size, such as states.
func Large(path string) ([]byte, error) { return read(path, -1, noWriter) }

// Given is Whole for a file that the user names on the command line, which may be a stream
// of the process itself, such as /dev/stdin, or what a shell makes of <(…).
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

// Regular refuses what is neither a regular file nor a folder, which is left to who opens it.
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
	case err != nil || info.Mode().IsRegular() || info.IsDir():
		// what there is to say of a missing file and of a folder says who opens it
	case info.Mode()&fs.ModeNamedPipe != 0:
		return readPipe(path, patience)
	case filepath.Clean(path) == os.DevNull || isNull(info):
		return nil, nil
	default:
		return nil, refused("read", path, info.Mode())
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0) // it may have become a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return all(f, path, most)
}

// isNull reports whether a file is the device that is always empty, by another name.
func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}

// all reads to the end, and at most so much; no limit if that is negative.
func all(f *os.File, path string, most int64) ([]byte, error) {
	var size int64
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	if most >= 0 && size > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errLarge}
	}
	b := make([]byte, 0, size+512) // files of the kernel say that they are empty
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

// readPipe reads what a program writes into a named pipe. That one may begin a little later.
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
			return nil, refused("read", path, fs.ModeNamedPipe) // it cannot be waited for
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
