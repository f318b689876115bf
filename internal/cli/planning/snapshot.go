package planning

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/plan"
)

// snapshot returns the configuration files of all modules and the manifest of installed
// modules, for a saved plan. Names are relative to the root module.
func (r *run) snapshot() (map[string][]byte, diag.List) {
	files := make(map[string][]byte)
	seen := make(map[*config.Module]bool)
	r.Engine.Tree().Walk(func(n *module.Node) {
		if seen[n.Config] {
			return
		}
		seen[n.Config] = true
		for _, f := range n.Config.Files {
			if f.Role != config.RoleBase && f.Role != config.RoleOverride {
				continue
			}
			if src := r.Report.Set.File(f.Path); src != nil {
				files[path.Clean(filepath.ToSlash(f.Path))] = src.Bytes
			}
		}
	})
	manifest, err := readfile.Whole(r.DataPath("modules", "modules.json"))
	if err == nil {
		files[workdir.ManifestName] = manifest
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read module manifest", "The list of installed modules cannot be saved with the plan: %s.", err)
	}
	return files, nil
}

func generated(c *plan.Change) bool { return c.Import != nil && c.Import.GeneratedConfig != "" }
