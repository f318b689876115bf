package planfile

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// # Plans of many units
//
// A bundle is a zip archive, like a plan file. Its members, in this order:
//
//	format               "terrace estate plan", the format's number and the program's version, one per line
//	about                the caller's data about the whole bundle
//	parts/NUMBER/NAME    the data of one unit, by name: "plan" is its plan without the states
//
// Numbers count from 0, and the names of a part are in alphabetical order. Members are packed
// one by one as the caller provides them, and unpacked one by one on demand. A bundle therefore
// needs no more memory than its file.

// A Bundle contains the plans of many units.
type Bundle struct {
	About []byte
	Parts []*Part
	by    *Packer
}

const (
	bundleMagic = "terrace estate plan"
	planMember  = "plan"
)

// IsBundle reports whether a file of size bytes is a bundle of any version.
func IsBundle(r io.ReaderAt, size int64) bool {
	z, err := zip.NewReader(r, size)
	if err != nil || !begins(z) {
		return false
	}
	head, err := unpack(z.File[0], 1<<10)
	return err == nil && strings.HasPrefix(string(head), bundleMagic+"\n")
}

// WriteBundle writes a bundle. version is the version of the program.
func WriteBundle(w io.Writer, about []byte, parts iter.Seq[*Part], version string) error {
	z := zip.NewWriter(w)
	plain := func(name string, body []byte) error {
		m, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Modified: stamp()})
		if err == nil {
			_, err = m.Write(body)
		}
		return err
	}
	if err := errors.Join(plain("format", head(bundleMagic, version)), plain("about", about)); err != nil {
		return err
	}
	n := 0
	for part := range parts {
		for _, m := range part.members {
			if err := m.write(z, fmt.Sprintf("parts/%06d/%s", n, m.name)); err != nil {
				return err
			}
		}
		n++
	}
	return z.Close()
}

// ReadBundle reads a bundle of size bytes. The error wraps ErrNotPlan, ErrFolder or ErrVersion
// where these apply. It does not unpack the parts; use Part.Check to verify them.
func ReadBundle(r io.ReaderAt, size int64, version string) (*Bundle, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotPlan, err)
	}
	if begins(z) {
		if head, err := unpack(z.File[0], 1<<10); err == nil && strings.HasPrefix(string(head), magic+"\n") {
			return nil, ErrFolder
		}
	}
	if !begins(z) || len(z.File) < 2 || z.File[1].Name != "about" {
		return nil, fmt.Errorf("%w of an estate", ErrNotPlan)
	}
	head, err := unpack(z.File[0], 1<<10)
	if err != nil {
		return nil, err
	}
	if err := checkHead(bundleMagic, string(head), version); err != nil {
		return nil, err
	}
	b := &Bundle{by: new(Packer)}
	if b.About, err = unpack(z.File[1], maxMember); err != nil {
		return nil, err
	}
	left := size
	for _, m := range z.File[2:] {
		if err := b.take(m, &left); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// take adds a member, whose size must not exceed left. The limit rejects archives with
// overlapping members.
func (b *Bundle) take(m *zip.File, left *int64) error {
	name, mine := strings.CutPrefix(m.Name, fmt.Sprintf("parts/%06d/", len(b.Parts)-1))
	if !mine {
		if name, mine = strings.CutPrefix(m.Name, fmt.Sprintf("parts/%06d/", len(b.Parts))); mine {
			b.Parts = append(b.Parts, b.by.NewPart())
		}
	}
	if !mine {
		return fmt.Errorf("%w of an estate: it has a member %q in the wrong place", ErrNotPlan, m.Name)
	}
	part := b.Parts[len(b.Parts)-1]
	if n := len(part.members); n > 0 && part.members[n-1].name >= name {
		return fmt.Errorf("%w of an estate: it has a member %q in the wrong place", ErrNotPlan, m.Name)
	}
	if m.Method != zip.Deflate || m.CompressedSize64 > uint64(*left) {
		return fmt.Errorf("%w of an estate: the member %q is not packed as one", ErrNotPlan, m.Name)
	}
	*left -= int64(m.CompressedSize64)
	raw, err := m.OpenRaw()
	if err != nil {
		return fmt.Errorf("the member %q cannot be read: %w", m.Name, err)
	}
	body := make([]byte, m.CompressedSize64)
	if _, err := io.ReadFull(raw, body); err != nil {
		return fmt.Errorf("the member %q cannot be read: %w", m.Name, err)
	}
	part.members = append(part.members, packed{name: name, body: body, size: m.UncompressedSize64, sum: m.CRC32})
	return nil
}
