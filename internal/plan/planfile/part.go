package planfile

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/plan"
)

// A Packer compresses and decompresses the contents of plan files. The zero value is usable. It
// is safe for concurrent use. It reuses its buffers, which take about a megabyte.
type Packer struct{ writers, readers sync.Pool }

// A Part contains the data of one unit in a bundle: compressed texts by name. It must not be
// used while a text is added.
type Part struct {
	// Sealer encrypts texts in later calls of Put, and decrypts texts that are read. nil
	// disables encryption.
	Sealer sealing.Sealer

	by      *Packer
	members []packed // sorted by name
}

// sealedSuffix ends the names of encrypted members.
const sealedSuffix = ".sealed"

// packed is a member in the form in which it is stored in the archive.
type packed struct {
	name string
	body []byte
	size uint64 // size before compression, in bytes
	sum  uint32 // checksum of the text before compression
}

// stamp returns the modification time of all archive members. It is constant, so that equal
// plans result in equal files.
func stamp() time.Time { return time.Unix(1<<30, 0).UTC() }

func (m *packed) write(z *zip.Writer, name string) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: stamp(), CRC32: m.sum, CompressedSize64: uint64(len(m.body)), UncompressedSize64: m.size}
	if utf8.ValidString(name) {
		h.Flags = 1 << 11 // the flag for names in UTF-8
	}
	w, err := z.CreateRaw(h)
	if err == nil {
		_, err = w.Write(m.body)
	}
	return err
}

func (k *Packer) pack(name string, body []byte) (packed, error) {
	var b bytes.Buffer
	w, _ := k.writers.Get().(*flate.Writer)
	if w == nil {
		var err error
		if w, err = flate.NewWriter(&b, flate.BestSpeed); err != nil {
			return packed{}, err
		}
	} else {
		w.Reset(&b)
	}
	defer k.writers.Put(w)
	if _, err := w.Write(body); err != nil {
		return packed{}, err
	}
	if err := w.Close(); err != nil {
		return packed{}, err
	}
	return packed{name: name, body: bytes.Clone(b.Bytes()), size: uint64(len(body)), sum: crc32.ChecksumIEEE(body)}, nil
}

// NewPart returns an empty part.
func (k *Packer) NewPart() *Part { return &Part{by: k} }

// Put stores a text under a name and replaces an earlier one. The text is encrypted if the part
// has a sealer.
func (p *Part) Put(name string, body []byte) error {
	if p.Sealer == nil {
		return p.PutPlain(name, body)
	}
	sealed, err := sealing.Append(p.Sealer, nil, body)
	if err != nil {
		return fmt.Errorf("the plan cannot be encrypted: %w", err)
	}
	return p.PutPlain(name+sealedSuffix, sealed)
}

// PutPlain stores a text without encryption.
func (p *Part) PutPlain(name string, body []byte) error {
	m, err := p.by.pack(name, body)
	if err != nil {
		return err
	}
	i, have := p.find(name)
	if have {
		p.members[i] = m
		return nil
	}
	p.members = slices.Insert(p.members, i, m)
	return nil
}

// PutPlan stores a plan without its states, and replaces an earlier one.
func (p *Part) PutPlan(what *plan.Plan) error {
	body, err := encodePlan(what, Backend{})
	if err != nil {
		return err
	}
	return p.Put(planMember, body)
}

// Empty reports whether the part contains no texts.
func (p *Part) Empty() bool { return len(p.members) == 0 }

func (p *Part) find(name string) (int, bool) {
	return slices.BinarySearchFunc(p.members, name, func(m packed, name string) int { return strings.Compare(m.name, name) })
}

// Get returns the text with a name, or nil if there is none.
func (p *Part) Get(name string) ([]byte, error) {
	sealed, err := p.GetPlain(name + sealedSuffix)
	switch {
	case err != nil:
		return nil, err
	case sealed != nil && p.Sealer == nil:
		return nil, fmt.Errorf("%w; use it where its encryption is configured: in the directory of the unit, or with TF_ENCRYPTION", ErrSealed)
	case sealed != nil:
		plain, err := sealing.Open(p.Sealer, sealed)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSealed, err)
		}
		return plain, nil
	}
	return p.GetPlain(name)
}

// Sealed reports whether the plan of the part is encrypted.
func (p *Part) Sealed() bool {
	_, ok := p.find(planMember + sealedSuffix)
	return ok
}

// GetPlain returns a text that PutPlain stored, or nil if there is none.
func (p *Part) GetPlain(name string) ([]byte, error) {
	i, ok := p.find(name)
	if !ok {
		return nil, nil
	}
	var b bytes.Buffer
	b.Grow(int(min(p.members[i].size, 1<<20)))
	err := p.unpack(i, &b)
	return b.Bytes(), err
}

// Plan returns the plan of the part without its states, or nil if it has none.
func (p *Part) Plan() (*plan.Plan, error) {
	body, err := p.Get(planMember)
	if body == nil || err != nil {
		return nil, err
	}
	out, _, err := decodePlan(body)
	return out, err
}

// Check unpacks all members and returns an error if one is damaged.
func (p *Part) Check() error {
	for i := range p.members {
		if err := p.unpack(i, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// unpack decompresses a member. It returns an error if the text has another size than recorded,
// or is damaged.
func (p *Part) unpack(i int, into io.Writer) error {
	m := &p.members[i]
	if m.size > maxMember {
		return fmt.Errorf("the member %q holds more than %d bytes", m.name, maxMember)
	}
	src := bytes.NewReader(m.body)
	r, _ := p.by.readers.Get().(io.ReadCloser)
	if r == nil {
		r = flate.NewReader(src)
	} else if err := r.(flate.Resetter).Reset(src, nil); err != nil {
		return err
	}
	defer p.by.readers.Put(r)
	sum := crc32.NewIEEE()
	n, err := io.Copy(io.MultiWriter(into, sum), io.LimitReader(r, int64(m.size)+1))
	if err != nil || uint64(n) != m.size || sum.Sum32() != m.sum {
		return fmt.Errorf("%w: the member %q is not what was written", errTorn, m.name)
	}
	return nil
}
