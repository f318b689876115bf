package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// counted keeps objects in memory and counts what is written.
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

func (c *counted) Present(_ context.Context, prefix string) (func(string) bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]bool{}
	for name := range c.objects {
		if strings.HasPrefix(name, prefix) {
			all[name] = true
		}
	}
	return func(name string) bool { return all[name] }, nil
}

// A tree whose files are in the store already is not sent again; what changed goes alone,
// and nothing of it can be read in the store.
func TestTreeIsSentOnce(t *testing.T) {
	ctx := context.Background()
	store := &counted{objects: map[string][]byte{}}
	sealer, err := NewSealer(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	b := &Blobs{Objects: store, Sealer: sealer, Place: "the store"}
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
	if again, sent := put(); sent != 0 || again != first {
		t.Errorf("an unchanged tree: %d objects sent, name %s, was %s", sent, again, first)
	}
	write("c/d/terragrunt.hcl", "inputs = { unit = \"changed\" }\n")
	second, sent := put()
	if sent != 2 || second == first { // the folder and the tree
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
