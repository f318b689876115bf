package initialize

import (
	"context"
	"os"

	"github.com/terrace-iac/terrace/source"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/lang/module/installer"
)

// copyModule copies a module into the working directory, which must be empty.
func copyModule(ctx context.Context, c *command.Call, src string) diag.List {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the working directory", "%s.", err)
	}
	for _, e := range entries {
		if e.Name() != ".terraform" {
			return diag.Errorf(diag.CodeCLIFolderNotEmpty, nil, "Can't populate non-empty directory", "The target directory %s is not empty, so it cannot be initialized with the -from-module=... option.", c.Dir)
		}
	}
	c.Report.Say("Copying configuration from \"" + source.HideCredentials(src) + "\"...\n")
	o, ds := sourceOptions(c)
	if ds.HasErrors() {
		return ds
	}
	dir, more := installer.Source(ctx, c.Dir, src, o)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if err := os.CopyFS(c.Dir, os.DirFS(dir)); err != nil {
		return append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to copy the module", "The module %q cannot be copied: %s.", src, err)...)
	}
	return ds
}

// sourceOptions returns the settings for fetching a module.
func sourceOptions(c *command.Call) (installer.Options, diag.List) {
	cfg, ds := c.Directory.Settings()
	return installer.Options{Packages: c.Directory.Fetcher(cfg), Registry: c.Directory.Registry(cfg)}, ds
}
