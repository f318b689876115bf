package units

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/unit"
)

// environmentFile returns the environment file in the working directory that --module refers
// to. us_east_1/vpc refers to us_east_1.hcl. Without a module, it returns the only environment
// file. It returns "" if the unit file of the directory is meant.
func environmentFile(f *unitflags.Selection, files []string) string {
	stem, _, ok := strings.Cut(f.Module, "/")
	for _, path := range files {
		if ok && filepath.Base(path) == stem+".hcl" {
			return path
		}
	}
	if len(files) == 1 && filepath.Base(files[0]) != unit.DefaultName {
		return files[0]
	}
	return ""
}

// holdsEnvironment reports whether the working directory contains environment files and no
// configuration.
func holdsEnvironment(c *command.Call) bool {
	files := discovery.EnvironmentFiles(c.Files, c.Dir)
	if len(files) == 0 {
		return false
	}
	root, _ := config.Load(".", config.Options{FS: c.OnDisk()})
	return root == nil || !slices.ContainsFunc(root.Files, func(f config.FileRole) bool { return f.Role == config.RoleBase || f.Role == config.RoleOverride })
}

// Chosen returns the file or directory of the unit that a command is about. It fails if the
// directory has several environment files and the flags select none.
func Chosen(ctx context.Context, c *command.Call, o estate.Options, f *unitflags.Flags) (path string, ds diag.List) {
	c.Report.Units = true
	if f.Config != "" {
		return c.Path(f.Config), nil
	}
	files := discovery.EnvironmentFiles(c.Files, c.Dir)
	if f.Module == "" && len(files) > 1 {
		names, ds := estate.ModuleNames(ctx, o, files)
		if !ds.HasErrors() {
			ds = diag.Errorf(diag.CodeUnitEnvironment, nil, "Several units in one file", "%s holds several units, one for each module: %s. Name one of them with --module, or use run --all for all.", c.Dir, strings.Join(names, ", "))
			ds[0].Code = diag.CodeUnitEnvironment
		}
		return "", ds
	}
	if file := environmentFile(&f.Selection, files); file != "" {
		return file, nil
	}
	return c.Dir, nil
}
