package registrytest

import (
	"archive/zip"
	"bytes"
	"io"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"
)

// H1 returns the h1 hash of an archive.
func H1(t testing.TB, archive []byte) string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	h, err := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return z.Open(name) })
	if err != nil {
		t.Fatal(err)
	}
	return h
}
