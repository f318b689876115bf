package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// Workspaces manages the workspaces of a directory: the default one, and one directory for each
// of the others.
type Workspaces struct {
	dir string // absolute; contains one directory for each workspace except the default one
}

// OpenWorkspaces returns the Workspaces for Dir, Path and WorkspaceDir of Options.
func OpenWorkspaces(o Options) *Workspaces {
	dir := o.WorkspaceDir
	if dir == "" {
		dir = DefaultWorkspaceDir
	}
	return &Workspaces{dir: under(o.Dir, dir)}
}

// List returns the names, sorted, with the default one first.
func (w *Workspaces) List(context.Context) ([]string, diag.List) {
	names := []string{store.Default}
	entries, err := os.ReadDir(w.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return names, diag.Errorf(diag.CodeBackendReadFailed, nil, "Failed to list workspaces", "The directory %s cannot be read: %s.", w.dir, reason(err))
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != store.Default {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

// Create creates an empty workspace.
func (w *Workspaces) Create(_ context.Context, name string) diag.List {
	if ds := checkName(name); ds != nil {
		return ds
	}
	err := os.MkdirAll(w.dir, 0o777)
	if err == nil && name == store.Default {
		err = fs.ErrExist
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(w.dir, name), 0o777)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return diag.Errorf(diag.CodeStateWorkspace, nil, "Workspace already exists", "There is a workspace %q already.", name)
	case err != nil:
		return diag.Errorf(diag.CodeBackendWriteFailed, nil, "Failed to create workspace", "The workspace %q cannot be created in %s: %s.", name, w.dir, reason(err))
	}
	return nil
}

// Delete deletes a workspace with its state.
func (w *Workspaces) Delete(_ context.Context, name string) diag.List {
	if ds := checkName(name); ds != nil {
		return ds
	}
	if name == store.Default {
		return diag.Errorf(diag.CodeStateWorkspace, nil, "Default workspace", "The default workspace cannot be deleted.")
	}
	dir := filepath.Join(w.dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return diag.Errorf(diag.CodeStateWorkspace, nil, "Workspace does not exist", "There is no workspace %q.", name)
	}
	for _, e := range entries { // a link in a checkout can refer to any directory
		if !strings.Contains(e.Name(), "tfstate") {
			return diag.Errorf(diag.CodeBackendWriteFailed, nil, "Failed to delete workspace", "The directory %s holds %s, which belongs to no state. It is not deleted.", dir, e.Name())
		}
	}
	process.mu.RLock() // removing files closes none, but no lock may be taken meanwhile
	defer process.mu.RUnlock()
	if err := os.RemoveAll(dir); err != nil {
		return diag.Errorf(diag.CodeBackendWriteFailed, nil, "Failed to delete workspace", "The workspace %q cannot be deleted: %s.", name, reason(err))
	}
	return nil
}

func checkName(name string) diag.List {
	if store.ValidWorkspace(name) {
		return nil
	}
	return diag.Errorf(diag.CodeStateWorkspace, nil, "Invalid workspace name", "The workspace name %q is not allowed. It must contain only URL safe characters, and no path separators.", name)
}
