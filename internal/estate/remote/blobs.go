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

// Objects are where blobs lie: a folder that all processes see, or a store of states that
// has room for other objects (package backend's Blobs).
type Objects interface {
	PutBlob(ctx context.Context, name string, data []byte) error
	// GetBlob fails with fs.ErrNotExist if there is none.
	GetBlob(ctx context.Context, name string) ([]byte, error)
	// ListBlobs tells the names that begin with a prefix, which ends with a slash.
	ListBlobs(ctx context.Context, prefix string) ([]string, error)
	DeleteBlob(ctx context.Context, name string) error // nil if there is none
}

// A Folder keeps objects as files of a folder.
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
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile, or never there
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(string(f), path)
		if err != nil {
			return err
		}
		if info, gone := d.Info(); gone == nil && info.Size() > 0 { // an empty one is half written
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

// Blobs are texts by their content: sealed, each of them once. Methods may be called
// concurrently.
type Blobs struct {
	Objects Objects
	Sealer  *Sealer
	Place   string           // for messages
	Now     func() time.Time // Prune counts days
}

// inline is how long a text is at most that travels in itself: the engine's limits are
// far away, and its database small.
const inline = 8 << 10

// small is how long a text is at most of which many travel together.
const small = 256

// Put makes a reference to a text.
func (b *Blobs) Put(ctx context.Context, text []byte) (Ref, error) { return b.ref(ctx, text, inline) }

// PutSmall is Put for texts of which a history holds one for each unit, again and again.
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

// Blobs lie below a name for what they are. Texts belong to one run each and lie below
// the day that they were written on; files belong to many, and of each day there is a note
// which trees were asked for.
const (
	files   = "run-files/"
	texts   = "run-blobs/"
	trees   = "run-trees/"
	dayForm = "2006-01-02"
)

// present tells which of the names below a prefix there are.
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

// put writes a text, unless has says that it is there.
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

// Get is the text of a reference.
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
