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

// installedDirs caches the installed modules and the lock files of many directories, because a client
// requests completion after each key.
type installedDirs struct {
	mu   sync.Mutex
	dirs []string
	read time.Time
	all  []installedDir
}

// installedDir contains what is installed or locked in a directory.
type installedDir struct {
	modules []manifestModule
	locked  []*lock.Provider
}

// Installed reads what earlier commands have installed in the directories of the workspace, the directory
// dir among them. What it read of the other directories counts for scanAge.
func (s *Session) Installed(ctx context.Context, dir string) (*Installed, error) {
	files, err := s.Index.All(ctx)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, f := range files { // sorted by path
		if d := filepath.Dir(f.Path); len(dirs) == 0 || d != dirs[len(dirs)-1] {
			dirs = append(dirs, d)
		}
	}
	all, err := s.installed.of(ctx, dirs[:min(len(dirs), maxInstalledDirs)], s.Index.now)
	if err != nil {
		return nil, err
	}
	in := &Installed{s: s, modules: map[string]map[string]bool{}, providers: map[addr.Provider]map[string]bool{}}
	in.add(readInstalled(dir))
	for _, d := range all {
		in.add(d)
	}
	for _, f := range files { // sources that are written in the workspace
		for via, source := range f.Paths {
			if kind, _, _ := strings.Cut(via, "."); source != "" && (kind == "module" || via == "terraform") {
				note(in.modules, ModuleSource(source), "")
			}
		}
	}
	return in, nil
}

func (x *installedDirs) of(ctx context.Context, dirs []string, now func() time.Time) ([]installedDir, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Equal(x.dirs, dirs) && now().Sub(x.read) < scanAge {
		return x.all, nil
	}
	all := make([]installedDir, 0, len(dirs))
	for _, d := range dirs {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, readInstalled(d))
	}
	x.dirs, x.all, x.read = dirs, all, now()
	return all, nil
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

func note[K comparable](to map[K]map[string]bool, key K, version string) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	to[key][version] = true
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
