package install

import (
	"archive/zip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

var (
	aa = addr.DefaultProvider("aa")
	bb = addr.DefaultProvider("bb")
	ex = addr.Provider{Host: "example.com", Namespace: "x", Type: "ex"}
)

func program(p addr.Provider, version string) string {
	return fmt.Sprintf("#!/bin/sh\necho %s %s\n", p, version)
}

// unpacked writes unpacked packages to a mirror.
func unpacked(t *testing.T, dir string, p addr.Provider, platform string, versions ...string) {
	t.Helper()
	for _, v := range versions {
		d := filepath.Join(dir, p.Host, p.Namespace, p.Type, v, platform)
		write(t, filepath.Join(d, "terraform-provider-"+p.Type+"_v"+v), program(p, v))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func packed(t *testing.T, dir string, p addr.Provider, platform, version string) string {
	t.Helper()
	path := filepath.Join(dir, p.Host, p.Namespace, p.Type, "terraform-provider-"+p.Type+"_"+version+"_"+platform+".zip")
	write(t, path, "")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	h := &zip.FileHeader{Name: "terraform-provider-" + p.Type + "_v" + version}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = w.Write([]byte(program(p, version)))
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A bench is a working directory with mirrors.
type bench struct {
	Options
	t      *testing.T
	locked *lock.File
	events []string
}

func newBench(t *testing.T, mirrors ...string) *bench {
	conf := &cliconfig.Config{Installation: &cliconfig.Installation{}}
	for _, m := range mirrors {
		conf.Installation.Methods = append(conf.Installation.Methods, cliconfig.Method{Kind: cliconfig.FilesystemMirror, Location: m})
	}
	b := &bench{t: t, Options: Options{WorkDir: t.TempDir(), Config: conf, Platform: "linux_amd64"}}
	b.Progress = func(e Event) { b.events = append(b.events, e.Text()) }
	return b
}

func reqs(pairs ...any) Requirements {
	out := Requirements{}
	for i := 0; i < len(pairs); i += 2 {
		p := pairs[i].(addr.Provider)
		out[p] = nil
		if c := pairs[i+1].(string); c != "" {
			out[p] = []config.Constraint{{Text: c}}
		}
	}
	return out
}

func (b *bench) init(r Requirements) (map[addr.Provider]Package, diag.List) {
	b.t.Helper()
	b.events = nil
	out, next, ds := Install(context.Background(), r, b.locked, b.Options)
	if !ds.HasErrors() {
		b.locked = next
	}
	return out, ds
}

func (b *bench) mustInit(r Requirements) map[addr.Provider]Package {
	b.t.Helper()
	out, ds := b.init(r)
	if ds.HasErrors() {
		b.t.Fatal(ds.Err())
	}
	return out
}

func (b *bench) fails(r Requirements, want string) {
	b.t.Helper()
	_, ds := b.init(r)
	if !ds.HasErrors() || !strings.Contains(ds.Errors()[0].Summary+": "+ds.Errors()[0].Detail, want) {
		b.t.Errorf("got %v, want %s", ds.Err(), want)
	}
}

func (b *bench) version(p addr.Provider) string {
	if e := b.locked.Provider(p); e != nil {
		return e.Version.String()
	}
	return ""
}

func (b *bench) said(want ...string) {
	b.t.Helper()
	got := slices.Clone(b.events)
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		b.t.Error(d)
	}
}

func TestUnpackedMirror(t *testing.T) {
	m := t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0", "1.5.3", "2.0.0-beta1")
	unpacked(t, m, aa, "windows_amd64", "0.1.0")
	unpacked(t, m, ex, "linux_amd64", "0.1.0")
	b := newBench(t, m)
	out := b.mustInit(reqs(aa, ">= 1.0", ex, ""))
	if b.version(aa) != "1.5.3" || b.version(ex) != "0.1.0" {
		t.Error(b.version(aa), b.version(ex))
	}
	b.said(`Finding hashicorp/aa versions matching ">= 1.0.0"...`, "Finding latest version of example.com/x/ex...",
		"Installing hashicorp/aa v1.5.3...", "Installed hashicorp/aa v1.5.3 (unauthenticated)",
		"Installing example.com/x/ex v0.1.0...", "Installed example.com/x/ex v0.1.0 (unauthenticated)")
	exe, ds := out[aa].Exe(context.Background())
	if text, _ := os.ReadFile(exe); ds.HasErrors() || string(text) != program(aa, "1.5.3") {
		t.Errorf("%v %s", ds.Err(), text)
	}
	link, err := os.Readlink(filepath.Join(b.WorkDir, ".terraform/providers/registry.opentofu.org/hashicorp/aa/1.5.3/linux_amd64"))
	if err != nil || link != filepath.Join(m, "registry.opentofu.org/hashicorp/aa/1.5.3/linux_amd64") {
		t.Error(link, err)
	}
	first := string(b.locked.Bytes())

	// A second time nothing changes, and the mirror is not needed.
	if err := os.Rename(filepath.Join(m, "example.com"), filepath.Join(m, "gone")); err != nil {
		t.Fatal(err)
	}
	b.fails(reqs(aa, ">= 1.0", ex, ""), "was not found in any of the search locations")
	if err := os.Rename(filepath.Join(m, "gone"), filepath.Join(m, "example.com")); err != nil {
		t.Fatal(err)
	}
	b.mustInit(reqs(aa, ">= 1.0", ex, ""))
	b.said("Reusing previous version of hashicorp/aa from the dependency lock file", "Reusing previous version of example.com/x/ex from the dependency lock file",
		"Using previously-installed hashicorp/aa v1.5.3", "Using previously-installed example.com/x/ex v0.1.0")
	if d := cmp.Diff(first, string(b.locked.Bytes())); d != "" {
		t.Error(d)
	}

	b.fails(reqs(aa, "~> 2.0"), "does not match configured version constraint ~> 2.0")
	b.Upgrade = true
	b.fails(reqs(aa, "~> 2.0"), "no available releases match the given constraints ~> 2.0; the newest available version is 2.0.0-beta1")
	b.mustInit(reqs(aa, "2.0.0-beta1"))
	if b.version(aa) != "2.0.0-beta1" || b.locked.Provider(ex) != nil {
		t.Errorf("%s", b.locked.Bytes())
	}
}

func TestPackedMirror(t *testing.T) {
	m1, m2 := t.TempDir(), t.TempDir()
	unpacked(t, m1, aa, "linux_amd64", "1.0.0")
	packed(t, m2, aa, "linux_amd64", "1.1.0")
	b := newBench(t, m1, m2)
	out := b.mustInit(reqs(aa, ""))
	if b.version(aa) != "1.1.0" {
		t.Error(b.version(aa))
	}
	if st, err := os.Lstat(out[aa].Dir); err != nil || !st.IsDir() {
		t.Error(st, err)
	}
	if exe, ds := out[aa].Exe(context.Background()); ds.HasErrors() || !strings.HasSuffix(exe, "terraform-provider-aa_v1.1.0") {
		t.Error(exe, ds.Err())
	}
	// A hash of the archive alone is sufficient.
	archive := filepath.Join(m2, aa.Host, aa.Namespace, aa.Type, "terraform-provider-aa_1.1.0_linux_amd64.zip")
	zh, err := lock.HashZip(context.Background(), archive)
	if err != nil {
		t.Fatal(err)
	}
	b.locked.Provider(aa).Hashes = []lock.Hash{zh}
	b.WorkDir = t.TempDir()
	b.mustInit(reqs(aa, ""))
	if hs := b.locked.Provider(aa).Hashes; len(hs) != 2 {
		t.Error(hs)
	}
	b.locked.Provider(aa).Hashes = []lock.Hash{"zh:00"}
	b.WorkDir = t.TempDir()
	b.fails(reqs(aa, ""), "does not match any of the checksums previously recorded")

	packed(t, m2, aa, "windows_amd64", "9.0.0")
	b.Upgrade = true
	b.fails(reqs(aa, ""), "v9.0.0 does not have a package available for your current platform, linux_amd64")
	write(t, filepath.Join(m2, aa.Host, aa.Namespace, aa.Type, "terraform-provider-aa_9.1.0_linux_amd64.zip"), "no archive")
	b.fails(reqs(aa, ""), "Failed to install provider")
}

func TestChangedPackages(t *testing.T) {
	m := t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0")
	b := newBench(t, m)
	b.mustInit(reqs(aa, ""))
	write(t, filepath.Join(m, "registry.opentofu.org/hashicorp/aa/1.0.0/linux_amd64/terraform-provider-aa_v1.0.0"), "changed")
	pkgs, ds := Select(context.Background(), reqs(aa, ""), b.locked, b.Options)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if _, ds := pkgs[aa].Exe(context.Background()); !ds.HasErrors() || !strings.Contains(ds[0].Detail, "does not match any of the checksums") {
		t.Error(ds.Err())
	}
	b.fails(reqs(aa, ""), "does not match any of the checksums previously recorded")
	b.locked.Provider(aa).Hashes = nil
	b.mustInit(reqs(aa, ""))
}

func TestSelect(t *testing.T) {
	m := t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0")
	unpacked(t, m, bb, "linux_amd64", "1.0.0")
	b := newBench(t, m)
	sel := func(r Requirements, want string) map[addr.Provider]Package {
		t.Helper()
		out, ds := Select(context.Background(), r, b.locked, b.Options)
		got := ""
		if ds.HasErrors() {
			got = ds[0].Summary + ": " + ds[0].Detail
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		return out
	}
	sel(reqs(aa, ""), "required by this configuration but no version is selected")
	b.mustInit(reqs(aa, "~> 1.0"))
	if out := sel(reqs(aa, "~> 1.0"), ""); out[aa].Version.String() != "1.0.0" {
		t.Error(out)
	}
	sel(reqs(aa, "~> 2.0"), `locked version selection 1.0.0 doesn't match the updated version constraints "~> 2.0"`)
	sel(reqs(aa, "", bb, ""), "provider registry.opentofu.org/hashicorp/bb: required by this configuration")
	sel(reqs(aa, "nonsense"), "Invalid version constraint")
	sel(reqs(addr.BuiltIn, ""), "")
	if err := os.RemoveAll(filepath.Join(b.WorkDir, ".terraform")); err != nil {
		t.Fatal(err)
	}
	sel(reqs(aa, ""), "there is no package for registry.opentofu.org/hashicorp/aa 1.0.0 cached in .terraform/providers")

	b.Config.Installation.DevOverrides = map[addr.Provider]string{aa: filepath.Join(m, "registry.opentofu.org/hashicorp/aa/1.0.0/linux_amd64"), bb: "nowhere"}
	out := sel(reqs(aa, "~> 7.0", bb, ""), "")
	if exe, ds := out[aa].Exe(context.Background()); ds.HasErrors() || !out[aa].Override || filepath.Base(exe) != "terraform-provider-aa_v1.0.0" {
		t.Error(exe, ds.Err())
	}
	if _, ds := out[bb].Exe(context.Background()); !ds.HasErrors() || !strings.Contains(ds[0].Detail, "could not read package directory") {
		t.Error(ds.Err())
	}
	if ds := OverrideWarning(b.Options, false); len(ds) != 1 || !strings.Contains(ds[0].Detail, " - hashicorp/bb in nowhere") {
		t.Error(ds)
	}
}

func TestPluginDirsAndImpliedFolders(t *testing.T) {
	m := t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0")
	b := newBench(t, "/nonexistent")
	b.fails(reqs(aa, ""), "cannot search /nonexistent")
	b.PluginDirs = []string{m}
	b.mustInit(reqs(aa, ""))
	if err := RecordPluginDirs(b.Options); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.WorkDir, ".terraform", "plugin_path")
	if text, err := os.ReadFile(path); err != nil || string(text) != "[\n  \""+m+"\"\n]" {
		t.Errorf("%s %v", text, err)
	}
	b.PluginDirs = nil
	if err := RecordPluginDirs(b.Options); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("plugin_path stays")
	}

	b = newBench(t)
	b.Config, b.Home = nil, t.TempDir()
	unpacked(t, filepath.Join(b.Home, ".terraform.d/plugins"), aa, "linux_amd64", "1.0.0")
	unpacked(t, filepath.Join(b.WorkDir, "terraform.d/plugins"), aa, "linux_amd64", "1.2.0")
	unpacked(t, filepath.Join(b.Home, ".local/share/terraform/plugins"), bb, "linux_amd64", "1.3.0")
	b.mustInit(reqs(aa, "", bb, ""))
	if b.version(aa) != "1.2.0" || b.version(bb) != "1.3.0" {
		t.Errorf("%s", b.locked.Bytes())
	}
}

func TestPluginCache(t *testing.T) {
	m := t.TempDir()
	packed(t, m, aa, "linux_amd64", "1.0.0")
	b := newBench(t, m)
	b.Config.PluginCacheDir = t.TempDir()
	b.mustInit(reqs(aa, ""))
	b.said("Finding latest version of hashicorp/aa...", "Installing hashicorp/aa v1.0.0 to the shared cache directory...",
		"Installed hashicorp/aa v1.0.0 (unauthenticated)", "Using hashicorp/aa v1.0.0 from the shared cache directory")
	cached := filepath.Join(b.Config.PluginCacheDir, "registry.opentofu.org/hashicorp/aa/1.0.0/linux_amd64")
	if link, err := os.Readlink(filepath.Join(b.WorkDir, ".terraform/providers/registry.opentofu.org/hashicorp/aa/1.0.0/linux_amd64")); err != nil || link != cached {
		t.Error(link, err)
	}
	// Another directory with the lock file needs only the cache.
	b.WorkDir = t.TempDir()
	if err := os.RemoveAll(m); err != nil {
		t.Fatal(err)
	}
	b.mustInit(reqs(aa, ""))
	b.said("Reusing previous version of hashicorp/aa from the dependency lock file", "Detected previously-installed hashicorp/aa v1.0.0 in the shared cache directory", "Using hashicorp/aa v1.0.0 from the shared cache directory")
	// Without a lock file the source is contacted, unless the user allows otherwise.
	b.WorkDir, b.locked = t.TempDir(), nil
	b.fails(reqs(aa, ""), "cannot search")
	packed(t, m, aa, "linux_amd64", "1.0.0")
	b.Config.PluginCacheMayBreakLock = true
	b.mustInit(reqs(aa, ""))
	b.said("Finding latest version of hashicorp/aa...", "Detected previously-installed hashicorp/aa v1.0.0 in the shared cache directory", "Using hashicorp/aa v1.0.0 from the shared cache directory")
}

func TestManyAtOnceOnOneCache(t *testing.T) {
	m, cache := t.TempDir(), t.TempDir()
	packed(t, m, aa, "linux_amd64", "1.0.0")
	packed(t, m, bb, "linux_amd64", "1.0.0")
	var wg sync.WaitGroup
	for range 40 {
		b := newBench(t, m)
		b.Config.PluginCacheDir = cache
		b.Progress = nil
		wg.Go(func() {
			out, _, ds := Install(context.Background(), reqs(aa, "", bb, ""), nil, b.Options)
			if ds.HasErrors() {
				t.Error(ds.Err())
				return
			}
			for _, p := range out {
				if _, ds := p.Exe(context.Background()); ds.HasErrors() {
					t.Error(ds.Err())
				}
			}
		})
	}
	wg.Wait()
	err := filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
		if strings.Contains(d.Name(), "-download-") || strings.HasPrefix(d.Name(), ".linux") {
			t.Errorf("%s is left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCacheIsNeverEmpty installs packages of a directory into one cache for many working
// directories. After the first installation, the path in the cache leads to a package at
// every moment.
func TestCacheIsNeverEmpty(t *testing.T) {
	m, other, cache := t.TempDir(), t.TempDir(), t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0")
	unpacked(t, other, aa, "linux_amd64", "1.0.0")
	write(t, filepath.Join(other, aa.Host, aa.Namespace, aa.Type, "1.0.0/linux_amd64/more"), "x")
	install := func(from string) {
		b := newBench(t, from)
		b.Config.PluginCacheDir = cache
		b.mustInit(reqs(aa, ""))
	}
	install(m)
	place := filepath.Join(cache, "registry.opentofu.org/hashicorp/aa/1.0.0/linux_amd64")
	before, err := os.Lstat(place)
	if err != nil {
		t.Fatal(err)
	}
	install(m)
	if after, err := os.Lstat(place); err != nil || !os.SameFile(before, after) {
		t.Error("what is in place was put there again:", err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := os.Stat(place); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 100 {
		install(other)
		install(m)
	}
	close(done)
	wg.Wait()
}

func TestTranslatedLock(t *testing.T) {
	m := t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0", "1.2.0")
	b := newBench(t, m)
	var ds diag.List
	b.locked, ds = lock.Parse([]byte("provider \"registry.terraform.io/hashicorp/aa\" {\n version = \"1.0.0\"\n constraints = \"~> 1.0\"\n hashes = [\"h1:other\"]\n}\n"), lock.Name)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	_, ds = b.init(reqs(aa, ""))
	if ds.HasErrors() || !strings.Contains(ds[0].Detail, "registry.terraform.io/hashicorp/aa => registry.opentofu.org/hashicorp/aa") {
		t.Error(ds.Err())
	}
	if b.version(aa) != "1.0.0" || len(b.locked.Providers) != 1 || len(b.locked.Provider(aa).Hashes) != 1 {
		t.Errorf("%s", b.locked.Bytes())
	}
}
