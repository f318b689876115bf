package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Kind is an archive format.
type Kind string

// The archive formats. The compression formats contain a single file.
const (
	Zip    Kind = "zip"
	Tar    Kind = "tar"
	TarGz  Kind = "tar.gz"
	TarBz2 Kind = "tar.bz2"
	TarXz  Kind = "tar.xz"
	Gz     Kind = "gz"
	Bz2    Kind = "bz2"
	Xz     Kind = "xz"
)

// KindOf returns the format that a file name's extension or the "archive" parameter of a
// source address names, or "".
func KindOf(name string) Kind {
	for _, c := range []struct {
		end  string
		kind Kind
	}{
		{"tar.gz", TarGz}, {"tgz", TarGz}, {"tar.bz2", TarBz2}, {"tbz2", TarBz2},
		{"tar.xz", TarXz}, {"txz", TarXz}, {"zip", Zip}, {"tar", Tar},
		{"gz", Gz}, {"bz2", Bz2}, {"xz", Xz},
	} {
		if name == c.end || strings.HasSuffix(name, "."+c.end) {
			return c.kind
		}
	}
	return ""
}

// Sniff returns the format that the first bytes of a file indicate, or "". It treats
// compressed data as a compressed tar archive.
func Sniff(head []byte) Kind {
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return Zip
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return TarGz
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return TarXz
	case bytes.HasPrefix(head, []byte("BZh")):
		return TarBz2
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return Tar
	}
	return ""
}

// File is an archive on disk.
type File struct {
	Path   string
	Kind   Kind
	Single string // the name for a single compressed file
}

// Unpack unpacks an archive into the existing directory dir, which should be empty. After
// an error, dir contains a part of the archive.
func Unpack(ctx context.Context, src File, dir string, lim Limits) error {
	f, err := os.Open(src.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := newWriter(ctx, dir, lim)
	if err != nil {
		return err
	}
	if src.Kind == Zip {
		st, err := f.Stat()
		if err == nil {
			err = w.zip(f, st.Size())
		}
		return w.close(err)
	}
	r, err := decompress(bufio.NewReaderSize(f, 1<<16), src.Kind)
	if err != nil {
		return w.close(err)
	}
	switch src.Kind {
	case Gz, Bz2, Xz:
		var name string
		if name, err = clean(src.Single); err == nil {
			err = w.file(name, 0o644, r)
		}
	default:
		err = w.tar(r)
	}
	return w.close(err)
}

func decompress(r io.Reader, kind Kind) (io.Reader, error) {
	switch kind {
	case TarGz, Gz:
		return gzip.NewReader(r)
	case TarBz2, Bz2:
		return bzip2.NewReader(r), nil
	case TarXz, Xz:
		return newXZ(r)
	case Tar:
		return r, nil
	}
	return nil, fmt.Errorf("%q is not a format of archives", kind)
}

func (w *writer) zip(r io.ReaderAt, size int64) error {
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	for _, f := range z.File {
		name, err := clean(f.Name)
		if err != nil {
			return err
		}
		if name == "." {
			continue
		}
		if err := w.zipEntry(name, f); err != nil {
			return err
		}
	}
	return w.finish()
}

func (w *writer) zipEntry(name string, f *zip.File) error {
	mode := f.Mode()
	if strings.HasSuffix(f.Name, "/") || mode.IsDir() {
		return w.dir(name)
	}
	if f.UncompressedSize64 > uint64(w.bytes) {
		return errors.New("the archive unpacks to more than is allowed")
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	switch {
	case mode&fs.ModeSymlink != 0:
		target, err := io.ReadAll(io.LimitReader(r, maxLink+1))
		if err != nil {
			return err
		}
		return w.symlink(name, string(target))
	case mode.IsRegular():
		return w.file(name, mode, r)
	}
	return fmt.Errorf("the archive holds %q, which is neither a file nor a directory nor a link", name)
}

func (w *writer) tar(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return w.finish()
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name, err := clean(h.Name)
		if err != nil {
			return err
		}
		if name == "." {
			continue
		}
		if err := w.tarEntry(name, h, t); err != nil {
			return err
		}
	}
}

func (w *writer) tarEntry(name string, h *tar.Header, t *tar.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return w.dir(name)
	case tar.TypeReg:
		return w.file(name, h.FileInfo().Mode(), t)
	case tar.TypeSymlink:
		return w.symlink(name, h.Linkname)
	case tar.TypeLink:
		target, err := clean(h.Linkname)
		if err != nil {
			return err
		}
		return w.hardlink(name, target)
	}
	return fmt.Errorf("the archive holds %q, which is neither a file nor a directory nor a link", name)
}

// hardlink copies a file that was already written, so that a later change of one does not
// change the other.
func (w *writer) hardlink(name, target string) error {
	st, err := w.root.Lstat(target)
	if err != nil || !st.Mode().IsRegular() {
		return fmt.Errorf("the archive holds the link %q to %q, which is not a file before it", name, target)
	}
	f, err := w.root.Open(target)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.file(name, st.Mode(), f)
}
