package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/filelock"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"golang.org/x/mod/sumdb/dirhash"
)

// entry is one file of a tree. Directories are listed too, so that empty ones are kept.
type entry struct {
	Path string      `json:"path"`
	Mode fs.FileMode `json:"mode"` // file type, and 0111 if the file is executable
	Size int64       `json:"size,omitempty"`
	Time int64       `json:"time,omitempty"` // modification time, in nanoseconds
	Link string      `json:"link,omitempty"`
}

func validTree(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

func (f *Fetcher) treeDir(name string) string { return filepath.Join(f.Dir, "tree", name) }

// HashTree returns the h1 hash of a module package: Go's dirhash of its files. A symbolic link
// counts as a file with the content "symlink " and its target. A directory .git at the top is
// ignored.
func HashTree(ctx context.Context, dir string) (lock.Hash, error) {
	entries, err := list(ctx, dir)
	if err != nil {
		return "", err
	}
	return hashEntries(ctx, dir, entries)
}

func hashEntries(ctx context.Context, dir string, entries []entry) (lock.Hash, error) {
	links := make(map[string]string)
	var names []string
	for _, e := range entries {
		if e.Mode.IsDir() {
			continue
		}
		names = append(names, e.Path)
		if e.Link != "" {
			links[e.Path] = e.Link
		}
	}
	h, err := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if target, ok := links[name]; ok {
			return io.NopCloser(strings.NewReader("symlink " + target)), nil
		}
		return os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	})
	return lock.Hash(h), err
}

// list returns the files of a package directory in lexical order.
func list(ctx context.Context, dir string) ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel == "." {
			return nil
		}
		if rel == ".git" || rel == ".hg" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		e, err := describe(path, filepath.ToSlash(rel), d)
		if err != nil {
			return err
		}
		out = append(out, e)
		return nil
	})
	return out, err
}

func describe(path, rel string, d fs.DirEntry) (entry, error) {
	info, err := d.Info()
	if err != nil {
		return entry{}, err
	}
	e := entry{Path: rel, Mode: info.Mode().Type()}
	switch {
	case info.Mode().IsDir():
	case info.Mode().IsRegular():
		e.Mode |= info.Mode() & 0o111
		if e.Mode&0o111 != 0 {
			e.Mode |= 0o111
		}
		e.Size, e.Time = info.Size(), info.ModTime().UnixNano()
	case info.Mode()&fs.ModeSymlink != 0:
		if e.Link, err = os.Readlink(path); err != nil {
			return e, err
		}
	default:
		return e, fmt.Errorf("the package holds %q, which is neither a file nor a directory nor a link", rel)
	}
	return e, nil
}

// keep moves the directory of a fetched package into the cache.
func (f *Fetcher) keep(ctx context.Context, dir string) (tree string, hash lock.Hash, err error) {
	for _, meta := range []string{".git", ".hg"} {
		if err := removeAll(filepath.Join(dir, meta)); err != nil {
			return "", "", err
		}
	}
	entries, err := list(ctx, dir)
	if err != nil {
		return "", "", err
	}
	if err := insideLinks(dir, entries); err != nil {
		return "", "", err
	}
	if hash, err = hashEntries(ctx, dir, entries); err != nil {
		return "", "", err
	}
	if tree, err = treeName(hash, entries); err != nil {
		return "", "", err
	}
	// The same content may be fetched for several addresses concurrently, each with its own lock.
	unlock, err := filelock.Lock(ctx, filepath.Join(f.Dir, "lock", tree))
	if err != nil {
		return "", "", err
	}
	defer unlock()
	if f.intactNow(ctx, tree) {
		return tree, hash, nil
	}
	if err := readOnly(dir, entries); err != nil {
		return "", "", err
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return "", "", err
	}
	place := f.treeDir(tree)
	if err := removeAll(place); err != nil {
		return "", "", err
	}
	if err := os.Rename(dir, place); err != nil {
		return "", "", err
	}
	err = atomicfile.WriteMode(place+".json", text, 0o644)
	return tree, hash, err
}

// treeName returns the name of a tree: a hash of its content and of the properties that the h1
// hash ignores, which are execute permissions and empty directories.
func treeName(hash lock.Hash, entries []entry) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(hash), "h1:"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(raw)
	for _, e := range entries {
		fmt.Fprintf(sum, "%o %q %q\n", e.Mode, e.Path, e.Link)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// insideLinks returns an error for links that lead out of the package.
func insideLinks(dir string, entries []entry) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range entries {
		if e.Link == "" {
			continue
		}
		out := filepath.ToSlash(filepath.Join(filepath.Dir(filepath.FromSlash(e.Path)), filepath.FromSlash(e.Link)))
		outside := filepath.IsAbs(e.Link) || out == ".." || strings.HasPrefix(out, "../")
		if _, err := root.Stat(filepath.FromSlash(e.Path)); outside || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the package holds the link %q to %q, which leads out of it", e.Path, e.Link)
		}
	}
	return nil
}

func readOnly(dir string, entries []entry) error {
	for _, e := range entries {
		if e.Mode.IsRegular() {
			if err := os.Chmod(filepath.Join(dir, filepath.FromSlash(e.Path)), 0o444|e.Mode&0o111); err != nil {
				return err
			}
		}
	}
	return nil
}

// index reads the list of a tree's files.
func (f *Fetcher) index(tree string) ([]entry, error) {
	text, err := readfile.Whole(f.treeDir(tree) + ".json")
	if err != nil {
		return nil, err
	}
	var out []entry
	return out, json.Unmarshal(text, &out)
}

// indexOnce is index with a cache.
func (f *Fetcher) indexOnce(tree string) ([]entry, error) {
	r := f.indexes.Local(tree, func() (indexed, bool) {
		entries, err := f.index(tree)
		return indexed{entries, err}, err == nil
	})
	return r.entries, r.err
}

type indexed struct {
	entries []entry
	err     error
}

// intact reports whether the cache contains a tree whose files are unchanged. A tree that was
// found intact is not checked again.
func (f *Fetcher) intact(ctx context.Context, tree string) bool {
	if tree == "" {
		return false
	}
	ok, err := f.ok.Do(ctx, tree, func() (bool, bool) {
		ok := f.intactNow(ctx, tree)
		return ok, ok
	})
	return ok && err == nil
}

func (f *Fetcher) intactNow(ctx context.Context, tree string) bool {
	want, err := f.index(tree)
	if err != nil {
		return false
	}
	have, err := list(ctx, f.treeDir(tree))
	return err == nil && slices.Equal(want, have)
}

// removeAll deletes a directory even if directories in it are not writable.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
