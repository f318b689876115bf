package fetch

// # The cache
//
// A cache directory has four parts. tree/HASH contains the files of a package, read-only, and is
// named after a hash of them. tree/HASH.json lists these files with size and time, so that a
// change is detected without reading them. addr/KEY.json contains the tree that an address had
// when it was last requested. lock/KEY prevents processes from fetching the same package
// concurrently. A tree is assembled in tmp and then renamed.
//
// Addresses with fixed content (a commit, a digest, a checksum, a version of a registry) are
// never requested again. Other addresses are requested again if the entry is older than freshFor,
// or if the caller asks for it. If the source cannot be reached then, the cached package is used
// with a warning.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/internal/base/archive"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/filelock"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

const freshFor = 10 * time.Minute

// A Fetcher downloads packages to this machine. Its methods may be called concurrently, and a
// package is fetched once for all callers. The fields must not be changed after the first call.
type Fetcher struct {
	Dir     string  // directory of the cache; absolute
	WorkDir string  // working directory of child processes; absolute
	Home    string  // home directory of the user; "" if there is none
	Env     sys.Env // environment of child processes, which also contains settings
	Run     func(context.Context, sys.Command) error
	Client  *transfer.Client
	Now     func() time.Time
	Limits  archive.Limits
	OCI     func(ctx context.Context, host, repository string) (OCICredentials, error) // nil means no credentials
	// S3 returns the signer for a bucket, or nil if there are no credentials of AWS, because
	// buckets may be public. S3 may be nil.
	S3 func(ctx context.Context, a S3Access) (Signer, error)
	// GCS returns an access token of Google Cloud, or "" if there are no credentials. It may be
	// nil.
	GCS func(ctx context.Context) (string, error)
	// Progress is called as a package arrives. It may be called concurrently, and may be nil.
	Progress func(Progress)

	once parallel.Cache[string, outcome]
	ok   parallel.Cache[string, bool] // trees that were found intact; false is not cached

	indexes    parallel.Cache[string, indexed]
	noReflinks atomic.Bool // set once the file system turns out not to support reflinks
}

// Progress is the progress of a download.
type Progress struct {
	Key         string // key of the package
	Done, Total int64  // in bytes; Total is 0 if it is unknown
	Ended       bool   // the download ended, with or without an error
}

// A Request is a request for a package.
type Request struct {
	Address Address // of kind Remote; Subdir is ignored
	// Key is the key of the package in the cache. "" means the address. The key of a registry
	// module is its own address with the version.
	Key string
	// Find is called to determine the address if the cache does not contain the package. It takes
	// precedence over Address. It may be nil.
	Find    func(context.Context) (Found, error)
	Fixed   bool // the content of Key never changes
	Refresh bool // request the source even if the cache contains the package
}

// Found is the location of a package.
type Found struct {
	Address Address     // of kind Remote
	Header  http.Header // headers of HTTP requests, such as credentials; may be nil
	Archive bool        // the URL is an archive, whatever its name
}

// A Location is the location of a package in a registry's response.
type Location struct {
	Where  string      // address, or URL relative to Base
	Base   *url.URL    // URL of the request
	Direct bool        // Where is the URL of an archive, whatever its name
	Header http.Header // headers of the request for it; may be nil
}

// A Package is a package on this machine.
type Package struct {
	Dir     string    // directory of the package: in the cache, or the user's own
	Live    bool      // Dir is the user's own directory; modules link to it
	Hash    lock.Hash // hash of the content; "" if Live
	Subdir  string    // directory in the package that the found address specified
	Warning string    // for example that the source could not be reached
}

type outcome struct {
	pkg Package
	err error
}

// record is addr/KEY.json.
type record struct {
	Key     string    `json:"key"`
	Tree    string    `json:"tree"`
	Hash    lock.Hash `json:"hash"`
	Subdir  string    `json:"subdir,omitempty"`
	Version string    `json:"version,omitempty"` // version of the content at the source, such as a commit
	Asked   time.Time `json:"asked"`
}

// Get downloads a package into the cache, unless it is there, and returns it. Concurrent calls
// for one package share one download. After a failure, the next call downloads it again.
func (f *Fetcher) Get(ctx context.Context, r Request) (Package, error) {
	if r.Key == "" {
		r.Key = r.Address.Package()
	}
	key := fmt.Sprintf("%t %s", r.Refresh, r.Key)
	out, err := f.once.Do(ctx, key, func() (outcome, bool) {
		p, err := f.get(ctx, r)
		return outcome{p, err}, err == nil
	})
	if err != nil {
		return Package{}, err
	}
	return out.pkg, out.err
}

func (f *Fetcher) get(ctx context.Context, r Request) (Package, error) {
	if r.Find == nil {
		if live, ok, err := f.live(r.Address); ok || err != nil {
			return live, err
		}
	}
	id := keyID(r.Key)
	began := f.now()
	if p, ok := f.cached(ctx, id, r, began); ok {
		return p, nil
	}
	for _, d := range []string{"addr", "tree", "tmp", "lock"} {
		if err := os.MkdirAll(filepath.Join(f.Dir, d), 0o755); err != nil {
			return Package{}, fmt.Errorf("cannot make the module cache: %w", err)
		}
	}
	unlock, err := filelock.Lock(ctx, filepath.Join(f.Dir, "lock", id))
	if err != nil {
		return Package{}, err
	}
	defer unlock()
	old, have := f.read(id)
	if have && (!r.Refresh || !old.Asked.Before(began)) {
		if p, ok := f.cached(ctx, id, r, began); ok { // another process has fetched it
			return p, nil
		}
	}
	p, err := f.fetch(ctx, id, r, old)
	if err != nil && have && !r.Refresh && transfer.Unreachable(err) && f.intact(ctx, old.Tree) {
		p = f.packageOf(old)
		p.Warning = fmt.Sprintf("%s could not be asked whether it has changed (%s), so the cached copy of %s is used.", r.Key, err, old.Asked.UTC().Format(time.DateTime))
		return p, nil
	}
	return p, err
}

