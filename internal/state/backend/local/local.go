// Package local is the backend "local": state in files of the working directory.
//
// The one rule: package internal/state/store/local implements state files and their locks;
// this package only defines the kind.
package local

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
	files "github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "local".
func Kind() backend.Kind {
	return backend.Kind{
		Name: "local",
		Schema: &schema.Block{Attributes: map[string]*schema.Attribute{
			"path":          {Type: cty.String, Optional: true},
			"workspace_dir": {Type: cty.String, Optional: true},
		}},
		Open: open,
		Place: func(cfg cty.Value, dir string) string {
			path := files.DefaultPath
			if v := cfg.GetAttr("path"); !v.IsNull() {
				path = v.AsString()
			}
			switch {
			case filepath.IsAbs(path):
				return filepath.Clean(path)
			case dir == "":
				return ""
			}
			return filepath.Join(dir, path)
		},
		InFolder: func(dir string) cty.Value {
			path := cty.NullVal(cty.String)
			if dir != "" {
				path = cty.StringVal(filepath.Join(dir, files.DefaultPath))
			}
			return cty.ObjectVal(map[string]cty.Value{"path": path, "workspace_dir": cty.NullVal(cty.String)})
		},
	}
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	text := func(name string) string {
		if v := cfg.GetAttr(name); !v.IsNull() {
			return v.AsString()
		}
		return ""
	}
	for _, name := range []string{"path", "workspace_dir"} {
		if v := cfg.GetAttr(name); !v.IsNull() && v.AsString() == "" {
			return nil, &backend.Error{Argument: name, Code: diag.CodeBackendLocalPath, Summary: "Invalid local " + name, Answer: fmt.Sprintf("the argument %q of the backend must not be empty", name)}
		}
	}
	return &folder{o: files.Options{Dir: s.Dir, Path: text("path"), WorkspaceDir: text("workspace_dir"), Who: s.Who, Now: s.Now}}, nil
}

// A folder is the directory with the state files of one configuration.
type folder struct{ o files.Options }

func (f *folder) List(ctx context.Context) ([]string, error) {
	names, ds := files.OpenWorkspaces(f.o).List(ctx)
	return names, failed(ds)
}

func (f *folder) Create(ctx context.Context, workspace string) error {
	return failed(files.OpenWorkspaces(f.o).Create(ctx, workspace))
}

func (f *folder) Delete(ctx context.Context, workspace string) error {
	return failed(files.OpenWorkspaces(f.o).Delete(ctx, workspace))
}

// Clear replaces the state by an empty one of the same lineage, and keeps the old one as a
// backup.
func (f *folder) Clear(ctx context.Context, workspace string, o backend.StoreOptions) error {
	at := f.o
	at.Workspace, at.Sealer = workspace, o.Sealer
	st := files.Open(at)
	unlock, ds := st.Lock(ctx, store.LockInfo{Operation: "migration source state"}, 0)
	if ds.HasErrors() {
		return failed(ds)
	}
	old, ds := st.Read(ctx)
	if old != nil && !ds.HasErrors() {
		ds = append(ds, st.Write(ctx, state.New().WithMeta(old.Lineage, max(old.Serial, old.Serial+1), old.TerraformVersion))...)
	}
	return failed(append(ds, unlock()...))
}

func (f *folder) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	at := f.o
	at.Workspace, at.Unit = workspace, o.Unit
	at.StatePath, at.OutPath, at.BackupPath = o.StatePath, o.OutPath, o.BackupPath
	at.Waiting, at.Locate, at.Sealer = o.Waiting, o.Locate, o.Sealer
	return files.Open(at), nil
}

// failed returns the error for a message.
func failed(ds diag.List) error {
	for _, m := range ds.Errors() {
		return &backend.Error{Code: m.Code, Summary: m.Summary, Answer: m.Detail}
	}
	return nil
}
