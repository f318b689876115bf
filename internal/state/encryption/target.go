package encryption

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Target encrypts and decrypts one kind of content. It is safe for concurrent use.
type Target struct {
	c       *Config
	ctx     context.Context
	methods []string // the method for encryption, then its fallbacks for decryption
	// read means that the target belongs to a data source, to which messages refer.
	read bool
}

// Errors of decryption.
var (
	ErrPlain      = errors.New("encountered unencrypted payload without unencrypted method configured; to encrypt what is not encrypted yet, give the target a fallback with a method \"unencrypted\" until everything was written once")
	ErrNoMetadata = errors.New("no decryption key available: the metadata of the key provider is not in the file; if the key provider was renamed, set encrypted_metadata_alias to its old name")
)

// Sealed reports whether a file looks like a state that Seal encrypted.
func Sealed(b []byte) bool {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return false
	}
	var head struct {
		Version *string `json:"encryption_version"`
	}
	return json.Unmarshal(b, &head) == nil && head.Version != nil
}

// SealedPlan reports whether a file looks like a plan that Plans encrypted.
func SealedPlan(b []byte) bool {
	var head struct {
		Lineage *string `json:"lineage"`
	}
	return Sealed(b) && json.Unmarshal(b, &head) == nil && head.Lineage == nil
}

// plain reports whether the target writes unencrypted content.
func (t *Target) plain() bool { return t.c.methods[t.methods[0]].typ == unencrypted }

// Seal implements sealing.Sealer for states.
func (t *Target) Seal(p sealing.Plaintext) (func(io.Writer) error, error) {
	if t.plain() {
		return p.Write, nil
	}
	e, err := t.sealed(p)
	if err != nil {
		return nil, err
	}
	e.Serial, e.Lineage = &p.Serial, &p.Lineage
	return e.text(p.Indent)
}

// sealed encrypts a plaintext.
func (t *Target) sealed(p sealing.Plaintext) (*envelope, error) {
	var size counter
	if err := p.Write(&size); err != nil {
		return nil, err
	}
	meta := map[string][]byte{}
	data, err := t.c.encrypt(t.ctx, t.methods[0], int64(size), p.Write, meta)
	if err != nil {
		return nil, err
	}
	return &envelope{Meta: meta, Data: data, Version: version}, nil
}

// Open implements sealing.Sealer for states.
func (t *Target) Open(r io.Reader, size int64) (plain io.Reader, migrate bool, err error) {
	e, rest, err := readEnvelope(r, size)
	if err != nil {
		return nil, false, err
	}
	if e == nil {
		migrate, err = t.unsealed()
		return rest, migrate, err
	}
	text, migrate, err := t.open(e)
	if err != nil && t.read {
		err = &store.PlacedError{Err: err}
	}
	if err != nil || e.Serial == nil || e.Lineage == nil {
		return bytes.NewReader(text), migrate, err
	}
	var inside struct {
		Serial  uint64 `json:"serial"`
		Lineage string `json:"lineage"`
	}
	if err := json.Unmarshal(text, &inside); err != nil {
		return nil, false, fmt.Errorf("what was encrypted is not a state: %w", err)
	}
	if inside.Serial != *e.Serial || inside.Lineage != *e.Lineage {
		return nil, false, errors.New("serial or lineage of the encrypted state differ from those beside it: the file was put together from two")
	}
	return bytes.NewReader(text), migrate, nil
}

// unsealed returns an error unless the target accepts unencrypted content.
func (t *Target) unsealed() (migrate bool, err error) {
	for i, m := range t.methods {
		if t.c.methods[m].typ == unencrypted {
			return i > 0, nil
		}
	}
	return false, ErrPlain
}

