package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

var pkgNoVersion = versions.Unspecified

// An installer is one call of Install.
type installer struct {
	o       Options
	want    parsed
	locked  *lock.File
	sources []method
	net     network

	mu sync.Mutex // serializes calls of Progress
}

// Install installs every required provider. It returns the packages and the new lock file,
// which the caller writes if it differs from the old one. If there are errors, the returned
// lock file is the old one. locked may be nil. Packages have the order of their addresses.
func Install(ctx context.Context, req Requirements, locked *lock.File, o Options) (map[addr.Provider]Package, *lock.File, diag.List) {
	want, ds := req.parse()
	if ds.HasErrors() {
		return nil, locked.Clone(), ds
	}
	in := &installer{o: o, want: want}
	var changed []string
	in.locked, changed = translate(locked, want)
	if len(changed) > 0 {
		ds = append(ds, diag.Warnf(diag.CodeLockMismatch, nil, "Dependency lock file entries automatically updated", "Some entries of the dependency lock file were rewritten:\n%s\n\nThe version selections were preserved, but the hashes were not because the providers of the two registries are not byte-for-byte identical.", bullets(changed))...)
	}
	in.sources = in.methods()
	providers := sorted(want)
	workers := o.Workers
	if workers < 1 {
		workers = 8
	}
	results := parallel.Map(len(providers), workers, func(i int) result { return in.one(ctx, providers[i], req[providers[i]]) })
	next := &lock.File{Modules: in.locked.Modules}
	out := make(map[addr.Provider]Package, len(providers))
	var incomplete []string
	for i, r := range results {
		ds = append(ds, r.ds...)
		if r.entry == nil {
			continue
		}
		p := providers[i]
		next.SetProvider(r.entry)
		out[p] = newPackage(p, r.entry.Version, packageDir(o.providersDir(), p, r.entry.Version, o.platform()), r.entry.Hashes, o.Hashes)
		if r.incomplete {
			incomplete = append(incomplete, p.Display())
		}
	}
	if ds.HasErrors() {
		return out, locked.Clone(), ds
	}
	if len(incomplete) > 0 {
		pl := o.platform()
		ds = append(ds, diag.Warnf(diag.CodeLockMismatch, nil, "Incomplete lock file information for providers", "Due to your customized provider installation methods, lock file checksums were calculated locally for the following providers:\n%s\n\nThe current %s file only includes checksums for %s, so the providers cannot be installed on another platform.\n\nTo calculate additional checksums for another platform, run:\n  terrace providers lock -platform=%s\n(where %s is the platform to generate)", bullets(incomplete), lock.Name, pl, pl, pl)...)
	}
	return out, next, ds
}

// A result is the result for one provider.
type result struct {
	entry      *lock.Provider // nil after an error
	incomplete bool           // whether the lock file lacks checksums for other platforms
	ds         diag.List
}

// one selects and installs one provider.
func (in *installer) one(ctx context.Context, p addr.Provider, places []config.Constraint) result {
	j := &job{installer: in, p: p}
	ds := j.pick(ctx)
	for _, w := range j.warnings {
		ds = append(ds, diag.Warnf(diag.CodeProviderRegistryWarning, nil, "Additional provider information from registry", "The remote registry returned warnings for %s:\n- %s", p, w)...)
	}
	if !ds.HasErrors() && !j.done {
		ds = append(ds, j.failed(j.install(ctx))...)
	}
	for _, n := range j.notes {
		ds = append(ds, diag.Warnf(diag.CodeProviderExpiredKey, nil, "Provider signed with an expired key", "%s", n)...)
	}
	if ds.HasErrors() {
		blame(ds.Errors(), places)
		return result{ds: ds}
	}
	entry := &lock.Provider{Addr: p, Version: j.v, Constraints: in.want[p].String(), Hashes: append(slices.Clone(j.prior), j.add...)}
	if old := in.locked.Provider(p); old != nil && old.Version.Same(j.v) {
		entry.Constraints = old.Constraints // the constraints record why the version was selected
	}
	return result{entry: entry, ds: ds, incomplete: !j.complete && len(j.prior) == 0}
}

// A place is a source range.
type place = hcl.Range

