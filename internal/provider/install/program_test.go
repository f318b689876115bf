package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// Equal programs have the same name, whatever their path. A package with a cached hash is
// not read again until its program is replaced.
func TestProgramNames(t *testing.T) {
	m := t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0")
	from := filepath.Join(m, "registry.opentofu.org/hashicorp/aa/1.0.0/linux_amd64")
	b := newBench(t, m)
	b.mustInit(reqs(aa, ""))
	allowed := b.locked.Provider(aa).Hashes
	version := b.locked.Provider(aa).Version

	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(from, linked); err != nil {
		t.Skip(err)
	}
	var known Hashes
	names := map[string]bool{}
	for _, dir := range []string{from, copied, linked} {
		p, ds := newPackage(aa, version, dir, allowed, &known).Program(context.Background())
		if ds.HasErrors() || filepath.Dir(p.Path) != dir {
			t.Fatalf("%s: %q %v", dir, p.Path, ds.Err())
		}
		names[p.Name] = true
	}
	if len(names) != 1 {
		t.Errorf("names %v", names)
	}

	// Without a checksum, only the path identifies a package.
	unlocked := func(dir string) string {
		p, _ := newPackage(aa, version, dir, nil, &known).Program(context.Background())
		return p.Name
	}
	if unlocked(from) != unlocked(linked) || unlocked(from) == unlocked(copied) {
		t.Errorf("%q, linked %q, copied %q", unlocked(from), unlocked(linked), unlocked(copied))
	}

	write(t, filepath.Join(linked, "README"), "something else") // a cached package is not read
	if _, ds := newPackage(aa, version, linked, allowed, &known).Program(context.Background()); ds.HasErrors() {
		t.Errorf("a package was read again: %v", ds.Err())
	}
	write(t, filepath.Join(from, filepath.Base(unlocked(from))), "another program")
	_, ds := newPackage(aa, version, linked, allowed, &known).Program(context.Background())
	if !ds.HasErrors() || !strings.Contains(ds[0].Detail, "does not match any of the checksums") {
		t.Errorf("a program that was replaced: %v", ds.Err())
	}
}

// A package that many directories install from one directory is read once: for its
// checksum, for the comparison with the lock file and for starting it.
func TestInstalledFromOnePlace(t *testing.T) {
	m, cache := t.TempDir(), t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0")
	var known Hashes
	var locked *lock.File
	for i, remembered := range []*Hashes{&known, &known, &known, nil} {
		for _, pluginCache := range []string{"", cache} {
			b := newBench(t, m)
			b.Hashes, b.locked, b.Config.PluginCacheDir = remembered, locked, pluginCache
			ps, ds := b.init(reqs(aa, ""))
			if !ds.HasErrors() {
				_, ds = ps[aa].Exe(context.Background())
			}
			if ds.HasErrors() != (remembered == nil) {
				t.Errorf("directory %d, plugin cache %q: %v", i, pluginCache, ds.Err())
			}
			if i == 0 {
				locked = b.locked
			}
		}
		write(t, filepath.Join(m, "registry.opentofu.org/hashicorp/aa/1.0.0/linux_amd64/README"), "it would be seen")
	}
}
