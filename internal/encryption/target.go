package encryption

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Target seals and opens what one target of the configuration is about. Its methods
// may be called concurrently.
type Target struct {
	c       *Config
	ctx     context.Context
	methods []string // the one that seals, then those that open too
}

// version is that of the envelope, the only one there is.
const version = "v0"

// An envelope is sealed content with what is needed to open it. State has serial and
// lineage, which stay readable; a plan has neither.
type envelope struct {
	Serial  *uint64           `json:"serial,omitempty"`
	Lineage *string           `json:"lineage,omitempty"`
	Meta    map[string][]byte `json:"meta"`
	Data    []byte            `json:"encrypted_data"`
	Version string            `json:"encryption_version"`
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
func (t *Target) Seal(plain []byte, serial uint64, lineage string) ([]byte, error) {
	if t.plain() {
		return plain, nil
	}
	e, err := t.seal(plain)
	if err != nil {
		return nil, err
	}
	e.Serial, e.Lineage = &serial, &lineage
	return json.Marshal(e)
}

// SealPlan seals a plan file.
func (t *Target) SealPlan(plain []byte) ([]byte, error) {
	if t.plain() {
		return plain, nil
	}
	e, err := t.seal(plain)
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

func (t *Target) seal(plain []byte) (*envelope, error) {
	meta := map[string][]byte{}
	data, err := t.c.encrypt(t.ctx, t.methods[0], plain, meta)
	if err != nil {
		return nil, err
	}
	return &envelope{Meta: meta, Data: data, Version: version}, nil
}

// Open implements store.Sealer.
func (t *Target) Open(payload []byte) (plain []byte, migrate bool, err error) {
	plain, migrate, e, err := t.open(payload)
	if err != nil || e == nil {
		return plain, migrate, err
	}
	if e.Serial == nil || e.Lineage == nil {
		return plain, migrate, nil
	}
	var inside struct {
		Serial  uint64 `json:"serial"`
		Lineage string `json:"lineage"`
	}
	if err := json.Unmarshal(plain, &inside); err != nil {
		return nil, false, fmt.Errorf("what was encrypted is not a state: %w", err)
	}
	if inside.Serial != *e.Serial || inside.Lineage != *e.Lineage {
		return nil, false, errors.New("serial or lineage of the encrypted state differ from those beside it: the file was put together from two")
	}
	return plain, migrate, nil
}

// OpenPlan opens what SealPlan made. Whatever is no sealed file is refused where the
// target wants encryption.
func (t *Target) OpenPlan(payload []byte) ([]byte, error) {
	plain, _, _, err := t.open(payload)
	return plain, err
}

func (t *Target) open(payload []byte) (plain []byte, migrate bool, e *envelope, err error) {
	if !Sealed(payload) {
		for i, m := range t.methods {
			if t.c.methods[m].typ == unencrypted {
				return payload, i > 0, nil, nil
			}
		}
		return nil, false, nil, ErrPlain
	}
	e = &envelope{}
	if err := json.Unmarshal(payload, e); err != nil {
		return nil, false, nil, fmt.Errorf("the encrypted file is damaged: %w", err)
	}
	if e.Version != version {
		return nil, false, nil, fmt.Errorf("the file is encrypted in the version %q of the form; only %q is known", e.Version, version)
	}
	var failed []error
	for i, m := range t.methods {
		if t.c.methods[m].typ == unencrypted {
			continue
		}
		plain, err := t.c.decrypt(t.ctx, m, e.Data, e.Meta)
		if err == nil {
			return plain, i > 0, e, nil
		}
		var setup *setupError
		if errors.As(err, &setup) {
			return nil, false, nil, err
		}
		failed = append(failed, fmt.Errorf("%s: %w", m, err))
	}
	if len(failed) == 0 {
		return nil, false, nil, errors.New("the file is encrypted, and no method is configured that could decrypt it")
	}
	return nil, false, nil, fmt.Errorf("decryption failed for all provided methods: %w", errors.Join(failed...))
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
	e, err := c.t.seal(plain)
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
		plain, err := c.t.c.decrypt(c.t.ctx, m, rest[n:], meta)
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
