package planfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// # Plans of many units
//
// A bundle is a zip archive as well. Its members, in this order:
//
//	format                "terrace estate plan", the format's number and the program's version, a line each
//	about                 what the caller has to say about all of it
//	parts/NUMBER/notes    what the caller has to say about one unit
//	parts/NUMBER/plan     its plan, a plan file; missing if it has none

// A Bundle holds the plans of many units.
type Bundle struct {
	About []byte
	Parts []Part
}

// A Part is one unit of a bundle.
type Part struct {
	Notes []byte
	File  *File // nil if there is no plan
}

const bundleMagic = "terrace estate plan"

// IsBundle reports whether a file of size bytes is a bundle, of whatever version.
func IsBundle(r io.ReaderAt, size int64) bool {
	z, err := zip.NewReader(r, size)
	if err != nil || !begins(z) {
		return false
	}
	head, err := unpack(z.File[0], 1<<10)
	return err == nil && strings.HasPrefix(string(head), bundleMagic+"\n")
}

// WriteBundle saves a bundle, whose parts it asks for one by one. version is that of
// the program.
func WriteBundle(w io.Writer, about []byte, parts iter.Seq2[Part, error], version string) error {
	var pack packer
	z := zip.NewWriter(w)
	member := func(name string, body []byte, method uint16) error {
		m, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: time.Unix(1<<30, 0).UTC()})
		if err == nil {
			_, err = m.Write(body)
		}
		return err
	}
	err := errors.Join(
		member("format", []byte(bundleMagic+"\n"+format+"\n"+version+"\n"), zip.Deflate),
		member("about", about, zip.Deflate),
	)
	var body bytes.Buffer
	n := 0
	for p, failed := range parts {
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		err = member(fmt.Sprintf("parts/%06d/notes", n), p.Notes, zip.Deflate)
		if p.File != nil && err == nil {
			body.Reset()
			if err = pack.write(&body, p.File, version); err == nil {
				err = member(fmt.Sprintf("parts/%06d/plan", n), body.Bytes(), zip.Store) // it is packed already
			}
		}
		n++
	}
	return errors.Join(err, z.Close())
}

// ReadBundle reads a bundle of size bytes. The error wraps ErrNotPlan or
// ErrVersion where these apply.
func ReadBundle(r io.ReaderAt, size int64, version string) (*Bundle, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotPlan, err)
	}
	if !begins(z) || len(z.File) < 2 || len(z.File) > maxFiles || z.File[1].Name != "about" {
		return nil, fmt.Errorf("%w of an estate", ErrNotPlan)
	}
	head, err := unpack(z.File[0], 1<<10)
	if err != nil {
		return nil, err
	}
	if err := checkHead(bundleMagic, string(head), version); err != nil {
		return nil, err
	}
	b := &Bundle{}
	if b.About, err = unpack(z.File[1], maxMember); err != nil {
		return nil, err
	}
	var total int64
	for _, m := range z.File[2:] {
		body, err := unpack(m, maxMember)
		if err != nil {
			return nil, err
		}
		if total += int64(len(body)); total > 2*maxMember {
			return nil, fmt.Errorf("the plan file holds more than %d bytes", 2*maxMember)
		}
		if err := b.take(m.Name, body, version); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// take takes a member in: the notes of a part begin it, and its plan may follow.
func (b *Bundle) take(name string, body []byte, version string) error {
	last := len(b.Parts) - 1
	switch {
	case name == fmt.Sprintf("parts/%06d/notes", last+1):
		b.Parts = append(b.Parts, Part{Notes: body})
	case last >= 0 && name == fmt.Sprintf("parts/%06d/plan", last) && b.Parts[last].File == nil:
		f, err := Read(bytes.NewReader(body), int64(len(body)), version)
		if err != nil {
			return err
		}
		b.Parts[last].File = f
	default:
		return fmt.Errorf("%w of an estate: it has a member %q in the wrong place", ErrNotPlan, name)
	}
	return nil
}
