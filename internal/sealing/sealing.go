// Package sealing is the one seam between what is kept (states, plans, the records of
// journals) and who encrypts it.
//
// Main type: Sealer. The one rule: nobody above looks into what is sealed, or knows how it
// is written: each of the three kinds has a Sealer of its own, which knows its form.
package sealing

import (
	"bytes"
	"io"
)

// A Sealer encrypts what is written and decrypts what was read. Its methods may be
// called concurrently.
type Sealer interface {
	// Seal makes the payload of a plaintext. sealed writes it, each time the same.
	Seal(p Plaintext) (sealed func(io.Writer) error, err error)
	// Open gives back what Seal got, of which size bytes are read, or as many as there are
	// if size is 0. What is not sealed is an error, unless that is allowed. migrate says that
	// what was read is not in the form that Seal gives now (not encrypted, or with an older
	// method), so that it must be written anew even if nothing changed.
	Open(r io.Reader, size int64) (plain io.Reader, migrate bool, err error)
}

// A Plaintext is what is to be encrypted.
type Plaintext struct {
	Write func(io.Writer) error // writes it, each time the same

	// Of states alone, which have these beside what is encrypted.
	Serial  uint64
	Lineage string
	Indent  bool // for people's eyes, as state in files is
}

// Append appends the payload of bytes to dst.
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

// Open gives back the bytes that Append got, from their payload.
func Open(s Sealer, payload []byte) ([]byte, error) {
	r, _, err := s.Open(bytes.NewReader(payload), int64(len(payload)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
