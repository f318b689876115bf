package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// maxInstalledDirs is the number of directories of the workspace whose lock files and installed modules
// are read for one completion.
const maxInstalledDirs = 1000

// Installed contains the modules and providers that earlier commands have installed or locked in the
// workspace. It is read from disk, without network.
type Installed struct {
	s         *Session
	modules   map[string]map[string]bool // versions by source, as ModuleSource returns it; "" is no version
	providers map[addr.Provider]map[string]bool
}

// installedDirs caches the providers and modules that are installed in the directories of the workspace. A client
// requests completion after each key, and reading the directories takes longer than the time between two keys.
type installedDirs struct {
	mu      sync.Mutex
	all     *Installed    // nil before the first reading; never modified
	read    time.Time     // when the last reading has ended
	reading chan struct{} // is closed at the end of the reading that runs; nil means that none runs
}

// installedDir contains what is installed or locked in a directory.
type installedDir struct {
	modules []manifestModule
	locked  []*lock.Provider
}

// Installed returns what earlier commands have installed in the directories of the workspace, the directory
// dir among them. What it knows of the other directories may be older: after scanAge, a request starts
// another reading in the background.
func (s *Session) Installed(ctx context.Context, dir string) (*Installed, error) {
	if err := s.Index.Scan(ctx); err != nil {
		return nil, err
	}
	all, err := s.installedInDirs(ctx)
	if err != nil {
		return nil, err
	}
	in := &Installed{s: s, modules: maps.Clone(all.modules), providers: maps.Clone(all.providers)}
	in.add(readInstalled(dir))
	for _, source := range s.Index.moduleSources() {
		note(in.modules, source, "")
	}
	return in, nil
}

// installedInDirs returns the result of the last reading of the directories. The first request waits for it.
func (s *Session) installedInDirs(ctx context.Context) (*Installed, error) {
	x := &s.installed
	x.mu.Lock()
	if x.reading == nil && (x.all == nil || s.Index.now().Sub(x.read) >= scanAge) {
		x.reading = make(chan struct{})
		go s.readInstalledDirs(context.WithoutCancel(ctx)) // ends after at most maxInstalledDirs directories
	}
	all, reading := x.all, x.reading
	x.mu.Unlock()
	if all != nil {
		return all, nil
	}
	notUrgent(ctx)
	select {
	case <-reading:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all, nil
}

// readInstalledDirs reads the directories of the workspace.
func (s *Session) readInstalledDirs(ctx context.Context) {
	all := &Installed{modules: map[string]map[string]bool{}, providers: map[addr.Provider]map[string]bool{}}
	for _, dir := range s.Index.firstDirs(maxInstalledDirs) {
		s.Index.pause(ctx)
		all.add(readInstalled(dir))
	}
	x := &s.installed
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all, x.read = all, s.Index.now()
	close(x.reading)
	x.reading = nil
}

// readInstalled reads the manifest of the modules and the lock file of a directory.
func readInstalled(dir string) (d installedDir) {
	d.modules = manifest(dir)
	raw, err := readfile.Whole(filepath.Join(dir, lock.Name))
	if err != nil {
		return d
	}
	if locked, ds := lock.Parse(raw, lock.Name); !ds.HasErrors() {
		d.locked = locked.Sorted()
	}
	return d
}

func (in *Installed) add(d installedDir) {
	for _, m := range d.modules {
		note(in.modules, ModuleSource(m.Source), m.Version)
	}
	for _, p := range d.locked {
		note(in.providers, p.Addr, p.Version.String())
	}
}

// note adds a version. It does not modify the versions that are there, which another map may contain too.
func note[K comparable](to map[K]map[string]bool, key K, version string) {
	if to[key][version] {
		return
	}
	all := map[string]bool{version: true}
	maps.Copy(all, to[key])
	to[key] = all
}

// ModuleSource returns the source of a module without the default registry's host. It is "" for a local
// path.
func ModuleSource(source string) string {
	if strings.HasPrefix(source, ".") || filepath.IsAbs(source) {
		return ""
	}
	return strings.TrimPrefix(source, addr.DefaultHost+"/")
}

// ModuleSources returns the sources of installed modules, and those in the workspace, that are not local
// paths, sorted.
func (in *Installed) ModuleSources() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(in.modules)), func(s string) bool { return s == "" })
}

// ModuleVersions returns the installed versions of the package of a module, newest first.
func (in *Installed) ModuleVersions(source string) []string {
	of := func(source string) string { // the package, without a query
		source, _, _ = strings.Cut(ModuleSource(source), "//")
		return source
	}
	all := map[string]bool{}
	for s, found := range in.modules {
		if s != "" && of(s) == of(source) {
			maps.Copy(all, found)
		}
	}
	return newestFirst(all)
}

// Providers returns the sources of locked providers, sorted.
func (in *Installed) Providers() (out []string) {
	for a := range in.providers {
		if !a.IsBuiltIn() {
			out = append(out, a.Display())
		}
	}
	slices.Sort(out)
	return out
}

// ProviderVersions returns the versions of a provider that are locked, in the plugin cache, or whose schemas
// are kept, newest first.
func (in *Installed) ProviderVersions(a addr.Provider) []string {
	all := map[string]bool{}
	maps.Copy(all, in.providers[a])
	if pl := in.s.plugins; pl != nil {
		for _, version := range pl.Schemas.Releases(a, pl.Directory.Env) {
			all[version] = true
		}
		if cache := pl.Config.PluginCacheDir; cache != "" {
			entries, err := os.ReadDir(sys.Join(pl.Directory.Dir, filepath.Join(cache, a.Host, a.Namespace, a.Type)))
			for _, e := range entries {
				if err == nil && e.IsDir() {
					all[e.Name()] = true
				}
			}
		}
	}
	return newestFirst(all)
}

// newestFirst returns those texts that are versions, newest first.
func newestFirst(all map[string]bool) []string {
	var list versions.List
	for text := range all {
		if v, err := versions.ParseVersion(text); err == nil {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b versions.Version) int {
		switch {
		case a.LessThan(b):
			return 1
		case b.LessThan(a):
			return -1
		}
		return cmp.Compare(a.String(), b.String())
	})
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

// A manifestModule is an installed module in the manifest of a directory.
type manifestModule struct{ Key, Source, Version, Dir string }

// manifest returns the modules that are installed for a directory.
func manifest(dir string) []manifestModule {
	raw, err := readfile.Whole(filepath.Join(dir, ".terraform", "modules", "modules.json"))
	if err != nil {
		return nil
	}
	var list struct{ Modules []manifestModule }
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list.Modules
}
