package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const sumsFile = "SHA256SUMS"

// A fileSum is the checksum of a file in the output directory.
type fileSum struct{ name, sha256 string }

// sums returns the checksums of the files that exist in the output directory, sorted by name.
func (r *release) sums() ([]fileSum, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	var out []fileSum
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		out = append(out, fileSum{e.Name(), hex.EncodeToString(sum[:])})
	}
	return out, nil
}

// checksums writes the checksums of all files in the form of sha256sum.
func (r *release) checksums() error {
	list, err := r.sums()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s  %s\n", s.sha256, s.name)
	}
	return os.WriteFile(filepath.Join(r.out, sumsFile), []byte(b.String()), 0o666)
}