func (f *Fetcher) now() time.Time {
	if f.Now == nil {
		return time.Time{}
	}
	return f.Now()
}

func keyID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func (f *Fetcher) read(id string) (record, bool) {
	text, err := readfile.Whole(filepath.Join(f.Dir, "addr", id+".json"))
	var r record
	if err != nil || json.Unmarshal(text, &r) != nil || !validTree(r.Tree) {
		return record{}, false
	}
	return r, true
}

func (f *Fetcher) write(id string, r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.WriteMode(filepath.Join(f.Dir, "addr", id+".json"), text, 0o644)
}

// cached returns the package if the cache contains it and the source need not be requested.
func (f *Fetcher) cached(ctx context.Context, id string, r Request, began time.Time) (Package, bool) {
	rec, ok := f.read(id)
	if !ok || rec.Key != r.Key {
		return Package{}, false
	}
	fixed := r.Fixed || r.Find == nil && fixedContent(r.Address)
	fresh := !r.Refresh && began.Sub(rec.Asked) < freshFor || !rec.Asked.Before(began)
	if !(fixed && !r.Refresh || fresh) || !f.intact(ctx, rec.Tree) {
		return Package{}, false
	}
	return f.packageOf(rec), true
}

// Cached returns the package as it was last fetched, whenever that was, if it is on this machine.
// It sends no requests and writes nothing.
func (f *Fetcher) Cached(ctx context.Context, r Request) (p Package, ok bool, err error) {
	if r.Key == "" {
		r.Key = r.Address.Package()
	}
	if r.Find == nil {
		if p, ok, err = f.live(r.Address); ok || err != nil {
			return p, ok, err
		}
	}
	rec, ok := f.read(keyID(r.Key))
	if !ok || rec.Key != r.Key || !f.intact(ctx, rec.Tree) {
		return Package{}, false, nil
	}
	return f.packageOf(rec), true, nil
}

// Has reports whether the cache contains a package with a key. Its content must be fixed.
func (f *Fetcher) Has(ctx context.Context, key string) bool {
	rec, ok := f.read(keyID(key))
	return ok && rec.Key == key && f.intact(ctx, rec.Tree)
}

func (f *Fetcher) packageOf(r record) Package {
	return Package{Dir: f.treeDir(r.Tree), Hash: r.Hash, Subdir: r.Subdir}
}

// work is the download of one package.
type work struct {
	*Fetcher
	key    string // key of the request
	a      Address
	header http.Header // headers for http and https
	sniff  bool        // a is an archive, whatever its name
	tmp    string      // directory for downloads
	old    string      // version in the cache; "" if there is none
	hops   int         // number of indirections so far
	subdir string      // subdirectory added by indirections
}

// fetch downloads a package from its source into the cache.
func (f *Fetcher) fetch(ctx context.Context, id string, r Request, old record) (Package, error) {
	found := Found{Address: r.Address}
	if r.Find != nil {
		var err error
		if found, err = r.Find(ctx); err != nil {
			return Package{}, err
		}
		if live, ok, err := f.live(found.Address); ok || err != nil {
			live.Subdir = found.Address.Subdir
			return live, err
		}
	}
	tmp, err := os.MkdirTemp(filepath.Join(f.Dir, "tmp"), "get-*")
	if err != nil {
		return Package{}, err
	}
	defer removeAll(tmp)
	w := &work{Fetcher: f, key: r.Key, a: found.Address, header: found.Header, sniff: found.Archive, tmp: tmp}
	if f.Progress != nil {
		defer f.Progress(Progress{Key: r.Key, Ended: true})
	}
	if old.Tree != "" && f.intact(ctx, old.Tree) {
		w.old = old.Version
	}
	dir := filepath.Join(tmp, "package")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return Package{}, err
	}
	version, err := w.get(ctx, dir)
	if err != nil {
		return Package{}, err
	}
	rec := record{Key: r.Key, Version: version, Asked: f.now(), Tree: old.Tree, Hash: old.Hash}
	if version == "" || version != w.old {
		if rec.Tree, rec.Hash, err = f.keep(ctx, dir); err != nil {
			return Package{}, err
		}
	}
	if r.Find != nil {
		rec.Subdir = found.Address.Subdir
	}
	rec.Subdir = joinSub(w.subdir, rec.Subdir)
	return f.packageOf(rec), f.write(id, rec)
}

// arrived reports the progress of the download, in bytes.
func (w *work) arrived(done, total int64) {
	if w.Progress != nil {
		w.Progress(Progress{Key: w.key, Done: done, Total: total})
	}
}

func (w *work) get(ctx context.Context, dir string) (string, error) {
	switch w.a.Getter {
	case "git":
		return w.git(ctx, dir)
	case "hg":
		return "", w.hg(ctx, dir)
	case "http", "https":
		return "", w.http(ctx, dir)
	case "file":
		return "", w.fileArchive(ctx, dir)
	case "s3":
		return "", w.s3(ctx, dir)
	case "gcs":
		return "", w.gcs(ctx, dir)
	case "oci":
		return w.oci(ctx, dir)
	}
	return "", fmt.Errorf("there is no way to fetch %q", w.a.Getter)
}
