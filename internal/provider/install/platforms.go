package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// A Fetched is a package that LockPlatforms downloaded.
type Fetched struct {
	Provider addr.Provider
	Version  string
	Platform string // OS_ARCH
	Auth     Auth
	New      bool // the lock file did not contain its hash before
	First    bool // the lock file contained no hash of this provider before
}

// Wanted is the set of packages for LockPlatforms and Mirror.
type Wanted struct {
	Requirements Requirements
	Locked       *lock.File // the existing lock file; nil: none
	Platforms    []string   // OS_ARCH
}

// DirectOnly returns the options with each provider's own registry as the only source. This
// is the default of "providers lock" and "providers mirror".
func (o Options) DirectOnly() Options {
	conf := *o.config()
	conf.Installation = &directInstallation
	conf.PluginCacheDir = ""
	o.Config, o.PluginDirs = &conf, nil
	return o
}

// LockPlatforms adds the hashes of every required provider's package for each platform to
// the lock file, which the caller writes. It uses the locked version, or the newest allowed
// one. It installs nothing. each is called for every package, in the order of the
// platforms; it may be nil.
func LockPlatforms(ctx context.Context, w Wanted, o Options, each func(Fetched)) (*lock.File, diag.List) {
	locked := w.Locked
	next := locked.Clone()
	ds := forPackages(ctx, w, o, func(j *job, l local, pl platform, h1 lock.Hash) error {
		entry := next.Provider(j.p)
		if entry == nil || !entry.Version.Same(j.v) {
			entry = &lock.Provider{Addr: j.p, Version: j.v}
		}
		var before []lock.Hash
		if old := locked.Provider(j.p); old != nil && old.Version.Same(j.v) {
			before = knownHashes(old.Hashes)
		}
		f := Fetched{Provider: j.p, Version: j.v.String(), Platform: pl.String(), Auth: l.auth, New: !slices.Contains(before, h1), First: len(before) == 0}
		entry.Constraints = j.want[j.p].String()
		entry.Hashes = append(append(knownHashes(entry.Hashes), h1), l.trusted...)
		next.SetProvider(entry)
		if each != nil {
			each(f)
		}
		return nil
	})
	if ds.HasErrors() {
		return locked.Clone(), ds
	}
	return next, ds
}

// Mirror writes every required provider's package for each platform to a directory. The
// directory is a filesystem mirror and, with a web server, a network mirror. Existing
// packages are replaced.
func Mirror(ctx context.Context, w Wanted, dir string, o Options) diag.List {
	dir = o.path(dir)
	m := &mirror{dir: dir, shown: dir}
	changed := make(map[addr.Provider]bool)
	ds := forPackages(ctx, w, o, func(j *job, l local, pl platform, _ lock.Hash) error {
		name := fmt.Sprintf("terraform-provider-%s_%s_%s.zip", j.p.Type, j.v, pl)
		if err := os.MkdirAll(m.base(j.p), 0o755); err != nil {
			return err
		}
		if l.folder {
			return errors.New("the package is an unpacked one, from which no archive can be made; use a source that has archives")
		}
		if err := copyInto(l.path, filepath.Join(m.base(j.p), name)); err != nil {
			return err
		}
		changed[j.p] = true
		return nil
	})
	for _, p := range sorted(changed) {
		if err := m.writeIndex(ctx, p); err != nil {
			ds = append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the mirror", "The index of provider %s cannot be written: %s.", p, err)...)
		}
	}
	return ds
}

// forPackages downloads packages concurrently and calls use for each, one at a time, in the
// order of providers and then platforms.
func forPackages(ctx context.Context, w Wanted, o Options, use func(*job, local, platform, lock.Hash) error) diag.List {
	want, ds := w.Requirements.parse()
	if ds.HasErrors() {
		return ds
	}
	var pls []platform
	for _, text := range w.Platforms {
		os, arch, ok := strings.Cut(text, "_")
		if !ok || os == "" || arch == "" {
			return diag.Errorf(diag.CodeProviderPlatform, nil, "Invalid target platform", "The string %q given in the -platform option is not a valid target platform: it must be an operating system and an architecture, such as linux_amd64.", text)
		}
		pls = append(pls, platform{os, arch})
	}
	tmp, err := os.MkdirTemp("", "terrace-providers-*")
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to make a temporary directory", "%s.", err)
	}
	defer os.RemoveAll(tmp)
	in := &installer{o: o, want: want}
	in.locked, _ = translate(w.Locked, want)
	in.sources = in.methods()
	providers := sorted(want)
	type got struct {
		j  *job
		ls []local
		h1 []lock.Hash
		ds diag.List
	}
	results := parallel.Map(len(providers), o.Workers, func(i int) (out got) {
		out.j = &job{installer: in, p: providers[i]}
		defer out.j.tell(Event{Kind: Finished})
		if out.ds = out.j.settle(ctx); out.ds.HasErrors() {
			return out
		}
		for _, pl := range pls {
			l, h1, err := out.j.download(ctx, filepath.Join(tmp, fmt.Sprint(i), pl.String()), pl)
			if err != nil {
				out.ds = append(out.ds, out.j.platformFailed(err, pl)...)
				return out
			}
			out.ls, out.h1 = append(out.ls, l), append(out.h1, h1)
		}
		return out
	})
	for _, r := range results {
		ds = append(ds, r.ds...)
		for i, l := range r.ls {
			if err := use(r.j, l, pls[i], r.h1[i]); err != nil {
				ds = append(ds, diag.Errorf(diag.CodeProviderPackage, nil, "Failed to use provider package", "Provider %s %s for %s: %s.", r.j.p, r.j.v, pls[i], err)...)
			}
		}
	}
	return ds
}

// settle selects the version, ignoring installed packages.
func (j *job) settle(ctx context.Context) diag.List {
	have, err := j.available(ctx)
	if err != nil {
		return queryFailed(j.p, err)
	}
	ds := j.newest(have)
	if !ds.HasErrors() {
		old := j.locked.Provider(j.p)
		j.tell(Event{Kind: Selected, Constraints: j.want[j.p].String(), Locked: old != nil && old.Version.Same(j.v)})
	}
	return ds
}

func (j *job) download(ctx context.Context, tmp string, pl platform) (local, lock.Hash, error) {
	f, err := j.locate(ctx, pl)
	if err != nil {
		return local{}, "", err
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return local{}, "", err
	}
	j.tell(Event{Kind: Fetching, Platform: pl.String()})
	l, err := f.fetch(ctx, tmp, func(done, total int64) { j.tell(Event{Kind: Transfer, Done: done, Total: total}) })
	if err != nil {
		return local{}, "", err
	}
	j.tell(Event{Kind: Retrieved, Platform: pl.String(), Auth: l.auth})
	h1, err := j.h1(ctx, l)
	return l, h1, err
}

func (j *job) platformFailed(err error, pl platform) diag.List {
	if errors.Is(err, errPlatform) {
		return diag.Errorf(diag.CodeProviderPackage, nil, "Provider package not available", "Provider %s %s is not available for %s.", j.p, j.v, pl)
	}
	return diag.Errorf(diag.CodeProviderPackage, nil, "Failed to fetch provider package", "Provider %s %s for %s: %s.", j.p, j.v, pl, err)
}

func copyInto(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.CreateTemp(filepath.Dir(to), ".package-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	err = errors.Join(err, dst.Chmod(0o644), dst.Close())
	if err == nil {
		err = os.Rename(dst.Name(), to)
	}
	if err != nil {
		_ = os.Remove(dst.Name())
	}
	return err
}