// blame adds some of the source ranges that require a provider to the messages.
func blame(ds diag.List, places []config.Constraint) {
	const most = 3
	seen := make(map[place]bool)
	for _, c := range places {
		if seen[c.At] || c.At == (place{}) {
			continue
		}
		seen[c.At] = true
		if at := c.At; len(seen) <= most {
			ds.Note(&at, "required here")
		}
	}
	if more := len(seen) - most; more > 0 {
		ds.Note(nil, "and required in %d more places", more)
	}
}

// pick selects the version of a provider. If it is the locked version and that is
// installed, no source is contacted and the job is done.
func (j *job) pick(ctx context.Context) diag.List {
	const unresolved = "Failed to resolve provider packages"
	c := j.want[j.p]
	allowed := c.Allows()
	old := j.locked.Provider(j.p)
	keep := old != nil && !j.o.Upgrade
	if keep {
		j.tell(Event{Kind: Reusing})
		if !allowed.Has(old.Version) {
			return diag.Errorf(diag.CodeProviderPackage, nil, unresolved, "Could not resolve provider %s: locked provider %s %s does not match configured version constraint %s; must use \"terrace init -upgrade\" to allow selection of new versions.", j.p.Display(), j.p, old.Version, c)
		}
		j.choose(old.Version)
		if err := j.local(ctx); err != nil || j.done {
			return j.failed(err)
		}
	} else {
		j.tell(Event{Kind: Finding, Constraints: c.String()})
	}
	have, err := j.available(ctx)
	if err != nil {
		return queryFailed(j.p, err)
	}
	if ds := j.newest(have); ds.HasErrors() || keep {
		return ds
	}
	return j.failed(j.local(ctx))
}

// newest selects the locked version, or the newest allowed version, from the available
// ones.
func (j *job) newest(have []versions.Version) diag.List {
	const unresolved = "Failed to resolve provider packages"
	c := j.want[j.p]
	if old := j.locked.Provider(j.p); old != nil && !j.o.Upgrade && c.Allows().Has(old.Version) {
		if !slices.ContainsFunc(have, old.Version.Same) {
			return diag.Errorf(diag.CodeProviderPackage, nil, unresolved, "Could not resolve provider %s: the previously-selected version %s is no longer available.", j.p.Display(), old.Version)
		}
		j.choose(old.Version)
		return nil
	}
	v := versions.List(have).NewestInSet(c.Allows())
	if v == versions.Unspecified {
		return diag.Errorf(diag.CodeProviderPackage, nil, unresolved, "Could not resolve provider %s: no available releases match the given constraints %s; the newest available version is %s.", j.p.Display(), c, versions.List(have).Newest())
	}
	j.choose(v)
	return nil
}

// failed returns the message about a package that could not be installed.
func (j *job) failed(err error) diag.List {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errPlatform):
		return diag.Errorf(diag.CodeProviderProtocol, nil, "Incompatible provider version", "Provider %s v%s does not have a package available for your current platform, %s.\n\nNot all providers are available for all platforms. Other versions of this provider may have different platforms supported.", j.p, j.v, j.o.platform())
	}
	return diag.Errorf(diag.CodeProviderPackage, nil, "Failed to install provider", "Error while installing %s v%s: %s.", j.p.Display(), j.v, err)
}

func queryFailed(p addr.Provider, err error) diag.List {
	var nowhere *notFoundError
	if errors.As(err, &nowhere) {
		return diag.Errorf(diag.CodeProviderPackage, nil, "Failed to query available provider packages", "Could not retrieve the list of available versions for provider %s: %s", p.Display(), err)
	}
	return diag.Errorf(diag.CodeProviderPackage, nil, "Failed to resolve provider packages", "Could not resolve provider %s: %s.", p.Display(), err)
}

// A notFoundError is the error that no source has a provider.
type notFoundError struct {
	p     addr.Provider
	where []string
}

func (e *notFoundError) Error() string {
	if len(e.where) == 0 {
		return fmt.Sprintf("none of the configured installation methods may be used for provider %s", e.p)
	}
	return fmt.Sprintf("provider %s was not found in any of the search locations\n\n%s", e.p, bullets(e.where))
}

// RecordPluginDirs stores the -plugin-dir values of init for later commands, as OpenTofu
// does. It deletes the stored values if there are none.
func RecordPluginDirs(o Options) error {
	path := filepath.Join(o.dataDir(), "plugin_path")
	if err := inside.CheckData(o.dataDir(), o.dataDir()); err != nil {
		return err
	}
	if len(o.PluginDirs) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return writePluginPath(path, o.PluginDirs)
}
