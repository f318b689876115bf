package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
)

func testIndex(t *testing.T, files map[string]string) (*Index, func(name, text string)) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(name, text)
	}
	x := newIndex(&Files{}, time.Now)
	x.age = time.Hour
	x.SetRoots([]string{dir})
	return x, write
}

// names returns the number of names in all files.
func names(t *testing.T, x *Index) (n int) {
	t.Helper()
	all, err := x.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		n += len(f.Names)
	}
	return n
}

// Changes and invalidation do not wait for a walk over the workspace, and the next request sees them.
func TestChangesDuringWalk(t *testing.T) {
	x, write := testIndex(t, map[string]string{"a/main.tf": "variable \"a\" {}\n", "b/main.tf": "variable \"b\" {}\n"})
	if got := names(t, x); got != 2 {
		t.Fatalf("%d names", got)
	}
	x.walk <- struct{}{} // a walk runs
	write("a/main.tf", "variable \"a\" {}\nvariable \"more\" {}\n")
	x.Changed([]string{filepath.Join(x.roots[0], "a", "main.tf")})
	if got := names(t, x); got != 3 {
		t.Errorf("after a change: %d names", got)
	}
	write("c/main.tf", "variable \"c\" {}\n")
	x.Invalidate()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := x.All(ctx); err == nil {
		t.Error("a canceled request has waited for the walk")
	}
	<-x.walk
	if got := names(t, x); got != 4 {
		t.Errorf("after the walk: %d names", got)
	}
	if err := os.RemoveAll(filepath.Join(x.roots[0], "b")); err != nil {
		t.Fatal(err)
	}
	x.Changed([]string{filepath.Join(x.roots[0], "b")})
	if got := names(t, x); got != 3 {
		t.Errorf("after a directory was deleted: %d names", got)
	}
}

// A request that pauses the walk does not wait for itself.
func TestUrgent(t *testing.T) {
	x, _ := testIndex(t, map[string]string{"main.tf": "variable \"a\" {}\n"})
	ctx, done := x.Urgent(t.Context())
	defer done()
	if _, err := x.All(ctx); err != nil {
		t.Fatal(err)
	}
	if n := x.urgent.Load(); n != 0 {
		t.Errorf("%d urgent requests", n)
	}
}

// The walk continues only when the answer to the last urgent request has been sent.
func TestUrgentAnswer(t *testing.T) {
	x, _ := testIndex(t, nil)
	_, done := x.Urgent(t.Context())
	continues := make(chan struct{})
	go func() { // ends after done
		x.pause(t.Context())
		close(continues)
	}()
	time.Sleep(10 * time.Millisecond)
	ended := time.Now()
	done()
	<-continues
	if waited := time.Since(ended); waited < answerTime {
		t.Errorf("the walk continues after %s", waited)
	}
}

// The files are counted before they are read, and again when their number has doubled.
func TestCounted(t *testing.T) {
	x, write := testIndex(t, map[string]string{"a/main.tf": "variable \"a\" {}\n", "b/main.tf": "variable \"b\" {}\n"})
	var counted, known []int
	x.Counted = func(n int) {
		counted = append(counted, n)
		x.mu.Lock()
		defer x.mu.Unlock()
		known = append(known, len(x.entries))
	}
	names(t, x)
	x.Invalidate()
	names(t, x)
	for _, name := range []string{"c", "d", "e"} {
		write(name+"/main.tf", "variable \"v\" {}\n")
	}
	x.Invalidate()
	names(t, x)
	if !slices.Equal(counted, []int{2, 5}) || !slices.Equal(known, []int{0, 2}) {
		t.Errorf("counted %d when %d were read", counted, known)
	}
}

// A file has another location after each change, so that it is parsed again.
func TestLocate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main.tf")
	if err := os.WriteFile(path, []byte("# 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := &Files{}
	seen := map[string]bool{}
	check := func() {
		t.Helper()
		at := newReading(f, dir).Locate("main.tf")
		if seen[at] {
			t.Errorf("the location %q again", at)
		}
		if seen[at] = true; newReading(f, dir).Locate("main.tf") != at {
			t.Error("another location without a change")
		}
	}
	check()
	f.Set(&Buffer{Path: path, Version: 1, Text: document.New([]byte("# 2\n"))})
	check()
	f.Set(&Buffer{Path: path, Version: 1, Text: document.New([]byte("# 2\n"))})
	check()
}

// A compact file has the same names, and equal names of files share their memory.
func TestTexts(t *testing.T) {
	text := []byte("variable \"size\" {}\nlocals {\n  a = var.size.part\n  b = file(\"${path.module}/x\")\n}\nmodule \"m\" {\n  source = \"./m\"\n  size   = var.size\n}\n")
	var shared texts
	one, two := index.Of("/x/one.tf", text, nil), index.Of("/x/one.tf", slices.Clone(text), nil)
	want := index.Of("/x/one.tf", slices.Clone(text), nil)
	shared.compact(one)
	shared.compact(two)
	if diff := cmp.Diff(want, one); diff != "" {
		t.Error(diff)
	}
	for i := range one.Names {
		if unsafe.StringData(one.Names[i].Addr) != unsafe.StringData(two.Names[i].Addr) {
			t.Errorf("%s is in memory twice", one.Names[i].Addr)
		}
	}
}
