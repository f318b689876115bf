package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-version"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/fetch"
)

// copyModule copies a module into the working folder, which must be empty.
func (s *session) copyModule(ctx context.Context, src string) diag.List {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return diag.Errorf(nil, "Failed to read the working folder", "%s.", err)
	}
	for _, e := range entries {
		if e.Name() != ".terraform" {
			return diag.Errorf(nil, "Can't populate non-empty directory", "The target directory %s is not empty, so it cannot be initialized with the -from-module=... option.", s.Dir)
		}
	}
	s.say("Copying configuration from \"" + src + "\"...\n")
	if a, err := fetch.Detect(src, false); err == nil && a.Kind == fetch.Local {
		if err := os.CopyFS(s.Dir, os.DirFS(s.Path(src))); err != nil {
			return diag.Errorf(nil, "Failed to copy the module", "The module %q cannot be copied: %s.", src, err)
		}
		return nil
	}
	return s.fetchModule(ctx, src)
}

// fetchModule brings a module that lies elsewhere and copies it. Of a module in
// a registry it takes the newest version.
func (s *session) fetchModule(ctx context.Context, src string) diag.List {
	fail := func(err error) diag.List {
		return diag.Errorf(nil, "Failed to fetch the module", "The module %q cannot be fetched: %s.", src, err)
	}
	a, err := fetch.Detect(src, false)
	if err != nil {
		return fail(err)
	}
	req := fetch.Request{Address: a}
	if a.Kind == fetch.Registry {
		cfg, ds := s.settings()
		if ds.HasErrors() {
			return ds
		}
		reg := s.registry(cfg)
		all, err := reg.ModuleVersions(ctx, a)
		if err != nil {
			return fail(err)
		}
		newest, ok := newestVersion(all)
		if !ok {
			return fail(errors.New("the registry has no released version of it"))
		}
		loc, err := reg.ModuleLocation(ctx, a, newest)
		if err != nil {
			return fail(err)
		}
		found, err := fetch.ResolveLocation(loc.Where, loc.Base)
		if err != nil {
			return fail(err)
		}
		req = fetch.Request{Address: found, Key: a.Package() + " " + newest, Fixed: true}
	}
	pkg, err := s.fetcher().Get(ctx, req)
	if err != nil {
		return fail(err)
	}
	dir := filepath.Join(pkg.Dir, filepath.FromSlash(pkg.Subdir), filepath.FromSlash(a.Subdir))
	if err := os.CopyFS(s.Dir, os.DirFS(dir)); err != nil {
		return fail(err)
	}
	return nil
}

// newestVersion is the newest release among versions.
func newestVersion(all []string) (string, bool) {
	var best *version.Version
	for _, text := range all {
		v, err := version.NewVersion(text)
		if err == nil && v.Prerelease() == "" && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	if best == nil {
		return "", false
	}
	return best.Original(), true
}
