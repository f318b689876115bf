package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// Objects stores named objects: in a directory that all processes share, or in a store of states
// that supports other objects (backend.Blobs).
type Objects interface {
	PutBlob(ctx context.Context, name string, data []byte) error
	// GetBlob returns an error that is fs.ErrNotExist if the object does not exist.
	GetBlob(ctx context.Context, name string) ([]byte, error)
	// ListBlobs returns the names that begin with a prefix. The prefix ends with a slash.
	ListBlobs(ctx context.Context, prefix string) ([]string, error)
	DeleteBlob(ctx context.Context, name string) error // no error if the object does not exist
}

// A Folder stores objects as files in a directory.
type Folder string

// PutBlob implements Objects.
func (f Folder) PutBlob(_ context.Context, name string, data []byte) error {
	path := f.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.WriteMode(path, data, 0o600)
}

// GetBlob implements Objects.
func (f Folder) GetBlob(_ context.Context, name string) ([]byte, error) {
	return readfile.Large(f.path(name))
}

// ListBlobs implements Objects.
func (f Folder) ListBlobs(_ context.Context, prefix string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(f.path(prefix), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // deleted concurrently, or never existed
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(string(f), path)
		if err != nil {
			return err
		}
		if info, gone := d.Info(); gone == nil && info.Size() > 0 { // an empty file is not completely written
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	return out, err
}

// DeleteBlob implements Objects.
func (f Folder) DeleteBlob(_ context.Context, name string) error {
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f Folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// Blobs stores texts by their content. Each is sealed and stored once. Its methods may be called
// concurrently.
type Blobs struct {
	Objects Objects
	Sealer  *Sealer
	Place   string           // name of the store in messages
	Now     func() time.Time // current time, from which Prune counts days
}

// inline is the maximum size, in bytes, of a text that is part of a message instead of the store.
// It is well below the limits of the engine, and keeps the engine's database small.
const inline = 8 << 10

// small is the maximum size, in bytes, of such a text if a message contains many of them.
const small = 256

// Put returns a reference to a text, and stores the text if it is large.
func (b *Blobs) Put(ctx context.Context, text []byte) (Ref, error) { return b.ref(ctx, text, inline) }

// PutSmall is Put for texts that a history contains repeatedly for each unit, and that are
// therefore stored above a smaller size.
func (b *Blobs) PutSmall(ctx context.Context, text []byte) (Ref, error) {
	return b.ref(ctx, text, small)
}

func (b *Blobs) ref(ctx context.Context, text []byte, most int) (Ref, error) {
	if len(text) <= most {
		return Ref{Text: text}, nil
	}
	day := b.Now().UTC().Format(dayForm)
	name, err := b.put(ctx, texts+day+"/", text, nil)
	return Ref{Blob: day + "/" + name}, err
}

// The names of objects begin with their kind. Texts belong to one run and are below the day on
// which they were written. Files belong to many runs. For each day there are notes with the trees
// that runs of that day use.
const (
	files   = "run-files/"
	texts   = "run-blobs/"
	trees   = "run-trees/"
	dayForm = "2006-01-02"
)

// present returns a function that reports whether an object exists. It covers the names that
// begin with prefix.
func (b *Blobs) present(ctx context.Context, prefix string) (has func(name string) bool, err error) {
	names, err := b.Objects.ListBlobs(ctx, prefix)
	if err != nil {
		return nil, b.unlisted(err)
	}
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return func(name string) bool { return all[name] }, nil
}

// put stores a text, unless has reports that it exists. has may be nil.
func (b *Blobs) put(ctx context.Context, kind string, text []byte, has func(name string) bool) (name string, err error) {
	name = b.Sealer.Name(text)
	object := objectName(kind, name)
	if has != nil && has(object) {
		return name, nil
	}
	sealed, err := b.Sealer.Seal(text, name)
	if err == nil {
		err = b.Objects.PutBlob(ctx, object, sealed)
	}
	if err != nil {
		return "", fmt.Errorf("what the run needs cannot be put into %s: %w", b.Place, err)
	}
	return name, nil
}

// Get returns the text of a reference.
func (b *Blobs) Get(ctx context.Context, r Ref) ([]byte, error) {
	if r.Blob == "" {
		return r.Text, nil
	}
	day, name, ok := strings.Cut(r.Blob, "/")
	if _, err := time.Parse(dayForm, day); !ok || err != nil {
		return nil, fmt.Errorf("%q is no name of a blob", r.Blob)
	}
	return b.get(ctx, texts+day+"/", name)
}

func (b *Blobs) get(ctx context.Context, kind, name string) ([]byte, error) {
	if strings.ContainsAny(name, "./\\") || len(name) < 8 {
		return nil, fmt.Errorf("%q is no name of a blob", name)
	}
	sealed, err := b.Objects.GetBlob(ctx, objectName(kind, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not hold the blob %s: the command that runs the estate and all workers must have the same --blobs", b.Place, name)
	case err != nil:
		return nil, fmt.Errorf("the blob %s cannot be read from %s: %w", name, b.Place, err)
	}
	text, err := b.Sealer.Open(sealed, name)
	if err != nil {
		return nil, fmt.Errorf("the blob %s in %s cannot be opened: %w", name, b.Place, err)
	}
	if b.Sealer.Name(text) != name {
		return nil, fmt.Errorf("the blob %s in %s is not what was written", name, b.Place)
	}
	return text, nil
}

func objectName(kind, name string) string { return kind + name[:2] + "/" + name }
