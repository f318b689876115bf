package pg

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// A tap is between a connection and the client library, which reads each message of the
// server into memory. If a value was requested, the tap passes the first value of a large
// row to take as it arrives, and the library gets the row with an empty value.
// https://www.postgresql.org/docs/current/protocol-message-formats.html
type tap struct {
	in     *bufio.Reader
	take   func(value io.Reader) error // nil if no value was requested
	taken  bool
	failed error // the error of take, after the value had arrived

	head   []byte // bytes to be read before the rest
	left   int64  // remaining bytes of the current message
	broken error  // the connection ended in the middle of a value
}

// frontend returns the library's reader and writer of the connection's messages.
func (t *tap) frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	*t = tap{in: bufio.NewReaderSize(r, 16<<10)} // the library tries several connections
	return pgproto3.NewFrontend(t, w)
}

// value passes the next large value to take.
func (t *tap) value(take func(io.Reader) error) { t.take, t.taken, t.failed = take, false, nil }

// Read implements io.Reader.
func (t *tap) Read(p []byte) (int, error) {
	if t.broken != nil {
		return 0, t.broken
	}
	for len(t.head) == 0 && t.left == 0 {
		if err := t.next(); err != nil {
			return 0, err
		}
	}
	if len(t.head) > 0 {
		n := copy(p, t.head)
		t.head = t.head[n:]
		return n, nil
	}
	n, err := t.in.Read(p[:min(int64(len(p)), t.left)])
	t.left -= int64(n)
	return n, err
}

// next reads the beginning of a message.
func (t *tap) next() error {
	const start = 1 + 4         // the kind, and the length without it
	const first = start + 2 + 4 // the number of values, and the length of the first one
	b, err := t.in.Peek(start)
	if err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint32(b[1:]))
	if b[0] != 'D' || size < large || t.take == nil || t.taken {
		t.left = 1 + size
		return nil
	}
	if b, err = t.in.Peek(first); err != nil {
		return err
	}
	length := int64(int32(binary.BigEndian.Uint32(b[first-4:])))
	if length < large || length > size-(first-1) { // missing, or the large value is not the first one
		t.left = 1 + size
		return nil
	}
	t.head = append([]byte{}, b...)
	binary.BigEndian.PutUint32(t.head[1:], uint32(size-length))
	binary.BigEndian.PutUint32(t.head[first-4:], 0)
	t.left = size - (first - 1) - length
	t.taken = true
	_, _ = t.in.Discard(first) // its bytes were peeked
	v := &value{in: t.in, left: length, size: length}
	t.failed = t.take(v)
	if _, err := io.Copy(io.Discard, v); err != nil {
		t.broken = fmt.Errorf("the answer broke off: %w", err)
		return t.broken
	}
	return nil
}

// A value is a value of a row.
type value struct {
	in         io.Reader
	left, size int64
}

// Size returns the size of the value in bytes.
func (v *value) Size() int64 { return v.size }

func (v *value) Read(p []byte) (int, error) {
	if v.left == 0 {
		return 0, io.EOF
	}
	n, err := v.in.Read(p[:min(int64(len(p)), v.left)])
	if v.left -= int64(n); v.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
