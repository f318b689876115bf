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

// A Packer packs and unpacks what plan files hold. The zero Packer is ready, and it may
// be used concurrently. What it works with takes a megabyte, and is used again.
type Packer struct{ writers, readers sync.Pool }

// A Part is what a bundle holds of one unit: texts by their names, packed. It must not
// be used while something is put into it.
type Part struct {
	// Sealer encrypts what is put from then on, and decrypts what is asked for; nil does
	// neither.
	Sealer sealing.Sealer

	by      *Packer
	members []packed // by name
}

// sealedSuffix ends the names of members that are encrypted.
const sealedSuffix = ".sealed"

// packed is a member of an archive as it stands there.
type packed struct {
	name string
	body []byte
	size uint64 // unpacked
	sum  uint32 // of what was packed
}

// stamp is the time that all members of archives bear: equal plans are equal files.
func stamp() time.Time { return time.Unix(1<<30, 0).UTC() }

func (m *packed) write(z *zip.Writer, name string) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: stamp(), CRC32: m.sum, CompressedSize64: uint64(len(m.body)), UncompressedSize64: m.size}
	if utf8.ValidString(name) {
		h.Flags = 1 << 11 // says so
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

// NewPart is a part without anything in it.
func (k *Packer) NewPart() *Part { return &Part{by: k} }

// Put packs a text, in place of what the part had of that name, encrypted if the part has
// a sealer.
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

// PutPlain packs a text that is never encrypted.
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

// PutPlan packs a plan, without its states, in place of the one that the part had.
func (p *Part) PutPlan(what *plan.Plan) error {
	body, err := encodePlan(what, Backend{})
	if err != nil {
		return err
	}
	return p.Put(planMember, body)
}

// Empty reports whether nothing was put into the part.
func (p *Part) Empty() bool { return len(p.members) == 0 }

func (p *Part) find(name string) (int, bool) {
	return slices.BinarySearchFunc(p.members, name, func(m packed, name string) int { return strings.Compare(m.name, name) })
}

// Get is what a part has of a name; nil if there is nothing.
func (p *Part) Get(name string) ([]byte, error) {
	sealed, err := p.GetPlain(name + sealedSuffix)
	switch {
	case err != nil:
		return nil, err
	case sealed != nil && p.Sealer == nil:
		return nil, fmt.Errorf("%w; use it where its encryption is configured: in the folder of the unit, or with TF_ENCRYPTION", ErrSealed)
	case sealed != nil:
		plain, err := sealing.Open(p.Sealer, sealed)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSealed, err)
		}
		return plain, nil
	}
	return p.GetPlain(name)
}

// Sealed reports whether the plan of a part is encrypted.
func (p *Part) Sealed() bool {
	_, ok := p.find(planMember + sealedSuffix)
	return ok
}

// GetPlain is what a part has of a name as PutPlain packed it; nil if there is nothing.
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

// Plan is the plan of a part, without its states; nil if it has none.
func (p *Part) Plan() (*plan.Plan, error) {
	body, err := p.Get(planMember)
	if body == nil || err != nil {
		return nil, err
	}
	out, _, err := decodePlan(body)
	return out, err
}

// Check unpacks everything, and reports an error if it is not as it was packed.
func (p *Part) Check() error {
	for i := range p.members {
		if err := p.unpack(i, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// unpack hands out what was packed: no more than its size says, and whole.
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
