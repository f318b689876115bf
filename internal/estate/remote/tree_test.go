package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
)

// counted stores objects in memory and counts writes.
type counted struct {
	mu      sync.Mutex
	objects map[string][]byte
	puts    int
}

func (c *counted) PutBlob(_ context.Context, name string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.puts++
	c.objects[name] = bytes.Clone(data)
	return nil
}

func (c *counted) GetBlob(_ context.Context, name string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, ok := c.objects[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (c *counted) ListBlobs(_ context.Context, prefix string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for name := range c.objects {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out, nil
}

func (c *counted) DeleteBlob(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, name)
	return nil
}

// A tree whose files are in the store is not sent again. After a change, only the changed
// directory is sent. No file can be read in the store.
func TestTreeIsSentOnce(t *testing.T) {
	ctx := context.Background()
	store := &counted{objects: map[string][]byte{}}
	sealer, err := NewSealer(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	b := &Blobs{Objects: store, Sealer: sealer, Place: "the store", Now: time.Now}
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, unit := range []string{"a", "b", "c/d"} {
		write(unit+"/terragrunt.hcl", "inputs = { unit = \""+unit+"\" }\n")
	}
	put := func() (string, int) {
		t.Helper()
		before := store.puts
		name, err := b.PutTree(ctx, root)
		if err != nil {
			t.Fatal(err)
		}
		return name, store.puts - before
	}
	first, sent := put()
	if sent == 0 {
		t.Fatal("nothing was sent")
	}
	if again, sent := put(); sent != 1 || again != first {
		t.Errorf("an unchanged tree: %d objects sent, name %s, was %s", sent, again, first)
	}
	write("c/d/terragrunt.hcl", "inputs = { unit = \"changed\" }\n")
	second, sent := put()
	if sent != 3 || second == first { // the directory, the tree and the note of the day
		t.Errorf("one changed file: %d objects sent, name %s", sent, second)
	}
	for name, data := range store.objects {
		if bytes.Contains(data, []byte("inputs")) || strings.Contains(name, "terragrunt") {
			t.Errorf("%s is readable in the store", name)
		}
	}
	dir := filepath.Join(t.TempDir(), "tree")
	if err := b.GetTree(ctx, second, dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "c/d/terragrunt.hcl")); err != nil || !strings.Contains(string(got), "changed") {
		t.Errorf("got %q, %v", got, err)
	}
}

// Data of a run is kept for the given number of days and then deleted. A journal is kept.
func TestPrune(t *testing.T) {
	ctx := context.Background()
	sealer, err := NewSealer(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	for name, objects := range map[string]Objects{"memory": &counted{objects: map[string][]byte{}}, "folder": Folder(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			b := &Blobs{Objects: objects, Sealer: sealer, Place: "the store", Now: func() time.Time { return now }}
			root := t.TempDir()
			tree := func(text string) string {
				t.Helper()
				if err := os.WriteFile(filepath.Join(root, "terragrunt.hcl"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				name, err := b.PutTree(ctx, root)
				if err != nil {
					t.Fatal(err)
				}
				return name
			}
			put := func() Ref {
				t.Helper()
				r, err := b.Put(ctx, bytes.Repeat([]byte(now.String()), inline))
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			journal := (&Session{Blobs: b}).Journals("a state")
			if err := journal.PutBlob(ctx, "journal/run/000001", []byte("a record")); err != nil {
				t.Fatal(err)
			}
			oldTree, oldText := tree("inputs = {}"), put()
			now = now.AddDate(0, 0, 10)
			newTree, newText := tree("inputs = { a = 1 }"), put()
			if n, err := b.Prune(ctx, now.AddDate(0, 0, -20)); n != 0 || err != nil {
				t.Fatalf("%d removed, %v; all is young", n, err)
			}
			if _, err := b.Prune(ctx, now.AddDate(0, 0, -5)); err != nil {
				t.Fatal(err)
			}
			for what, x := range map[string]struct {
				err  error
				gone bool
			}{
				"the old text": {second(b.Get(ctx, oldText)), true}, "the new text": {second(b.Get(ctx, newText)), false},
				"the old tree": {b.GetTree(ctx, oldTree, filepath.Join(t.TempDir(), "x")), true},
				"the new tree": {b.GetTree(ctx, newTree, filepath.Join(t.TempDir(), "x")), false},
			} {
				if (x.err != nil) != x.gone {
					t.Errorf("%s: %v", what, x.err)
				}
			}
			if got, err := journal.GetBlob(ctx, "journal/run/000001"); string(got) != "a record" || err != nil {
				t.Errorf("the journal: %q, %v", got, err)
			}
			if names, err := journal.ListBlobs(ctx, "journal/"); len(names) != 1 || err != nil || names[0] != "journal/run/000001" {
				t.Errorf("the journals: %q, %v", names, err)
			}
			if _, err := journal.GetBlob(ctx, "journal/run/000002"); !errors.Is(err, backend.ErrNoBlob) {
				t.Errorf("a piece that there is not: %v", err)
			}
		})
	}
}

func second(_ []byte, err error) error { return err }
