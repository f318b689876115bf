package schemacache_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/provider/schemacache"
)

func newCache(t testing.TB) schemacache.Cache {
	return schemacache.Cache{Dir: filepath.Join(t.TempDir(), "schemas"), Machine: "m", Now: time.Now}
}

// content returns what a file contains, or nil if there is no file.
func content(t testing.TB, f *schemacache.File) schemacache.Sections {
	t.Helper()
	if f == nil {
		return nil
	}
	out := schemacache.Sections{}
	for _, section := range []string{"managed", "data", "none", "empty"} {
		for _, name := range f.Names(section) {
			b, err := f.Entry(section, name)
			if err != nil || b == nil {
				t.Fatalf("%s %s: %v %v", section, name, b, err)
			}
			if out[section] == nil {
				out[section] = map[string][]byte{}
			}
			out[section][name] = b
		}
	}
	return out
}

func sample(text string) schemacache.Sections {
	return schemacache.Sections{
		"managed": {"a": []byte("first " + text), "b": {}, "c": bytes.Repeat([]byte(text), 10_000)},
		"data":    {"a": []byte("other " + text)},
	}
}

// only returns the path of the only file of a cache.
func only(t testing.TB, c schemacache.Cache) string {
	t.Helper()
	entries, err := os.ReadDir(c.Dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v %v", entries, err)
	}
	return filepath.Join(c.Dir, entries[0].Name())
}

func TestRoundTrip(t *testing.T) {
	c := newCache(t)
	if c.Open("k") != nil {
		t.Fatal("a file that does not exist")
	}
	c.Keep("k", sample("x"))
	f := c.Open("k")
	if d := cmp.Diff(sample("x"), content(t, f)); d != "" {
		t.Error(d)
	}
	if b, err := f.Entry("managed", "d"); b != nil || err != nil {
		t.Error(b, err)
	}
	if b, err := f.Entry("none", "a"); b != nil || err != nil {
		t.Error(b, err)
	}
	info, err := os.Stat(only(t, c))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}

	// Two versions of a package have two files. A new version of an open file does not change it.
	c.Keep("k2", sample("y"))
	c.Keep("k", sample("z"))
	for key, want := range map[string]string{"k": "z", "k2": "y"} {
		if d := cmp.Diff(sample(want), content(t, c.Open(key))); d != "" {
			t.Error(key, d)
		}
	}
	if d := cmp.Diff(sample("x"), content(t, f)); d != "" {
		t.Error(d)
	}

	var none schemacache.Cache
	if none.Keep("k", sample("x")); none.Open("k") != nil {
		t.Error("the zero cache has a file")
	}
}

// Any changed byte and any other length make a file unusable. The next Keep replaces it.
func TestDamaged(t *testing.T) {
	c := newCache(t)
	c.Keep("k", schemacache.Sections{"managed": {"a": []byte("the schema"), "b": {}}})
	path := only(t, c)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.Open("k") != nil {
			t.Errorf("%s: the file is used", what)
		}
	}
	for i := range good {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(good)
			bad[i] ^= bit
			try(fmt.Sprintf("byte %d", i), bad)
		}
		try(fmt.Sprintf("length %d", i), good[:i])
	}
	try("too long", append(bytes.Clone(good), 0))
	c.Keep("k", sample("x"))
	if d := cmp.Diff(sample("x"), content(t, c.Open("k"))); d != "" {
		t.Error(d)
	}
}

