package backend

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"iter"
	"sync"
)

// A Streamed is an Object that can transfer large contents without having them in memory. Its
// Read and Write are implemented by Collect, and by Send with Bytes.
type Streamed interface {
	Object
	// Fetch reads the content and passes it to take, which reads it to its end. If the transfer
	// breaks off, it is repeated and take is called again; only the last call counts, and only
	// if there is no error. If there is no content, take may get an empty reader or not be
	// called.
	Fetch(ctx context.Context, take func(io.Reader) error) (version string, err error)
	// Send is like Write with a Text.
	Send(ctx context.Context, t *Text, prior Prior, lock string) (version string, err error)
}

// A Sized reader knows its total size in bytes.
type Sized interface{ Size() int64 }

// SizeOf returns the total size of a reader in bytes; 0 if it is unknown.
func SizeOf(r io.Reader) int64 {
	if s, ok := r.(Sized); ok {
		return s.Size()
	}
	return 0
}

// Tee is like io.TeeReader. The result has the size of r.
func Tee(r io.Reader, w io.Writer) io.Reader {
	return As(io.TeeReader(r, w), r)
}

// As returns a reader of r with the size of another reader, if that is known.
func As(r, like io.Reader) io.Reader {
	if s, ok := like.(Sized); ok {
		return struct {
			io.Reader
			Sized
		}{r, s}
	}
	return r
}

// Collect reads the content of a Streamed into memory.
func Collect(ctx context.Context, o Streamed) (Payload, error) {
	var b bytes.Buffer
	version, err := o.Fetch(ctx, Fill(&b))
	switch {
	case err != nil:
		return Payload{}, err
	case b.Len() == 0:
		return Payload{Version: version}, nil
	}
	return Payload{Data: b.Bytes(), Version: version}, nil
}

// Fill returns a function for Fetch that reads the content into a buffer.
func Fill(b *bytes.Buffer) (take func(io.Reader) error) {
	return func(r io.Reader) error {
		b.Reset()
		_, err := b.ReadFrom(r)
		return err
	}
}

// Hash returns a function for Fetch that hashes the content.
func Hash(h hash.Hash) (take func(io.Reader) error) {
	return func(r io.Reader) error {
		h.Reset()
		_, err := io.Copy(h, r)
		return err
	}
}

// keep is the size in bytes up to which a text is kept in memory.
const keep = 1 << 20

// A Text is the content of a state to be written. A large text is encoded again each time it is
// read.
type Text struct {
	data   []byte // nil if the text is too large
	encode func(io.Writer) error
	size   int64
	sha    [sha256.Size]byte
	md5    [md5.Size]byte
}

// Bytes returns a Text with the given bytes.
func Bytes(b []byte) *Text {
	return &Text{data: b, size: int64(len(b)), sha: sha256.Sum256(b), md5: md5.Sum(b)}
}

// Encoded returns the Text that encode writes. encode must write the same bytes each time.
func Encoded(encode func(io.Writer) error) (*Text, error) {
	first := firstPass{sha: sha256.New(), md5: md5.New()}
	if err := encode(&first); err != nil {
		return nil, err
	}
	t := &Text{encode: encode, size: first.size}
	first.sha.Sum(t.sha[:0])
	first.md5.Sum(t.md5[:0])
	if first.size <= keep {
		t.data = first.head
	}
	return t, nil
}

// firstPass hashes a text and keeps a small one in memory.
type firstPass struct {
	sha, md5 hash.Hash
	size     int64
	head     []byte
}

func (f *firstPass) Write(b []byte) (int, error) {
	f.sha.Write(b)
	f.md5.Write(b)
	if f.size += int64(len(b)); f.size <= keep {
		f.head = append(f.head, b...)
	} else {
		f.head = nil
	}
	return len(b), nil
}

// Size returns the number of bytes.
func (t *Text) Size() int64 { return t.size }

// SHA256 returns the checksum of the text.
func (t *Text) SHA256() [sha256.Size]byte { return t.sha }

// MD5 returns the checksum of the text for services that require it.
func (t *Text) MD5() [md5.Size]byte { return t.md5 }

// Bytes returns the whole text.
func (t *Text) Bytes() ([]byte, error) {
	if t.data != nil || t.size == 0 {
		return t.data, nil
	}
	b := bytes.NewBuffer(make([]byte, 0, t.size))
	err := t.encode(b)
	return b.Bytes(), err
}

// Open returns a reader that starts at the beginning of the text.
func (t *Text) Open() io.ReadCloser {
	if t.data != nil || t.size == 0 {
		return io.NopCloser(bytes.NewReader(t.data))
	}
	return &textReader{encode: t.encode}
}

// A textReader encodes the text while it is read. Reading and closing may happen in two
// goroutines, as in package http.
type textReader struct {
	encode func(io.Writer) error

	mu    sync.Mutex
	begun bool
	ended bool
	next  func() ([]byte, bool)
	stop  func()
	rest  []byte
	err   error
}

var errClosed = errors.New("the text was closed")

// yields is a writer that passes written bytes to a function.
type yields func([]byte) bool

func (y yields) Write(b []byte) (int, error) {
	if !y(b) {
		return 0, errClosed
	}
	return len(b), nil
}

func (r *textReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun && !r.ended {
		r.begun = true
		r.next, r.stop = iter.Pull(func(yield func([]byte) bool) {
			if r.err = r.encode(yields(yield)); r.err == nil {
				r.err = io.EOF
			}
		})
	}
	for len(r.rest) == 0 {
		if r.ended {
			return 0, r.err
		}
		var more bool
		if r.rest, more = r.next(); !more {
			r.ended = true
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *textReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun && !r.ended {
		r.stop()
	}
	r.rest, r.ended, r.err = nil, true, errClosed
	return nil
}