// open decrypts an envelope, whose data is overwritten.
func (t *Target) open(e *envelope) (plain []byte, migrate bool, err error) {
	if e.Version != version {
		return nil, false, fmt.Errorf("the file is encrypted in the version %q of the form; only %q is known", e.Version, version)
	}
	last := -1
	for i, m := range t.methods {
		if t.c.methods[m].typ != unencrypted {
			last = i
		}
	}
	var failed []error
	for i, m := range t.methods {
		if t.c.methods[m].typ == unencrypted {
			continue
		}
		plain, err := t.c.decrypt(t.ctx, m, e.Data, e.Meta, i == last)
		if err == nil {
			return plain, i > 0, nil
		}
		var setup *setupError
		if errors.As(err, &setup) {
			return nil, false, err
		}
		err = fmt.Errorf("%s: %w", m, err)
		if store.PlaceOf(err) == nil {
			err = &store.PlacedError{At: t.c.methods[m].at, Err: err}
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		return nil, false, errors.New("the file is encrypted, and no method is configured that could decrypt it")
	}
	err = fmt.Errorf("decryption failed for all provided methods: %w", errors.Join(failed...))
	if len(failed) > 1 { // it is unknown which method should have succeeded
		err = &store.PlacedError{Err: err}
	}
	return nil, false, err
}

// States returns the sealer for states; nil if t is nil.
func (t *Target) States() sealing.Sealer {
	if t == nil {
		return nil
	}
	return t
}

// Plans returns the sealer for plan files and for the parts of bundles; nil if t is nil.
func (t *Target) Plans() sealing.Sealer {
	if t == nil {
		return nil
	}
	return plans{t}
}

// Records returns the sealer for journal records; nil if t is nil or does not encrypt.
func (t *Target) Records() sealing.Sealer {
	if t == nil || t.plain() {
		return nil
	}
	return records{t}
}

// plans encrypts texts as envelopes without serial and lineage.
type plans struct{ t *Target }

func (s plans) Seal(p sealing.Plaintext) (func(io.Writer) error, error) {
	if s.t.plain() {
		return p.Write, nil
	}
	e, err := s.t.sealed(p)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(e)
	return whole(b), err
}

func (s plans) Open(r io.Reader, _ int64) (plain io.Reader, migrate bool, err error) {
	payload, err := io.ReadAll(r)
	if err != nil {
		return nil, false, err
	}
	if !Sealed(payload) {
		migrate, err = s.t.unsealed()
		return bytes.NewReader(payload), migrate, err
	}
	e := &envelope{}
	if err := json.Unmarshal(payload, e); err != nil {
		return nil, false, damaged(err)
	}
	text, migrate, err := s.t.open(e)
	return bytes.NewReader(text), migrate, err
}

// records encrypts journal records: the length of the metadata, the metadata as JSON, and the
// data.
type records struct{ t *Target }

func (s records) Seal(p sealing.Plaintext) (func(io.Writer) error, error) {
	e, err := s.t.sealed(p)
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(e.Meta)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		head := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(meta)), uint32(len(meta)))
		if _, err := w.Write(append(head, meta...)); err != nil {
			return err
		}
		_, err := w.Write(e.Data)
		return err
	}, nil
}

func (s records) Open(r io.Reader, _ int64) (plain io.Reader, migrate bool, err error) {
	sealed, err := io.ReadAll(r)
	if err != nil {
		return nil, false, err
	}
	if len(sealed) < 4 {
		return nil, false, errors.New("the record is too short")
	}
	n := binary.BigEndian.Uint32(sealed)
	rest := sealed[4:]
	if uint64(n) > uint64(len(rest)) {
		return nil, false, errors.New("the record is too short")
	}
	var meta map[string][]byte
	if err := json.Unmarshal(rest[:n], &meta); err != nil {
		return nil, false, errors.New("the metadata of the record is damaged")
	}
	var failed error
	for i, m := range s.t.methods {
		if s.t.c.methods[m].typ == unencrypted {
			continue
		}
		text, err := s.t.c.decrypt(s.t.ctx, m, rest[n:], meta, false)
		if err == nil {
			return bytes.NewReader(text), i > 0, nil
		}
		failed = err
	}
	return nil, false, failed
}

// A setupError is an error in the configuration of a key provider or method, or of a service
// that does not respond. Trying other methods would hide it.
type setupError struct{ err error }

func (e *setupError) Error() string { return e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }
