package statefile

import (
	"bytes"
	"encoding/base64"
	"math/big"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/state"
)

// An instance is one element of "instances": one object of a resource instance.
type instance struct {
	at          int // offset in the document, for messages
	key         addr.Key
	deposed     addr.DeposedKey
	provider    []byte // nil if the resource names the provider
	providerKey addr.Key
	obj         *state.Object
}

func (p *parser) instance(s *rawjson.Scanner, i *instance) error {
	s.Peek()
	i.at = s.Offset()
	i.obj = &state.Object{}
	if err := s.Object(func(key []byte) error { return p.instanceField(s, key, i) }); err != nil {
		return err
	}
	o := i.obj
	switch {
	case o.JSON == nil && o.Flat == nil:
		o.JSON = emptyObject
	case o.JSON != nil && o.Flat != nil: // as OpenTofu does
		o.Flat = nil
	}
	if o.Identity == nil {
		o.IdentityVersion = 0
	}
	return nil
}

var emptyObject = []byte("{}")

func (p *parser) instanceField(s *rawjson.Scanner, key []byte, i *instance) (err error) {
	o := i.obj
	switch string(key) {
	case "index_key":
		i.key, err = p.key(s)
	case "status":
		err = p.status(s, o)
	case "terrace_replace":
		err = p.replace(s, o)
	case "deposed":
		i.deposed, err = p.deposed(s)
	case "provider":
		i.provider, err = p.optBytes(s)
	case "schema_version":
		o.SchemaVersion, err = p.optInt(s, "schema version of an object")
	case "attributes":
		o.JSON, err = p.attributes(s)
	case "attributes_flat":
		err = p.flat(s, o)
	case "sensitive_attributes":
		o.Sensitive, err = p.paths(s)
	case "private":
		o.Private, err = p.private(s)
	case "dependencies":
		err = p.dependencies(s, o)
	case "create_before_destroy":
		o.CreateBeforeDestroy, err = optBool(s)
	case "skip_destroy":
		o.SkipDestroy, err = optBool(s)
	case "identity":
		if s.Null() {
			return nil
		}
		if p.outline {
			return s.Discard()
		}
		o.Identity, err = p.keep(s)
	case "identity_schema_version":
		o.IdentityVersion, err = p.optInt(s, "identity schema version of an object")
	default:
		if low := bytes.ToLower(key); !bytes.Equal(low, key) {
			return p.instanceField(s, low, i)
		}
		_, err = s.Skip()
	}
	return err
}

// attributes reads the attributes of an object. In an outline it keeps only the id.
func (p *parser) attributes(s *rawjson.Scanner) (out []byte, err error) {
	if !p.outline || s.Peek() != '{' {
		return p.keep(s)
	}
	err = s.Object(func(key []byte) error {
		if string(key) != "id" || s.Peek() != '"' {
			return s.Discard()
		}
		id, err := s.String()
		out = append(rawjson.AppendString([]byte(`{"id":`), id), '}')
		return err
	})
	return out, err
}

// Values share memory that is allocated in blocks. Each block is twice as large as the previous
// one: most states are small, and a run has many of them in memory.
const (
	firstChunk = 8 << 10
	mostChunk  = 256 << 10
)

// keep copies a value in canonical form into a shared block of memory.
func (p *parser) keep(s *rawjson.Scanner) ([]byte, error) {
	s.Peek()
	if cap(p.arena)-len(p.arena) < 4<<10 {
		size := min(mostChunk, max(firstChunk, 2*cap(p.arena)))
		if !p.stream {
			size = min(size, max(len(p.doc), 512))
		}
		p.arena = make([]byte, 0, size)
	}
	room := p.arena[len(p.arena):]
	out, err := s.AppendCompact(room)
	if err != nil {
		return nil, err
	}
	if cap(out) != cap(room) { // the value did not fit into the block and has its own memory
		return slices.Clip(bytes.Clone(out)), nil
	}
	p.arena = p.arena[:len(p.arena)+len(out)]
	return out[:len(out):len(out)], nil
}

func (p *parser) key(s *rawjson.Scanner) (addr.Key, error) {
	switch c := s.Peek(); {
	case c == '"':
		text, err := s.String()
		return addr.Str(text), err
	case c == 'n' && s.Null():
		return addr.Key{}, nil
	case c == '-' || '0' <= c && c <= '9':
		at := s.Offset()
		text, err := s.Number()
		if err != nil {
			return addr.Key{}, err
		}
		if n, err := strconv.ParseUint(string(text), 10, 53); err == nil {
			return addr.Int(int(n)), nil
		}
		if len(text) < 18 { // floats such as 1e0 or 1.0 are whole numbers, too
			f, _, err := big.ParseFloat(string(text), 10, 64, big.ToNearestEven)
			if n, exact := f.Int64(); err == nil && exact == big.Exact && n >= 0 {
				return addr.Int(int(n)), nil
			}
		}
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid instance key in state", "The instance key %s is not a whole number from zero on.", clip(text))
		return addr.Key{}, nil
	default:
		at := s.Offset()
		_, err := s.Skip()
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid instance key in state", "An instance key must be a string or a whole number.")
		return addr.Key{}, err
	}
}

func (p *parser) status(s *rawjson.Scanner, o *state.Object) error {
	s.Peek()
	at := s.Offset()
	text, err := optBytes(s)
	switch string(text) {
	case "":
	case "tainted":
		o.Tainted = true
	default:
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid object in state", "The status of an object is %q, but the only one there is is \"tainted\".", clip(text))
	}
	return err
}

// replace reads the reason for which an object is still to be replaced.
func (p *parser) replace(s *rawjson.Scanner, o *state.Object) error {
	s.Peek()
	at := s.Offset()
	text, err := optBytes(s)
	switch why := string(text); why {
	case "", state.ReplaceRequested, state.ReplaceTriggered:
		o.Replace = why
	default:
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid object in state", "The property terrace_replace of an object is %q, but it must be %q or %q.", clip(text), state.ReplaceRequested, state.ReplaceTriggered)
	}
	return err
}

func (p *parser) deposed(s *rawjson.Scanner) (addr.DeposedKey, error) {
	s.Peek()
	at := s.Offset()
	text, err := optBytes(s)
	if err != nil || len(text) == 0 {
		return "", err
	}
	ok := len(text) == 8
	for _, c := range text {
		ok = ok && ('0' <= c && c <= '9' || 'a' <= c && c <= 'f')
	}
	if !ok {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid object in state", "The key of a deposed object is %q, but it must be eight hexadecimal digits.", clip(text))
		return "", nil
	}
	return addr.DeposedKey(text), nil
}

func (p *parser) flat(s *rawjson.Scanner, o *state.Object) error {
	if s.Null() {
		return nil
	}
	o.Flat = make(map[string]string)
	return s.Object(func(key []byte) error {
		name := string(key)
		v, err := optString(s)
		o.Flat[name] = v
		return err
	})
}

func (p *parser) private(s *rawjson.Scanner) ([]byte, error) {
	s.Peek()
	at := s.Offset()
	text, err := optBytes(s)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	out, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid object in state", "The private data of an object is not valid base64.")
		return nil, nil
	}
	if len(out) == 0 || p.outline {
		return nil, nil
	}
	return out, nil
}

func (p *parser) dependencies(s *rawjson.Scanner, o *state.Object) error {
	if s.Null() {
		return nil
	}
	p.found = p.found[:0]
	err := s.Array(func() error {
		s.Peek()
		at := s.Offset()
		text, err := optBytes(s)
		if err != nil {
			return err
		}
		r, err := p.names.block(text)
		if err != nil {
			p.errorf(diag.CodeStateInvalidFile, at, "Invalid address in state", "The dependency %q is not the address of a resource: %s.", clip(text), reason(err))
			return nil
		}
		if !p.outline {
			p.found = append(p.found, r)
		}
		return nil
	})
	if len(p.found) > 0 {
		o.Dependencies = slices.Clone(p.found)
	}
	return err
}
