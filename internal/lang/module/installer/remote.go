package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/net/fetch"
)

type versionList struct {
	versions []*version.Version
	err      error
}

// remote installs the remote calls of one depth. It selects versions, downloads each package
// once, and places it for every call that uses it.
func (in *installer) remote(ctx context.Context, calls []*call) {
	var todo []*call
	for _, c := range calls {
		if c.addr.Kind == fetch.Local {
			continue
		}
		if c.reuse {
			if in.pins.keeps(ctx, c) {
				in.placed[packageKey(c)] = c.packageDir
				continue
			}
			c.reuse = false
		}
		todo = append(todo, c)
	}
	if len(todo) == 0 {
		return
	}
	if err := os.MkdirAll(filepath.Join(in.data, "modules"), 0o755); err != nil {
		todo[0].ds = diag.Errorf(diag.CodeFilesWrite, &todo[0].at, "Failed to create local modules directory", "The directory for modules cannot be made: %s.", err)
		for _, c := range todo[1:] {
			c.ds = todo[0].ds
		}
		return
	}
	parallel.Each(len(todo), in.workers(), func(i int) { in.pick(ctx, todo[i]) })
	groups := make(map[string][]*call)
	var order []string
	for _, c := range todo {
		if c.failed() {
			continue
		}
		k := packageKey(c)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], c)
	}
	siblings := make([]string, len(order))
	for i, k := range order {
		siblings[i] = in.placed[k]
	}
	parallel.Each(len(order), in.workers(), func(i int) { in.group(ctx, groups[order[i]], siblings[i]) })
	for _, k := range order {
		if c := groups[k][0]; !c.failed() {
			in.placed[k] = c.packageDir
		}
	}
}

func (in *installer) workers() int {
	if in.o.Workers < 1 {
		return 8
	}
	return in.o.Workers
}

// packageKey identifies a package: its address, and for a registry its version.
func packageKey(c *call) string {
	if c.version == "" {
		return c.addr.Package()
	}
	return c.addr.Package() + "@" + c.version
}

// pick selects the version of a registry module.
func (in *installer) pick(ctx context.Context, c *call) {
	c.version = ""
	if c.addr.Kind != fetch.Registry {
		return
	}
	if v := in.pins.version(c); v != "" && !in.o.Upgrade {
		c.version = v
		return
	}
	if c.want.Exact != nil && in.o.Packages != nil && !in.o.Upgrade {
		if v := c.want.Exact.String(); in.o.Packages.Has(ctx, in.o.Registry.PackageKey(c.addr, v)) {
			c.version = v // no request for the versions is needed
			return
		}
	}
	list, err := in.versions.Do(ctx, c.addr.Package(), func() (versionList, bool) {
		texts, err := in.o.Registry.ModuleVersions(ctx, c.addr)
		if err != nil {
			return versionList{err: err}, false
		}
		var vs []*version.Version
		for _, t := range texts {
			if v, err := version.NewVersion(t); err == nil {
				vs = append(vs, v)
			}
		}
		slices.SortFunc(vs, func(a, b *version.Version) int { return b.Compare(a) })
		return versionList{versions: vs}, true
	})
	if err != nil {
		list.err = err
	}
	if list.err != nil {
		c.ds = diag.Errorf(diag.CodeModuleFetch, &c.at, "Error accessing remote module registry", "Failed to retrieve available versions for module %q from %s: %s.", c.key, c.addr.Host, list.err)
		return
	}
	for _, v := range list.versions {
		if c.want.Allows(v.Original()) {
			c.version = v.String()
			return
		}
	}
	c.ds = noVersion(c, list.versions)
}

func noVersion(c *call, have []*version.Version) diag.List {
	if len(have) == 0 {
		return diag.Errorf(diag.CodeModuleFetch, &c.at, "Module has no versions", "Module %q (%s) has no versions available on %s.", c.key, c.addr.Package(), c.addr.Host)
	}
	if c.want.Text == "" {
		return diag.Errorf(diag.CodeModuleFetch, &c.at, "Unresolvable module version constraint", "All versions of module %q (%s) that %s has are prereleases, which must be selected exactly. The newest is %s.", c.key, c.addr.Package(), c.addr.Host, have[0])
	}
	return diag.Errorf(diag.CodeModuleFetch, &c.vAt, "Unresolvable module version constraint", "There is no available version of module %q (%s) which matches the given version constraint %q. The newest available version is %s.", c.key, c.addr.Package(), c.want.Text, have[0])
}

// group downloads one package and places it for every call that uses it.
func (in *installer) group(ctx context.Context, calls []*call, sibling string) {
	first := calls[0]
	for _, c := range calls {
		in.tell(Event{Kind: Downloading, Key: c.key, Source: c.addr.Package(), Version: c.version})
	}
	pkg, err := in.o.Packages.Get(ctx, in.request(first, false))
	if err == nil {
		pkg, err = in.pinned(ctx, first, pkg)
	}
	if err != nil {
		if ctx.Err() != nil {
			return // the cancellation of the installation is reported once
		}
		for _, c := range calls {
			c.ds = in.failed(c, err)
		}
		return
	}
	if pkg.Warning != "" {
		first.ds = diag.Warnf(diag.CodeModuleFetch, &first.at, "Module source could not be asked", "%s", pkg.Warning)
	}
	sh := fetch.Sharing{Sibling: sibling, Several: sibling != "" || len(calls) > 1}
	in.place(ctx, first, pkg, sh)
	rest := calls[1:]
	if sh.Sibling = first.packageDir; first.failed() {
		sh.Sibling = ""
	}
	for _, c := range rest { // not concurrently, because they share the lock of the directory
		in.place(ctx, c, pkg, sh)
	}
}

