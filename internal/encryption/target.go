package encryption

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Target seals and opens what one target of the configuration is about. Its methods
// may be called concurrently.
type Target struct {
	c       *Config
	ctx     context.Context
	methods []string // the one that seals, then those that open too
	// read says that a data source reads by it, which is the place of what goes wrong.
	read bool
}

// Errors of opening.
var (
	ErrPlain      = errors.New("encountered unencrypted payload without unencrypted method configured; to encrypt what is not encrypted yet, give the target a fallback with a method \"unencrypted\" until everything was written once")
	ErrNoMetadata = errors.New("no decryption key available: the metadata of the key provider is not in the file; if the key provider was renamed, set encrypted_metadata_alias to its old name")
)

// Sealed reports whether a file looks like one that Seal made.
func Sealed(b []byte) bool {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return false
	}
	var head struct {
		Version *string `json:"encryption_version"`
	}
	return json.Unmarshal(b, &head) == nil && head.Version != nil
}

// SealedPlan reports whether a file looks like one that SealPlan made.
func SealedPlan(b []byte) bool {
	var head struct {
		Lineage *string `json:"lineage"`
	}
	return Sealed(b) && json.Unmarshal(b, &head) == nil && head.Lineage == nil
}

// plain reports whether the target writes without encryption.
func (t *Target) plain() bool { return t.c.methods[t.methods[0]].typ == unencrypted }

// Seal implements store.Sealer.
func (t *Target) Seal(p store.Plaintext) (func(io.Writer) error, error) {
	if t.plain() {
		return p.Write, nil
	}
	var size counter
	if err := p.Write(&size); err != nil {
		return nil, err
	}
	e, err := t.seal(int64(size), p.Write)
	if err != nil {
		return nil, err
	}
	e.Serial, e.Lineage = &p.Serial, &p.Lineage
	return e.text(p.Indent)
}

// SealPlan seals a plan file.
func (t *Target) SealPlan(plain []byte) ([]byte, error) {
	if t.plain() {
		return plain, nil
	}
	e, err := t.seal(int64(len(plain)), whole(plain))
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

// seal encrypts size bytes that write writes.
func (t *Target) seal(size int64, write func(io.Writer) error) (*envelope, error) {
	meta := map[string][]byte{}
	data, err := t.c.encrypt(t.ctx, t.methods[0], size, write, meta)
	if err != nil {
		return nil, err
	}
	return &envelope{Meta: meta, Data: data, Version: version}, nil
}

// Open implements store.Sealer.
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

// OpenPlan opens what SealPlan made. Whatever is no sealed file is refused where the
// target wants encryption.
func (t *Target) OpenPlan(payload []byte) ([]byte, error) {
	if !Sealed(payload) {
		_, err := t.unsealed()
		return payload, err
	}
	e := &envelope{}
	if err := json.Unmarshal(payload, e); err != nil {
		return nil, damaged(err)
	}
	plain, _, err := t.open(e)
	return plain, err
}

// unsealed is an error unless the target takes what is not encrypted.
func (t *Target) unsealed() (migrate bool, err error) {
	for i, m := range t.methods {
		if t.c.methods[m].typ == unencrypted {
			return i > 0, nil
		}
	}
	return false, ErrPlain
}

// open decrypts an envelope, whose data is not to be used afterwards.
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
	if len(failed) > 1 { // which of them should have succeeded is not known
		err = &store.PlacedError{Err: err}
	}
	return nil, false, err
}

// Sealer is the target for stores; nil where there is none.
func (t *Target) Sealer() store.Sealer {
	if t == nil {
		return nil
	}
	return t
}

// A PlanSealer encrypts and decrypts plan files.
type PlanSealer interface {
	SealPlan(plain []byte) ([]byte, error)
	OpenPlan(sealed []byte) ([]byte, error)
}

// PlanSealer is the target for plan files; nil where there is none.
func (t *Target) PlanSealer() PlanSealer {
	if t == nil {
		return nil
	}
	return t
}

// A codec seals the records of a journal.
type codec struct{ t *Target }

// Codec is for the journal of a state that the target encrypts; nil where the target
// does not encrypt. t may be nil.
func (t *Target) Codec() journal.Codec {
	if t == nil || t.plain() {
		return nil
	}
	return codec{t}
}

// Seal appends a sealed record to dst: the length of the metadata, the metadata as
// JSON, and the data.
func (c codec) Seal(dst, plain []byte) ([]byte, error) {
	e, err := c.t.seal(int64(len(plain)), whole(plain))
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(e.Meta)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(meta)))
	return append(append(dst, meta...), e.Data...), nil
}

// Open appends what Seal was given to dst.
func (c codec) Open(dst, sealed []byte) ([]byte, error) {
	if len(sealed) < 4 {
		return nil, errors.New("the record is too short")
	}
	n := binary.BigEndian.Uint32(sealed)
	rest := sealed[4:]
	if uint64(n) > uint64(len(rest)) {
		return nil, errors.New("the record is too short")
	}
	var meta map[string][]byte
	if err := json.Unmarshal(rest[:n], &meta); err != nil {
		return nil, errors.New("the metadata of the record is damaged")
	}
	var failed error
	for _, m := range c.t.methods {
		if c.t.c.methods[m].typ == unencrypted {
			continue
		}
		plain, err := c.t.c.decrypt(c.t.ctx, m, rest[n:], meta, false)
		if err == nil {
			return append(dst, plain...), nil
		}
		failed = err
	}
	return nil, failed
}

// A setupError is a mistake in the configuration of a key provider or method, or a
// service that does not answer: trying others would hide it.
type setupError struct{ err error }

func (e *setupError) Error() string { return e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }
