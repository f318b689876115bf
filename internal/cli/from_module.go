package cli

import (
	"context"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/module/installer"
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
	o, ds := s.sourceOptions()
	if ds.HasErrors() {
		return ds
	}
	dir, more := installer.Source(ctx, s.Dir, src, o)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if err := os.CopyFS(s.Dir, os.DirFS(dir)); err != nil {
		return append(ds, diag.Errorf(nil, "Failed to copy the module", "The module %q cannot be copied: %s.", src, err)...)
	}
	return ds
}

// sourceOptions say where the package of one module comes from.
func (s *session) sourceOptions() (installer.Options, diag.List) {
	cfg, ds := s.settings()
	return installer.Options{Packages: s.fetcher(cfg), Registry: s.registry(cfg)}, ds
}
