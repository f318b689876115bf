package lock

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"
)

// A Hash is a checksum with its scheme. "h1:" and base64 is the hash of the names and contents of
// a package's files (Go's dirhash, version 1); it is the same for a directory and for its
// archive. "zh:" and hexadecimal is the SHA256 of the archive.
type Hash string

// Scheme returns the part before the colon, or "" if there is none.
func (h Hash) Scheme() string {
	scheme, _, ok := strings.Cut(string(h), ":")
	if !ok {
		return ""
	}
	return scheme
}

// ZipHash returns the "zh:" hash for the SHA256 of an archive, in hexadecimal.
func ZipHash(sum string) Hash { return Hash("zh:" + sum) }

// HashDir returns the h1 hash of a directory. It follows symbolic links, and stops when ctx ends.
func HashDir(ctx context.Context, dir string) (Hash, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	files, err := dirhash.DirFiles(real, "")
	if err != nil {
		return "", err
	}
	for i, f := range files {
		files[i] = filepath.ToSlash(f)
	}
	h, err := dirhash.Hash1(files, func(name string) (io.ReadCloser, error) {
		f, err := os.Open(filepath.Join(real, filepath.FromSlash(name)))
		return ctxReader{ctx, f}, err
	})
	return Hash(h), err
}

// HashArchive returns the h1 hash of a zip archive, which is the hash of the directory it
// contains. It is an error if the archive unpacks to more than maxBytes.
func HashArchive(ctx context.Context, path string, maxBytes int64) (Hash, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return "", err
	}
	defer z.Close()
	byName := make(map[string]*zip.File, len(z.File))
	var names []string
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if byName[f.Name] != nil {
			return "", fmt.Errorf("the archive holds %q twice", f.Name)
		}
		byName[f.Name] = f
		names = append(names, f.Name)
	}
	left := maxBytes
	h, err := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) {
		r, err := byName[name].Open()
		if err != nil {
			return nil, err
		}
		return bounded{ctxReader{ctx, r}, &left}, nil
	})
	return Hash(h), err
}

// HashZip returns the zh hash of an archive.
func HashZip(ctx context.Context, path string) (Hash, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, ctxReader{ctx, f}); err != nil {
		return "", err
	}
	return ZipHash(hex.EncodeToString(sum.Sum(nil))), nil
}

type ctxReader struct {
	ctx context.Context
	io.ReadCloser
}

func (r ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}

type bounded struct {
	io.ReadCloser
	left *int64
}

func (r bounded) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if *r.left -= int64(n); *r.left < 0 {
		return n, fmt.Errorf("the archive unpacks to more than is allowed")
	}
	return n, err
}

// HasScheme reports whether one of the hashes has the scheme.
func HasScheme(hs []Hash, scheme string) bool {
	return slices.ContainsFunc(hs, func(h Hash) bool { return h.Scheme() == scheme })
}

func sortHashes(hs []Hash) []Hash {
	hs = slices.Clone(hs)
	slices.Sort(hs)
	return slices.Compact(hs)
}
