package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// A job is the installation of one provider.
type job struct {
	*installer
	p        addr.Provider
	v        versions.Version
	warnings []string
	from     []listed // the sources that have the provider, in order

	prior []lock.Hash // the hashes in the lock file; nil: any
	dir   string      // the package's directory in the working directory
	cache string      // the package's directory in the plugin cache; "" without one

	done     bool
	add      []lock.Hash // hashes to add to the lock file
	complete bool        // whether add covers all platforms
	notes    []string    // messages about the package
}

// listed is a source with its versions of a provider.
type listed struct {
	source
	versions []versions.Version
}

func (j *job) tell(e Event) {
	e.Provider, e.Version = j.p, j.v
	j.installer.tell(e)
}

// choose sets the version.
func (j *job) choose(v versions.Version) {
	j.v = v
	j.prior = nil
	if old := j.locked.Provider(j.p); old != nil && old.Version.Same(v) {
		j.prior = knownHashes(old.Hashes)
	}
	j.dir = packageDir(j.o.providersDir(), j.p, v, j.o.platform())
	if c := j.o.config().PluginCacheDir; c != "" {
		j.cache = packageDir(j.o.path(c), j.p, v, j.o.platform())
	}
}

// available returns the versions that any source has.
func (j *job) available(ctx context.Context) ([]versions.Version, error) {
	var out []versions.Version
	nowhere := &notFoundError{p: j.p}
	for _, m := range j.sources {
		if !m.allows(j.p) {
			continue
		}
		nowhere.where = append(nowhere.where, m.where(j.p))
		vs, warn, err := m.versions(ctx, j.p)
		if errors.Is(err, errUnknown) {
			continue
		}
		if err != nil {
			return nil, err
		}
		j.from = append(j.from, listed{m.source, vs})
		out = append(out, vs...)
		j.warnings = append(j.warnings, warn...)
	}
	if len(out) == 0 {
		return nil, nowhere
	}
	return out, nil
}

// locate returns the package for a platform from the first source that contains it.
func (j *job) locate(ctx context.Context, pl platform) (found, error) {
	err := error(errPlatform)
	for _, s := range j.from {
		if !slices.ContainsFunc(s.versions, j.v.Same) {
			continue
		}
		f, ferr := s.find(ctx, j.p, j.v, pl)
		if ferr == nil {
			return f, nil
		}
		err = ferr
	}
	return nil, err
}

// local finishes the job if the package is installed or in the plugin cache, and the lock
// file contains its hash.
func (j *job) local(ctx context.Context) error {
	if j.vouched(ctx, j.dir) {
		j.tell(Event{Kind: InPlace})
		j.done = true
		return nil
	}
	if j.cache == "" {
		return nil
	}
	switch {
	case j.vouched(ctx, j.cache):
	case j.o.config().PluginCacheMayBreakLock:
		h, err := j.hash(ctx, j.cache)
		if err != nil {
			return nil // there is no usable package
		}
		j.add = []lock.Hash{h}
	default:
		return nil
	}
	j.tell(Event{Kind: InCache})
	return j.link(ctx)
}

func (j *job) link(ctx context.Context) error {
	j.tell(Event{Kind: FromCache})
	j.done = true
	if err := j.inside(); err != nil {
		return err
	}
	return linkCached(ctx, j.cache, j.dir)
}

// inside checks that no symbolic link leads from the data directory to the package's
// directory.
func (j *job) inside() error { return inside.CheckData(j.o.dataDir(), filepath.Dir(j.dir)) }

// vouched reports whether a directory contains a package whose hash is in the lock file.
func (j *job) vouched(ctx context.Context, dir string) bool {
	if !lock.HasScheme(j.prior, "h1") {
		return false
	}
	if _, err := os.Stat(dir); err != nil {
		return false
	}
	h, err := j.hash(ctx, dir)
	return err == nil && slices.Contains(j.prior, h)
}

// install installs the package, through the plugin cache if there is one.
func (j *job) install(ctx context.Context) error {
	place, begin, end := j.dir, Installing, Installed
	if j.cache != "" {
		place, begin, end = j.cache, ToCache, InstalledAt
	}
	if err := j.inside(); err != nil {
		return err
	}
	f, err := j.locate(ctx, j.o.platform())
	if err != nil {
		return err
	}
	if ok, err := j.reuse(ctx, f); ok || err != nil {
		return err
	}
	unlock, err := lockPlace(ctx, place)
	if err != nil {
		return err
	}
	defer unlock()
	if ok, err := j.reuse(ctx, f); ok || err != nil { // another process installed it first
		return err
	}
	j.tell(Event{Kind: begin})
	auth, err := j.bring(ctx, f, place)
	if err != nil {
		return err
	}
	j.tell(Event{Kind: end, Auth: auth})
	if j.cache != "" {
		return j.link(ctx)
	}
	return nil
}

