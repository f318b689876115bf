package installer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkHundredCalls installs a hundred calls of one git module of 5 MB: with an empty
// cache, with a full one, and if everything is already installed.
func BenchmarkHundredCalls(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	repo := filepath.Join(b.TempDir(), "repo")
	for i := range 5 {
		blob := make([]byte, 1_000_000)
		for j := range blob {
			blob[j] = byte(rnd.Uint32())
		}
		if err := os.MkdirAll(filepath.Join(repo, "files"), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repo, "files", fmt.Sprint(i)), blob, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	t := testing.TB(b)
	unpack(t, repo, "-- main.tf --\noutput \"x\" {\n  value = 1\n}\n")
	git(t, repo, "init", "-q")
	git(t, repo, "add", "-A")
	git(t, repo, "commit", "-qm", "x")
	var main strings.Builder
	for i := range 100 {
		fmt.Fprintf(&main, "module \"m%d\" {\n  source = \"git::file://%s\"\n}\n", i, repo)
	}
	run := func(b *testing.B, dir, cache string) {
		f := newFetcher(t, cache)
		f.WorkDir = dir
		if _, ds := Install(context.Background(), dir, Options{Packages: f}); ds.HasErrors() {
			b.Fatal(ds.Err())
		}
	}
	folder := func(b *testing.B) string {
		dir := b.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main.String()), 0o644); err != nil {
			b.Fatal(err)
		}
		return dir
	}
	b.Run("empty cache", func(b *testing.B) {
		for range b.N {
			run(b, folder(b), b.TempDir())
		}
	})
	b.Run("full cache", func(b *testing.B) {
		cache := b.TempDir()
		run(b, folder(b), cache)
		b.ResetTimer()
		for range b.N {
			run(b, folder(b), cache)
		}
	})
	b.Run("installed", func(b *testing.B) {
		dir, cache := folder(b), b.TempDir()
		run(b, dir, cache)
		b.ResetTimer()
		for range b.N {
			run(b, dir, cache)
		}
	})
}
