// Package sealing defines the interface between storage (states, plans, journal records)
// and encryption.
//
// Main type: Sealer. The one rule: callers know neither the content nor the format of
// encrypted data. States, plans and records have a Sealer each.
package sealing

import (
	"bytes"
	"io"
)

// Sealer encrypts and decrypts data. Its methods may be called concurrently.
type Sealer interface {
	// Seal encrypts a plaintext. sealed writes the payload and may be called repeatedly.
	Seal(p Plaintext) (sealed func(io.Writer) error, err error)
	// Open decrypts a payload of size bytes; 0 means up to the end of r. A payload that is
	// not encrypted is an error, unless the configuration allows it. migrate reports that
	// the payload is not in the form that Seal writes now (clear text or an older method),
	// so that it must be rewritten even if nothing changed.
	Open(r io.Reader, size int64) (plain io.Reader, migrate bool, err error)
}

// Plaintext is the data to encrypt.
type Plaintext struct {
	Write func(io.Writer) error // writes the data; may be called repeatedly

	// Only for states: these are stored in clear text next to the encrypted data.
	Serial  uint64
	Lineage string
	Indent  bool // format the result for people, as in state files
}

// Append encrypts plain and appends the payload to dst.
func Append(s Sealer, dst, plain []byte) ([]byte, error) {
	write, err := s.Seal(Plaintext{Write: func(w io.Writer) error {
		_, err := w.Write(plain)
		return err
	}})
	if err != nil {
		return dst, err
	}
	b := bytes.NewBuffer(dst)
	err = write(b)
	return b.Bytes(), err
}

// Open decrypts a payload that Append returned.
func Open(s Sealer, payload []byte) ([]byte, error) {
	r, _, err := s.Open(bytes.NewReader(payload), int64(len(payload)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
