package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/source"
)

// FS is the file system from which Load reads. The methods correspond to the functions of
// package os. They are called concurrently.
type FS interface {
	// ReadDir returns the entries of a directory. Load accepts them in any order.
	ReadDir(name string) ([]fs.DirEntry, error)
	// ReadFile returns the content of a file. The caller does not modify it.
	ReadFile(name string) ([]byte, error)
}

// Options configures Load. The zero value reads from the operating system.
type Options struct {
	FS      FS          // nil means the operating system
	Set     *source.Set // records the text of the files; nil means a new one
	Version string      // language version to which version constraints apply; "" means LanguageVersion and NewestVersion
	Workers int         // maximum number of files and blocks that are processed concurrently; 0 means the number of processors
	// Parses caches parsed files for several directories that have files in common. nil means
	// no sharing. It is only used if FS is a Locator.
	Parses *Parses
}

// An Above is an FS that also contains files above its root, with names that begin with "..".
type Above interface {
	FS
	// Above returns the number of parent directories of the root that the FS contains.
	Above() int
}

// A Locator is an FS that returns the location of a file: a name that two files only share if
// their texts are equal, or "".
type Locator interface {
	// Locate returns the location of a file by its name in the FS.
	Locate(name string) string
}

// Parses caches parsed files. The zero value is empty and usable. It is safe for concurrent
// use.
type Parses struct {
	known   parallel.Cache[string, *syntax]
	n       atomic.Int64
	earlier atomic.Pointer[Parses] // nil means none
}

// Next returns a cache for the same directories after some of their files have changed. It takes the
// files that have not changed from p, and forgets the others. p may be nil.
func (p *Parses) Next() *Parses {
	next := &Parses{}
	if p != nil {
		p.earlier.Store(nil) // otherwise the caches of all changes would stay in memory
		next.earlier.Store(p)
	}
	return next
}

// Parsed returns the number of files that were read and parsed so far.
func (p *Parses) Parsed() int { return int(p.n.Load()) }

// Text returns the text of a file that was read, by its path and the name under which it was
// read.
func (p *Parses) Text(path, name string) ([]byte, bool) {
	s, ok := p.known.Get(path + "\x00" + name)
	if !ok || s.err != nil {
		return nil, false
	}
	return s.text, true
}

// parse reads and parses a file, unless it is in the cache.
func (o *Options) parse(path string, read func() ([]byte, error)) *syntax {
	from, ok := o.FS.(Locator)
	if o.Parses == nil || !ok {
		return parse(path, read)
	}
	name := from.Locate(path)
	if name == "" {
		return parse(path, read)
	}
	key := name + "\x00" + path
	return o.Parses.known.Local(key, func() (*syntax, bool) {
		if p := o.Parses.earlier.Load(); p != nil {
			if s, ok := p.known.Get(key); ok {
				return s, true
			}
		}
		o.Parses.n.Add(1)
		s := parse(path, read)
		return s, s.err == nil
	})
}

// LanguageVersion is the OpenTofu version whose behavior this package has. It also implements the
// language of NewestVersion, whose additions are errors in LanguageVersion. A version constraint
// holds if it allows one of the two.
const (
	LanguageVersion = "1.12.6"
	NewestVersion   = "1.13.1"
)

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = osFS{}
	}
	if o.Set == nil {
		o.Set = &source.Set{}
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o
}

// osFS reads from the operating system.
type osFS struct{}

func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) ReadFile(name string) ([]byte, error)       { return readfile.Whole(name) }

// Load reads a directory, merges its override files and decodes every block. The module is
// never nil. With errors it contains everything that could be decoded. Source ranges have file
// names filepath.Join(dir, name). Messages are in source order, independent of timing.
func Load(dir string, o Options) (*Module, diag.List) {
	o = o.withDefaults()
	names, ds := o.names(dir)
	if ds.HasErrors() {
		m := &Module{Dir: dir, Set: o.Set}
		m.init()
		return m, ds
	}
	return load(dir, names, func(name string) ([]byte, error) {
		return o.FS.ReadFile(filepath.Join(dir, name))
	}, o)
}

// LoadFiles is like Load for files in memory, by name within the directory. Nothing is read.
// The files must not be modified afterwards.
func LoadFiles(dir string, files map[string][]byte, o Options) (*Module, diag.List) {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	o.Parses = nil
	return load(dir, names, func(name string) ([]byte, error) { return files[name], nil }, o.withDefaults())
}

// Files returns the files of a directory with their roles, like Module.Files, without reading
// any.
func Files(dir string, o Options) ([]FileRole, diag.List) {
	names, ds := o.withDefaults().names(dir)
	return filesOf(dir, names), ds
}

// names returns the names of the files in a directory.
func (o Options) names(dir string) ([]string, diag.List) {
	entries, err := o.FS.ReadDir(dir)
	if err != nil {
		return nil, diag.List{{
			Code:    unread,
			Summary: "Failed to read module directory",
			Detail:  "The directory " + quote(dir) + " does not exist or cannot be read: " + diag.Reason(err) + ".",
		}}
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Unread reports whether Load could not read the directory. A directory without configuration
// is not an error; it results in an empty module.
func Unread(ds diag.List) bool { return len(ds) > 0 && ds[0].Code == unread }

const (
	unread     = diag.CodeConfigReadDir
	unreadFile = diag.CodeConfigReadFile
)

// unreadable reports whether a directory or file could not be read.
func unreadable(ds diag.List) bool {
	return slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == unread || m.Code == unreadFile })
}

// IsConfigDir reports whether a directory contains at least one configuration file that Load
// would read. Test files do not count. It returns false for a directory that cannot be read.
func IsConfigDir(dir string, o Options) bool {
	entries, err := o.withDefaults().FS.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if role := classify(e.Name()).role; role == RoleBase || role == RoleOverride {
			return true
		}
	}
	return false
}