// pinned compares a package with the module lock. If they differ, it downloads the package
// again, since the cache may be outdated.
func (in *installer) pinned(ctx context.Context, c *call, pkg fetch.Package) (fetch.Package, error) {
	err := in.pins.check(c, pkg.Hash)
	if err == nil || pkg.Live || in.o.Upgrade {
		return pkg, err
	}
	again, gerr := in.o.Packages.Get(ctx, in.request(c, true))
	if gerr != nil {
		return pkg, err
	}
	return again, in.pins.check(c, again.Hash)
}

func (in *installer) request(c *call, refresh bool) fetch.Request {
	if c.addr.Kind == fetch.Remote {
		return fetch.Request{Address: c.addr, Refresh: refresh || in.o.Upgrade}
	}
	r := fetch.Request{Address: c.addr, Key: in.o.Registry.PackageKey(c.addr, c.version), Fixed: true, Refresh: refresh}
	r.Find = func(ctx context.Context) (fetch.Found, error) {
		loc, err := in.o.Registry.ModuleLocation(ctx, c.addr, c.version)
		if err != nil {
			return fetch.Found{}, &registryError{err}
		}
		a, err := resolve(loc)
		return fetch.Found{Address: a, Header: loc.Header, Archive: loc.Direct}, err
	}
	return r
}

type registryError struct{ error }

func (e *registryError) Unwrap() error { return e.error }

func resolve(loc fetch.Location) (fetch.Address, error) {
	if !loc.Direct {
		a, err := fetch.ResolveLocation(loc.Where, loc.Base)
		if err != nil {
			return a, fmt.Errorf("the registry says that the package is at %q: %w", loc.Where, err)
		}
		return a, nil
	}
	u, err := loc.Base.Parse(loc.Where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Fragment != "" {
		return fetch.Address{}, fmt.Errorf("the registry says that the package is at %q, which is not an http or https URL without fragment", loc.Where)
	}
	return fetch.Address{Kind: fetch.Remote, Getter: u.Scheme, URL: u.String()}, nil
}

func (in *installer) failed(c *call, err error) diag.List {
	var pin *pinError
	if errors.As(err, &pin) {
		return diag.Errorf(diag.CodeLockMismatch, &c.at, "Module content does not match the dependency lock file", "%s", pin)
	}
	var re *registryError
	if errors.As(err, &re) {
		return diag.Errorf(diag.CodeModuleFetch, &c.at, "Error accessing remote module registry", "Failed to retrieve a download URL for %s %s from %s: %s.", c.addr.Package(), c.version, c.addr.Host, err)
	}
	return diag.Errorf(diag.CodeModuleFetch, &c.at, "Failed to download module", "Could not download module %q source code from %q: %s.", c.key, c.addr.Package(), strings.TrimSuffix(diag.Reason(err), "."))
}

// place puts a package in the directory from which the call's module is loaded.
func (in *installer) place(ctx context.Context, c *call, pkg fetch.Package, sh fetch.Sharing) {
	if err := in.o.Packages.Place(ctx, pkg, c.packageDir, sh); err != nil {
		c.ds = append(c.ds, diag.Errorf(diag.CodeModuleFetch, &c.at, "Failed to install module", "Module %q cannot be put into %s: %s.", c.key, c.packageDir, err)...)
		return
	}
	sub, err := expandSubdir(c.packageDir, path.Join(pkg.Subdir, c.addr.Subdir))
	if err != nil {
		c.ds = append(c.ds, diag.Errorf(diag.CodeModuleFetch, &c.at, "Failed to install module", "Module %q: %s.", c.key, err)...)
		return
	}
	c.hash = pkg.Hash
	c.dir = path.Join(filepath.ToSlash(in.relativeOf(c.packageDir)), sub)
	c.node.Dir, c.node.Version = c.dir, c.version
	if st, err := os.Stat(in.absolute(c.dir)); err != nil || !st.IsDir() {
		c.ds = append(c.ds, diag.Errorf(diag.CodeFilesRead, &c.at, "Unreadable module subdirectory", "The package %s has no directory %q.", c.addr.Package(), sub)...)
	}
}

// relativeOf is relative without resolving links, for directories of this program.
func (in *installer) relativeOf(dir string) string {
	rel, err := filepath.Rel(in.root, dir)
	if err != nil {
		return dir
	}
	return rel
}

// expandSubdir resolves a subdirectory that is a pattern.
func expandSubdir(dir, sub string) (string, error) {
	if !strings.ContainsAny(sub, "*?[") {
		return sub, nil
	}
	found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(sub)))
	if err != nil {
		return "", fmt.Errorf("%q is not a pattern for a subdirectory: %w", sub, err)
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no subdirectory of the package matches %q", sub)
	case 1:
		rel, err := filepath.Rel(dir, found[0])
		return filepath.ToSlash(rel), err
	}
	return "", fmt.Errorf("more than one subdirectory of the package matches %q", sub)
}
