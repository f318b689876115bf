package installer

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/source"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// A Registry provides modules from registries.
type Registry interface {
	// PackageKey returns the cache key of the package of a version.
	PackageKey(a fetch.Address, version string) string
	// ModuleVersions returns the versions of a module.
	ModuleVersions(ctx context.Context, a fetch.Address) ([]string, error)
	// ModuleLocation returns the location of the package of a version.
	ModuleLocation(ctx context.Context, a fetch.Address, version string) (fetch.Location, error)
}

// Options configures Install.
type Options struct {
	DataDir  string // absolute or relative to the root directory; "" means .terraform
	Upgrade  bool   // check all remote modules for newer versions
	Lenient  bool   // errors in the configuration of modules are warnings
	Tree     module.Options
	Packages *fetch.Fetcher
	Read     *readfile.Kept // reads the manifest; nil reads from disk each time
	Registry Registry
	Workers  int         // number of concurrent downloads; below 1 means 8
	Progress func(Event) // calls are not concurrent; may be nil

	Lock        *lock.File // the current dependency lock file; may be nil
	LockModules bool       // pin remote modules in it; they remain pinned once one is
	LockOnly    bool       // the lock file must not change

	// Tests contains module calls of test files by their manifest keys, which are installed in
	// addition to those of the root module.
	Tests map[string]*config.Call
}

// Result is the result of Install.
type Result struct {
	Manifest Manifest
	Lock     *lock.File // the new lock file; its providers are unchanged
	Root     *config.Module
	Calls    int // total number of module calls
}

// An EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	Downloading EventKind = iota // the download of Source and Version begins
	Ready                        // the module is available in Dir
)

// An Event reports progress about one call.
type Event struct {
	Kind            EventKind
	Key             string // path of the call
	Source, Version string
	Dir             string
}

// Text returns the event as a line of init's output.
func (e Event) Text() string {
	if e.Kind == Downloading {
		if e.Version != "" {
			return fmt.Sprintf("Downloading %s %s for %s...", source.HideCredentials(e.Source), e.Version, e.Key)
		}
		return fmt.Sprintf("Downloading %s for %s...", source.HideCredentials(e.Source), e.Key)
	}
	return fmt.Sprintf("- %s in %s", e.Key, e.Dir)
}

// installer is one run.
type installer struct {
	o    Options
	root string
	data string // data directory, absolute or relative like root

	old, next Manifest
	loads     *module.Loads
	versions  parallel.Cache[string, versionList]
	placed    map[string]string // directory of a placed package, by package key
	pins      *pins
	calls     map[*module.Node]*call // by the node that a call created
	seen      map[*config.Module]bool
	testRuns  map[*module.Node]bool // nodes of tests: the modules that they call are root modules of test runs

	mu sync.Mutex // protects Progress
}

type loaded struct {
	mod *config.Module
	ds  diag.List
}

// Install loads the root directory, which must be absolute, installs every module that it calls
// directly or indirectly, and writes the manifest. After an error, the manifest contains the modules
// that were installed, so that the next run continues from there. Messages contain file names
// relative to the root directory. If o.Tree.Config has an FS, it must resolve names relative to
// the root directory.
func Install(ctx context.Context, root string, o Options) (Result, diag.List) {
	in := &installer{o: o, root: root, next: Manifest{}, placed: map[string]string{}, seen: map[*config.Module]bool{}, testRuns: map[*module.Node]bool{}, calls: map[*module.Node]*call{}}
	in.data = in.dataDir()
	if err := inside.CheckData(in.data, filepath.Join(in.data, "modules")); err != nil {
		return Result{Manifest: Manifest{}, Lock: o.Lock.Clone()}, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to create local modules directory", "The directory for modules cannot be used: %s.", err)
	}
	if in.o.Tree.Config.FS == nil {
		in.o.Tree.Config.FS = folder(root)
	}
	var ds diag.List
	if in.old, ds = ReadManifest(o.Read, in.data); ds.HasErrors() {
		in.old, ds = Manifest{}, nil // it is written from scratch
	}
	in.pins = newPins(o)
	if in.loads = o.Tree.Loads; in.loads == nil {
		in.loads = &module.Loads{}
	}
	mod, more := in.loads.Load(".", in.o.Tree.Config)
	ds = append(ds, in.configMessages(more)...)
	res := Result{Root: mod, Lock: o.Lock.Clone()}
	if ds.HasErrors() {
		res.Manifest = in.old
		return res, ds
	}
	in.seen[mod] = true
	level := append([]*module.Node{{Config: mod, Dir: ".", Calls: map[string]*module.Node{}}}, in.tests()...)
	for len(level) > 0 && ctx.Err() == nil {
		var more diag.List
		level, more = in.level(ctx, level)
		ds = append(ds, more...)
		res.Calls += len(level)
	}
	if err := ctx.Err(); err != nil {
		ds = append(ds, diag.Errorf(diag.CodeCLIInterrupted, nil, "Module installation was canceled", "Modules were not installed completely: %s.", context.Cause(ctx))...)
	}
	if ds.HasErrors() {
		in.keepOld()
	}
	if len(o.Tests) == 0 {
		in.keepTests()
	}
	res.Manifest = in.next
	if ds.HasErrors() && len(in.next) == 0 && len(in.old) == 0 {
		return res, ds // without the root module there is nothing to install
	}
	if err := in.next.write(o.Read, in.data); err != nil {
		ds = append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to update module manifest", "The list of installed modules cannot be written: %s.", err)...)
	}
	if !ds.HasErrors() {
		var more diag.List
		res.Lock, more = in.pins.lockFile()
		ds = append(ds, more...)
	}
	return res, ds
}

