// Package modules fetches the modules of units, whose sources are written in unit files.
//
// Main functions: Fetch, and Fetched for commands that fetch nothing. The one rule: a source
// is fetched by the same getters and through the same cache as the source of a module call.
package modules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-version"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/net/registry"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// Fetch returns a function that fetches the module of a unit, with the same getters as module
// calls in configuration. With refresh, it queries sources again even if a recent result
// exists.
func Fetch(d *workdir.Directory, cfg *cliconfig.Config, refresh bool) func(context.Context, string) (string, diag.List) {
	fetcher := sync.OnceValue(func() *fetch.Fetcher { return d.Fetcher(cfg) })
	return func(ctx context.Context, src string) (string, diag.List) {
		req, err := unitRequest(ctx, d, cfg, src)
		if err != nil {
			return "", diag.Errorf(diag.CodeUnitModuleSource, nil, "Invalid module source", "The source %q cannot be used: %s.", src, err)
		}
		req.Refresh = refresh
		pkg, err := fetcher().Get(ctx, req)
		if err != nil {
			return "", diag.Errorf(diag.CodeModuleFetch, nil, "Failed to fetch the module", "The module %q cannot be fetched: %s.", src, err)
		}
		var ds diag.List
		if pkg.Warning != "" {
			ds = diag.Warnf(diag.CodeModuleFetch, nil, "Module source could not be asked", "%s", pkg.Warning)
		}
		return filepath.Join(pkg.Dir, filepath.FromSlash(pkg.Subdir)), ds
	}
}

// Fetched returns a function that finds the module of a unit in the cache. It uses no network
// and writes nothing, for commands that only read.
func Fetched(d *workdir.Directory, cfg *cliconfig.Config) func(context.Context, string) (string, diag.List) {
	fetcher := sync.OnceValue(func() *fetch.Fetcher { return d.Fetcher(cfg) })
	return func(ctx context.Context, src string) (string, diag.List) {
		var pkg fetch.Package
		found := false
		req, err := unitRequest(ctx, d, nil, src)
		if err == nil {
			pkg, found, err = fetcher().Cached(ctx, req)
		}
		if errors.Is(err, errNoVersion) {
			err = nil
		}
		if err != nil {
			return "", diag.Errorf(diag.CodeUnitModuleSource, nil, "Invalid module source", "The source %q cannot be used: %s.", src, err)
		}
		if !found {
			ds := diag.Errorf(diag.CodeUnitNotFetched, nil, "Module is not on this machine", "The module %q was not fetched yet, and this command fetches nothing. Run \"terrace init\" in the directory of the unit, or \"terrace run --all init\" for all units below a directory.", src)
			return "", ds
		}
		return filepath.Join(pkg.Dir, filepath.FromSlash(pkg.Subdir)), nil
	}
}

// errNoVersion means that the newest version of a module is needed but the registry must not
// be queried.
var errNoVersion = errors.New("the newest version is not known")

// unitRequest parses the source of a unit's module. If cfg is nil, it sends no requests.
func unitRequest(ctx context.Context, d *workdir.Directory, cfg *cliconfig.Config, src string) (fetch.Request, error) {
	if strings.HasPrefix(src, "tfr://") {
		return registryRequest(ctx, d, cfg, src)
	}
	a, err := fetch.Detect(src, false)
	if err != nil {
		return fetch.Request{}, err
	}
	if a.Kind != fetch.Remote {
		return fetch.Request{}, fmt.Errorf("it is neither a directory nor an address of a package; modules of a registry are written tfr://HOST/NAMESPACE/NAME/SYSTEM?version=VERSION")
	}
	return fetch.Request{Address: a}, nil
}

// registryModule parses tfr://HOST/NAMESPACE/NAME/SYSTEM. An empty host means the default one.
// version is "" if the source contains none.
func registryModule(d *workdir.Directory, src string) (a fetch.Address, version string, err error) {
	u, err := url.Parse(src)
	if err != nil {
		return a, "", err
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) != 3 {
		return a, "", fmt.Errorf("it must name namespace, name and system, as in tfr:///ns/name/system?version=1.0.0")
	}
	host := cmp.Or(u.Host, d.Env.Get("TG_TF_DEFAULT_REGISTRY_HOST"), addr.DefaultHost)
	return fetch.Address{Kind: fetch.Registry, Host: host, Namespace: parts[0], Name: parts[1], System: parts[2]}, u.Query().Get("version"), nil
}

// registryFor returns the client for a registry of modules. TG_TF_REGISTRY_TOKEN overrides its
// token.
func registryFor(d *workdir.Directory, cfg *cliconfig.Config, host string) *registry.Client {
	if token := d.Env.Get("TG_TF_REGISTRY_TOKEN"); token != "" {
		own := *cfg
		own.EnvTokens = maps.Clone(cfg.EnvTokens)
		if own.EnvTokens == nil {
			own.EnvTokens = map[string]string{}
		}
		own.EnvTokens[strings.ToLower(host)], cfg = token, &own
	}
	return d.Registry(cfg)
}

// NewestVersion returns the version in a module source, or the newest version in its registry
// if the source contains none.
func NewestVersion(ctx context.Context, d *workdir.Directory, cfg *cliconfig.Config, src string) (string, error) {
	a, v, err := registryModule(d, src)
	if err != nil || v != "" {
		return v, err
	}
	return newestOf(ctx, registryFor(d, cfg, a.Host), a)
}

func newestOf(ctx context.Context, reg *registry.Client, a fetch.Address) (string, error) {
	all, err := reg.ModuleVersions(ctx, a)
	if err != nil {
		return "", err
	}
	v := Newest(all)
	if v == "" {
		err = fmt.Errorf("the registry %s has no version of it", a.Host)
	}
	return v, err
}

// registryRequest returns the request for a module in a registry. Without a version, it uses
// the newest. If cfg is nil, it sends no requests.
func registryRequest(ctx context.Context, d *workdir.Directory, cfg *cliconfig.Config, src string) (fetch.Request, error) {
	a, v, err := registryModule(d, src)
	if err != nil {
		return fetch.Request{}, err
	}
	if cfg == nil {
		if v == "" {
			return fetch.Request{}, errNoVersion
		}
		return fetch.Request{Key: a.Package() + "@" + v, Fixed: true, Find: func(context.Context) (fetch.Found, error) { return fetch.Found{}, errNoVersion }}, nil
	}
	reg := registryFor(d, cfg, a.Host)
	if v == "" {
		if v, err = newestOf(ctx, reg, a); err != nil {
			return fetch.Request{}, err
		}
	}
	return fetch.Request{Key: reg.PackageKey(a, v), Fixed: true, Find: func(ctx context.Context) (fetch.Found, error) {
		loc, err := reg.ModuleLocation(ctx, a, v)
		if err != nil {
			return fetch.Found{}, err
		}
		to, err := fetch.ResolveLocation(loc.Where, loc.Base)
		return fetch.Found{Address: to, Header: loc.Header, Archive: loc.Direct}, err
	}}, nil
}

// Newest returns the highest version in texts that is not a prerelease, or "". It ignores
// invalid versions.
func Newest(texts []string) string {
	var all []*version.Version
	for _, t := range texts {
		if v, err := version.NewVersion(t); err == nil && v.Prerelease() == "" {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.MaxFunc(all, func(a, b *version.Version) int { return a.Compare(b) }).Original()
}
