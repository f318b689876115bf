package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An archive is a published archive with the programs for one target.
type archive struct {
	System, Processor string // Go's names
	Name              string // the file name
	URL               string
	sum               [sha256.Size]byte
}

// SHA256 returns the checksum in hexadecimal digits.
func (a archive) SHA256() string { return hex.EncodeToString(a.sum[:]) }

// SRI returns the checksum in the form of Subresource Integrity, which Nix uses.
func (a archive) SRI() string { return "sha256-" + base64.StdEncoding.EncodeToString(a.sum[:]) }

// An entry is a file of an archive.
type entry struct {
	name string // in the archive
	path string // on disk
	mode fs.FileMode
}

// base returns the start of the names of the files for a target.
func (r *release) base(t target) string {
	return fmt.Sprintf("terrace_%s_%s_%s", r.source.version, t.system, t.processor)
}

// pack writes the archive of a target: a zip file for Windows, else a tar file.
func (r *release) pack(t target, g guides) (archive, error) {
	var entries []entry
	for _, program := range programs {
		entries = append(entries, entry{t.file(program), filepath.Join(r.programs(t), t.file(program)), 0o755})
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		entries = append(entries, entry{name, filepath.Join(r.root, name), 0o644})
	}
	entries = append(entries,
		entry{"completions/_terrace", g.completions["zsh"], 0o644},
		entry{"completions/terrace.bash", g.completions["bash"], 0o644},
		entry{"completions/terrace.fish", g.completions["fish"], 0o644})
	for _, page := range g.pages {
		entries = append(entries, entry{"man/man1/" + filepath.Base(page), page, 0o644})
	}
	name, write := r.base(t)+".tar.gz", writeTar
	if t.system == "windows" {
		name, write = r.base(t)+".zip", writeZip
	}
	path := filepath.Join(r.out, name)
	if err := createFile(path, func(w io.Writer) error { return write(w, r.source.time, entries) }); err != nil {
		return archive{}, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return archive{}, err
	}
	return archive{System: t.system, Processor: t.processor, Name: name, URL: r.address + "/" + name, sum: sha256.Sum256(b)}, nil
}

func writeTar(out io.Writer, at time.Time, entries []entry) error {
	z := gzip.NewWriter(out)
	w := tar.NewWriter(z)
	for _, e := range entries {
		b, err := os.ReadFile(e.path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(b)), ModTime: at}); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return z.Close()
}

func writeZip(out io.Writer, at time.Time, entries []entry) error {
	w := zip.NewWriter(out)
	for _, e := range entries {
		b, err := os.ReadFile(e.path)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		part, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(b); err != nil {
			return err
		}
	}
	return w.Close()
}

// createFile creates a file with the content that write writes.
func createFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return f.Close()
}