// tests returns a module for each call of a test file. Its path is that of the key.
func (in *installer) tests() []*module.Node {
	var out []*module.Node
	for _, key := range slices.Sorted(maps.Keys(in.o.Tests)) {
		c := *in.o.Tests[key]
		steps := strings.Split(key, ".")
		n := &module.Node{Dir: ".", Calls: map[string]*module.Node{}}
		for _, s := range steps[:len(steps)-1] {
			n.Path = n.Path.Child(s)
		}
		c.Name = steps[len(steps)-1]
		n.Config = &config.Module{Calls: map[string]*config.Call{c.Name: &c}}
		in.testRuns[n] = true
		out = append(out, n)
	}
	return out
}

func (in *installer) dataDir() string {
	d := in.o.DataDir
	if d == "" {
		d = ".terraform"
	}
	if filepath.IsAbs(d) {
		return d
	}
	return filepath.Join(in.root, d)
}

// folder is a file system with names relative to a directory.
type folder string

func (f folder) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(f.path(name)) }
func (f folder) ReadFile(name string) ([]byte, error)       { return readfile.Whole(f.path(name)) }

func (f folder) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(string(f), name)
}

// keepOld keeps the entries of the old manifest for calls that were not reached.
func (in *installer) keepOld() {
	for key, e := range in.old {
		if _, ok := in.next[key]; !ok {
			in.next[key] = e
		}
	}
}

// keepTests keeps modules that OpenTofu or Terraform installed for test files. Their keys begin
// with "test.". A call with the same key replaces the entry.
func (in *installer) keepTests() {
	if _, taken := in.next["test"]; taken {
		return
	}
	for key, e := range in.old {
		if strings.HasPrefix(key, "test.") {
			in.next[key] = e
		}
	}
}

// configMessages turns errors in configuration into warnings if Lenient is set.
func (in *installer) configMessages(ds diag.List) diag.List {
	if !in.o.Lenient {
		return ds
	}
	out := make(diag.List, len(ds))
	for i, m := range ds {
		mild := *m
		mild.Severity = diag.Warning
		out[i] = &mild
	}
	return out
}

// level installs the modules that the modules of one depth call, and returns them.
func (in *installer) level(ctx context.Context, parents []*module.Node) ([]*module.Node, diag.List) {
	var calls []*call
	var ds diag.List
	for _, p := range parents {
		for _, name := range slices.Sorted(maps.Keys(p.Config.Calls)) {
			c, more := in.call(p, p.Config.Calls[name])
			ds = append(ds, more...)
			if c != nil {
				calls = append(calls, c)
			}
		}
	}
	in.remote(ctx, calls)
	mods := parallel.Map(len(calls), 0, func(i int) loaded {
		if calls[i].failed() {
			return loaded{}
		}
		m, ds := in.loads.Load(calls[i].node.Dir, in.o.Tree.Config)
		return loaded{m, ds}
	})
	var out []*module.Node
	for i, c := range calls {
		ds = append(ds, c.ds...)
		if c.failed() {
			continue
		}
		in.next[c.key] = module.Installed{Source: c.addr.String(), Version: c.version, Dir: c.dir}
		more := in.check(c, mods[i])
		ds = append(ds, more...)
		if !more.HasErrors() {
			c.node.Config = mods[i].mod
			out = append(out, c.node)
		}
		in.tell(Event{Kind: Ready, Key: c.key, Dir: c.dir})
	}
	return out, ds
}

// check returns the errors of a loaded module. The messages of a directory are returned once.
func (in *installer) check(c *call, l loaded) diag.List {
	if config.Unread(l.ds) {
		ds := diag.Errorf(diag.CodeFilesRead, &c.at, "Unreadable module directory", "The module %q cannot be loaded: the directory %s does not exist or cannot be read.", c.key, c.dir)
		if c.addr.Kind == fetch.Local && in.leavesPackage(c) {
			ds = diag.Errorf(diag.CodeModuleEscapes, &c.at, "Local module path escapes module package", "The path %q of module %q leads out of the package that the calling module belongs to. Local modules must be in the same package.", c.addr.Path, c.key)
		}
		return ds
	}
	if in.seen[l.mod] {
		return nil
	}
	in.seen[l.mod] = true
	return in.configMessages(l.ds)
}

// leavesPackage reports whether a local path leaves the package of the caller.
func (in *installer) leavesPackage(c *call) bool {
	for p := c.parent; p != nil; p = p.parent {
		if p.packageDir != "" {
			rel, err := filepath.Rel(p.packageDir, in.absolute(c.node.Dir))
			return err != nil || !filepath.IsLocal(rel)
		}
	}
	return false
}

func (in *installer) tell(e Event) {
	if in.o.Progress == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.o.Progress(e)
}

// shortKey formats a call path for messages: module.a.module.b.
func shortKey(key string) string {
	return "module." + strings.ReplaceAll(key, ".", ".module.")
}