// bring downloads a package, checks it and puts it into its directory.
func (j *job) bring(ctx context.Context, f found, place string) (Auth, error) {
	tmp, err := os.MkdirTemp(filepath.Dir(place), "."+filepath.Base(place)+"-download-*")
	if err != nil {
		return Auth{}, err
	}
	defer os.RemoveAll(tmp)
	l, err := f.fetch(ctx, tmp, func(done, total int64) { j.tell(Event{Kind: Transfer, Done: done, Total: total}) })
	if err != nil {
		return Auth{}, err
	}
	h1, err := j.h1(ctx, l)
	if err != nil {
		return Auth{}, err
	}
	if err := matches(ctx, l, h1, j.prior); err != nil {
		return Auth{}, err
	}
	j.add, j.complete = append([]lock.Hash{h1}, l.trusted...), l.complete
	j.notes = l.warnings
	// An identical package is not replaced: its programs may be running, and other
	// processes may be reading it.
	if have, err := j.hash(ctx, place); err != nil || have != h1 || leadsElsewhere(place, l) {
		if err := put(ctx, l, place); err != nil {
			return Auth{}, err
		}
	}
	if _, err := executable(place, j.p); err != nil {
		_ = os.RemoveAll(place) // otherwise it would count as installed
		return Auth{}, fmt.Errorf("provider binary not found: %w", err)
	}
	return l.auth, j.remember(ctx, l, h1, place)
}

// matches compares a package on this machine with the allowed hashes. It accepts the
// package if none of the hashes can be computed for it.
func matches(ctx context.Context, l local, h1 lock.Hash, allowed []lock.Hash) error {
	var have []lock.Hash
	if lock.HasScheme(allowed, "h1") {
		have = append(have, h1)
	}
	if !l.folder && lock.HasScheme(allowed, "zh") {
		h, err := lock.HashZip(ctx, l.path)
		if err != nil {
			return err
		}
		have = append(have, h)
	}
	if len(have) == 0 || slices.ContainsFunc(have, func(h lock.Hash) bool { return slices.Contains(allowed, h) }) {
		return nil
	}
	return errMismatch
}

var errMismatch = errors.New("the package does not match any of the checksums previously recorded in the dependency lock file (this might be because the available checksums are for packages targeting different platforms)")

// hash returns the hash of an unpacked package.
func (j *job) hash(ctx context.Context, dir string) (lock.Hash, error) {
	return j.o.Hashes.dir(ctx, dir, j.p)
}

func (j *job) h1(ctx context.Context, l local) (lock.Hash, error) {
	if l.folder {
		return j.hash(ctx, l.path)
	}
	return lock.HashArchive(ctx, l.path, unpackLimit)
}

func (in *installer) tell(e Event) {
	if in.o.Progress == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.o.Progress(e)
}

// # Notes in the plugin cache
//
// For each downloaded package, the plugin cache contains a note next to the package, with
// the checksum of the downloaded archive. So a working directory without a lock file can
// use the cached package: the source has the checksum of the archive, the note has the hash
// of the unpacked archive, and the directory is compared with that hash. The note is
// exactly as trustworthy as the cache itself.
type note struct {
	Archive lock.Hash `json:"archive"`
	Content lock.Hash `json:"content"`
}

func (j *job) remember(ctx context.Context, l local, h1 lock.Hash, place string) error {
	if j.cache == "" || l.folder {
		return nil
	}
	zh, err := lock.HashZip(ctx, l.path)
	if err != nil {
		return err
	}
	text, err := json.Marshal(note{zh, h1})
	if err != nil {
		return err
	}
	return os.WriteFile(place+".json", text, 0o644)
}

// reuse uses the cached package if the lock file or the source has its hash.
func (j *job) reuse(ctx context.Context, f found) (bool, error) {
	if j.cache == "" {
		return false, nil
	}
	if _, err := os.Stat(j.cache); err != nil {
		return false, nil
	}
	if j.vouched(ctx, j.cache) {
		j.tell(Event{Kind: InCache})
		return true, j.link(ctx)
	}
	known, trusted, complete, err := f.vouches(ctx)
	if err != nil || len(known) == 0 {
		return false, err
	}
	h1, err := j.hash(ctx, j.cache)
	if err != nil {
		return false, nil
	}
	var n note
	if text, err := readfile.Whole(j.cache + ".json"); err == nil && json.Unmarshal(text, &n) != nil {
		n = note{}
	}
	if !slices.Contains(known, h1) && !(n.Content == h1 && slices.Contains(known, n.Archive)) {
		return false, nil
	}
	if len(j.prior) > 0 && !slices.Contains(j.prior, h1) && !(n.Content == h1 && slices.Contains(j.prior, n.Archive)) {
		return false, nil
	}
	j.add, j.complete = append([]lock.Hash{h1}, trusted...), complete
	j.tell(Event{Kind: InCache})
	return true, j.link(ctx)
}

func writePluginPath(path string, dirs []string) error {
	text, err := json.MarshalIndent(dirs, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteUnlinked(path, text, 0o644)
}