// The file of another machine, another key, another user or with another mode is not used, and a
// link is not followed.
func TestForeign(t *testing.T) {
	c := newCache(t)
	c.Keep("k", sample("x"))
	path := only(t, c)
	other := c
	other.Machine = "n"
	if other.Open("k") != nil {
		t.Error("of another machine")
	}
	c.Keep("l", sample("y"))
	entries, _ := os.ReadDir(c.Dir)
	for _, e := range entries {
		if p := filepath.Join(c.Dir, e.Name()); p != path {
			if err := os.Rename(p, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.Open("k") != nil {
		t.Error("of another key")
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o644} {
		c.Keep("k", sample("x"))
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if c.Open("k") != nil {
			t.Errorf("with mode %o", mode)
		}
		c.Keep("k", sample("x"))
		if c.Open("k") == nil {
			t.Errorf("mode %o: the file is not replaced", mode)
		}
	}
	if err := os.Rename(path, path+"x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+"x", path); err != nil {
		t.Fatal(err)
	}
	if c.Open("k") != nil {
		t.Error("through a link")
	}
	c.Keep("k", sample("x"))
	if c.Open("k") == nil {
		t.Error("the link is not replaced")
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if c.Open("k") != nil {
			t.Error("of another user")
		}
	}
	if err := os.Chmod(c.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if c.Keep("new", sample("x")); c.Open("new") != nil {
		t.Error("written where others can write")
	}
}

// A reader sees one of the contents that writers write, whole.
func TestConcurrentWriters(t *testing.T) {
	c := newCache(t)
	texts := []string{"one", "two", "three"}
	var wg sync.WaitGroup
	for _, text := range texts {
		wg.Go(func() {
			for range 20 {
				c.Keep("k", sample(text))
			}
		})
	}
	for range 100 {
		f := c.Open("k")
		if f == nil {
			continue
		}
		b, err := f.Entry("managed", "a")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(sample(strings.TrimPrefix(string(b), "first ")), content(t, f)); d != "" {
			t.Fatal(d)
		}
	}
	wg.Wait()
	only(t, c)
}

// The least recently used files are removed, and temporary files of commands that were killed.
func TestLimits(t *testing.T) {
	now := time.Now()
	for name, limit := range map[string]func(*schemacache.Cache){
		"number": func(c *schemacache.Cache) { c.MaxFiles = 3 },
		"size":   func(c *schemacache.Cache) { c.MaxBytes = 3_500 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			limit(&c)
			c.Now = func() time.Time { return now }
			if err := os.MkdirAll(c.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			left := filepath.Join(c.Dir, ".abc.schemas-123")
			if err := os.WriteFile(left, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			keep := func(key string, age time.Duration) {
				t.Helper()
				before, _ := filepath.Glob(filepath.Join(c.Dir, "*.schemas"))
				c.Keep(key, schemacache.Sections{"managed": {"a": make([]byte, 1000)}})
				after, _ := filepath.Glob(filepath.Join(c.Dir, "*.schemas"))
				for _, p := range after {
					if !strings.Contains(strings.Join(before, " "), p) {
						if err := os.Chtimes(p, now.Add(-age), now.Add(-age)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			keep("a", 5*time.Hour)
			keep("b", 4*time.Hour)
			keep("c", 3*time.Hour)
			if c.Open("a") == nil { // now it is the most recently used
				t.Fatal("a was removed")
			}
			now = now.Add(2 * time.Hour)
			keep("d", 0)
			for key, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
				if got := c.Open(key) != nil; got != want {
					t.Errorf("%s: %v", key, got)
				}
			}
			if _, err := os.Stat(left); err == nil {
				t.Error("the temporary file is still there")
			}
		})
	}
	c := newCache(t)
	c.MaxBytes = 100
	if c.Keep("k", sample("x")); c.Open("k") != nil {
		t.Error("a file above the limit was written")
	}
}

// A program that truncates an open file makes entries unavailable. It does not end our process.
func TestTruncated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the file is not mapped")
	}
	c := newCache(t)
	c.Keep("k", sample("x"))
	f := c.Open("k")
	if err := os.Truncate(only(t, c), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Entry("managed", "c"); err == nil {
		t.Error("no error")
	}
}

// Arbitrary content with a right checksum neither panics nor allocates more than its size.
func FuzzOpen(f *testing.F) {
	c := newCache(f)
	c.Keep("k", sample("x"))
	path := only(f, c)
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, schemacache.Sum(b), 0o600); err != nil {
			t.Fatal(err)
		}
		content(t, c.Open("k"))
	})
}
