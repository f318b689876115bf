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

// FS is how Load reads: the two calls of package os of the same names. It is
// called from several goroutines at once.
type FS interface {
	ReadDir(name string) ([]fs.DirEntry, error)
	ReadFile(name string) ([]byte, error)
}

// Options says how to load. The zero value reads from the operating system.
type Options struct {
	FS      FS          // nil: the operating system
	Set     *source.Set // where the text of the files is recorded; nil: a new one
	Version string      // the language version that version constraints are held against; "" means LanguageVersion
	Workers int         // how many files and blocks are worked on at once; 0: as many as there are processors
	// Parses keeps the files that were parsed, for several folders that have some in
	// common; nil: for this one alone. It counts where FS is a Locator.
	Parses *Parses
}

// A Locator is an FS that tells where the text of a file lies: a name that two
// files have only if their texts are the same, or "".
type Locator interface {
	Locate(name string) string
}

// Parses are parsed files. The zero value is empty and ready; it may be used
// concurrently.
type Parses struct {
	known parallel.Cache[string, *syntax]
	n     atomic.Int64
}

// Parsed is how many files were read and parsed so far.
func (p *Parses) Parsed() int { return int(p.n.Load()) }

// Text is the text of a file that was read, by its path and the name that it was read by.
func (p *Parses) Text(path, name string) ([]byte, bool) {
	s, ok := p.known.Get(path + "\x00" + name)
	if !ok || s.err != nil {
		return nil, false
	}
	return s.text, true
}

// parse reads and parses a file, unless that was done before.
func (o *Options) parse(path string, read func() ([]byte, error)) *syntax {
	from, ok := o.FS.(Locator)
	if o.Parses == nil || !ok {
		return parse(path, read)
	}
	name := from.Locate(path)
	if name == "" {
		return parse(path, read)
	}
	return o.Parses.known.Local(name+"\x00"+path, func() (*syntax, bool) {
		o.Parses.n.Add(1)
		s := parse(path, read)
		return s, s.err == nil
	})
}

// LanguageVersion is the version of the language that this package knows.
const LanguageVersion = "1.12.6"

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = osFS{}
	}
	if o.Set == nil {
		o.Set = &source.Set{}
	}
	if o.Version == "" {
		o.Version = LanguageVersion
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

// Load reads a folder, merges its override files and decodes every block. The
// module is never nil and holds as much as could be understood, however many
// errors the list has; its files are named filepath.Join(dir, name) in places.
// Messages come in source order, whatever the timing.
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

// LoadFiles is Load for files that are in memory, by name within the folder.
// Nothing is read; the files must not be changed afterwards.
func LoadFiles(dir string, files map[string][]byte, o Options) (*Module, diag.List) {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	o.Parses = nil
	return load(dir, names, func(name string) ([]byte, error) { return files[name], nil }, o.withDefaults())
}

// Files lists the files of a folder with their roles, as Module.Files has them,
// without reading any.
func Files(dir string, o Options) ([]FileRole, diag.List) {
	names, ds := o.withDefaults().names(dir)
	return filesOf(dir, names), ds
}

// names lists the files that lie directly in a folder.
func (o Options) names(dir string) ([]string, diag.List) {
	entries, err := o.FS.ReadDir(dir)
	if err != nil {
		return nil, diag.List{{
			Code:    unread,
			Summary: "Failed to read module directory",
			Detail:  "The folder " + quote(dir) + " does not exist or cannot be read: " + diag.Reason(err) + ".",
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

// Unread reports whether Load said that it could not read the folder at all. A
// folder that it could read and that holds no configuration is an empty module.
func Unread(ds diag.List) bool { return len(ds) > 0 && ds[0].Code == unread }

const (
	unread     = diag.CodeConfigReadDir
	unreadFile = diag.CodeConfigReadFile
)

// unreadable reports whether a directory or file could not be read.
func unreadable(ds diag.List) bool {
	return slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == unread || m.Code == unreadFile })
}

// IsConfigDir reports whether a folder holds at least one configuration file
// that Load would read. Test files do not count, and a folder that cannot be
// read holds none.
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
