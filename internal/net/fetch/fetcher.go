package fetch

// # The cache
//
// A cache folder has three parts. tree/HASH is the content of a package, named
// after a hash of it and read-only; tree/HASH.json lists its files with size and
// time, so that a change is noticed without reading them. addr/KEY.json tells
// which tree an address had when it was last asked, and lock/KEY keeps processes
// from fetching the same at once. A tree is put together in tmp and renamed.
//
// Addresses that name fixed content (a commit, a digest, a checksum, a version of
// a registry) are never asked again. Others are asked again when what the cache
// knows is older than ten minutes, or when the caller says so; if the source
// cannot be reached then, the cached package is used with a warning.

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

// A Fetcher brings packages onto this machine. Its methods may be called
// concurrently; a package is fetched once however many ask for it. Do not change
// the fields after the first call.
type Fetcher struct {
	Dir     string  // the cache; absolute
	WorkDir string  // where child processes run; absolute
	Home    string  // the user's home folder, "" if there is none
	Env     sys.Env // the environment of child processes, and where settings are looked for
	Run     func(context.Context, sys.Command) error
	Client  *transfer.Client
	Now     func() time.Time
	Limits  archive.Limits
	OCI     func(ctx context.Context, host, repository string) (OCICredentials, error) // nil: no credentials
	// S3 finds credentials of AWS, nil where there are none: buckets may be public.
	S3 func(ctx context.Context, a S3Access) (Signer, error)
	// GCS gives an access token of Google Cloud, "" where there are no credentials.
	GCS func(ctx context.Context) (string, error)
	// Progress is called with how much of a package has arrived; it may be called
	// concurrently, and may be nil.
	Progress func(Progress)

	once parallel.Cache[string, outcome]
	ok   parallel.Cache[string, bool] // trees that were found intact; false is not kept

	indexes    parallel.Cache[string, indexed]
	noReflinks atomic.Bool // the file system was found not to have them
}

// Progress is how far a package has come.
type Progress struct {
	Key         string // what the package is known as
	Done, Total int64  // bytes; Total is 0 if it is not known
	Ended       bool   // nothing more comes, for good or bad
}

// A Request asks for a package.
type Request struct {
	Address Address // of kind Remote; its Subdir does not matter
	// Key is what the package is known as in the cache; "" means the address. A
	// module of a registry has its own address and version as key.
	Key string
	// Find is called to learn the address when the cache does not have the
	// package; it goes before Address.
	Find    func(context.Context) (Found, error)
	Fixed   bool // the content behind Key never changes
	Refresh bool // ask the source though the cache has the package
}

// Found is where a package turned out to be.
type Found struct {
	Address Address     // of kind Remote
	Header  http.Header // for requests over HTTP, e.g. credentials; may be nil
	Archive bool        // the URL is that of an archive, whatever its name
}

// A Location is where a registry says that a package is.
type Location struct {
	Where  string      // an address, or a URL relative to Base
	Base   *url.URL    // what was asked
	Direct bool        // Where is the URL of an archive, whatever its name
	Header http.Header // for the request to it; may be nil
}

// A Package is a package on this machine.
type Package struct {
	Dir     string    // its folder: in the cache, or where the user has it
	Live    bool      // Dir is the user's own folder and is to be linked to
	Hash    lock.Hash // of the content; "" if Live
	Subdir  string    // which part of the package the found address meant
	Warning string    // e.g. that the source could not be asked
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
	Version string    `json:"version,omitempty"` // what names the content at the source, e.g. a commit
	Asked   time.Time `json:"asked"`
}

// Get brings a package into the cache, unless it is there, and returns where it is. Calls
// for one package share one download. A download that failed is repeated by the next call.
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
		if p, ok := f.cached(ctx, id, r, began); ok { // another process was faster
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

// cached is the package if the cache has it and nobody need be asked.
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

// Cached is the package as it was fetched last, whenever that was, if it is on this
// machine. Nobody is asked and nothing is written.
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

// Has reports whether the cache has a package of fixed content by that key.
func (f *Fetcher) Has(ctx context.Context, key string) bool {
	rec, ok := f.read(keyID(key))
	return ok && rec.Key == key && f.intact(ctx, rec.Tree)
}

func (f *Fetcher) packageOf(r record) Package {
	return Package{Dir: f.treeDir(r.Tree), Hash: r.Hash, Subdir: r.Subdir}
}

// work is one package being fetched.
type work struct {
	*Fetcher
	key    string // of the request
	a      Address
	header http.Header // for http and https
	sniff  bool        // a is that of an archive, whatever its name
	tmp    string      // for downloads
	old    string      // version in the cache, "" if there is none
	hops   int         // indirections so far
	subdir string      // added by indirections
}

// fetch asks the source and brings the package into the cache.
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

// arrived tells how much has arrived.
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
