package cli

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/module"
)

// snapshot gathers the configuration files of all modules, for a saved plan,
// and the list of installed modules. Names are relative to the root module.
func (r *run) snapshot() (map[string][]byte, diag.List) {
	files := make(map[string][]byte)
	seen := make(map[*config.Module]bool)
	r.engine.Tree().Walk(func(n *module.Node) {
		if seen[n.Config] {
			return
		}
		seen[n.Config] = true
		for _, f := range n.Config.Files {
			if f.Role != config.RoleBase && f.Role != config.RoleOverride {
				continue
			}
			if src := r.set.File(f.Path); src != nil {
				files[path.Clean(filepath.ToSlash(f.Path))] = src.Bytes
			}
		}
	})
	manifest, err := os.ReadFile(r.dataPath("modules", "modules.json"))
	if err == nil {
		files[manifestName] = manifest
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf(nil, "Failed to read module manifest", "The list of installed modules cannot be saved with the plan: %s.", err)
	}
	return files, nil
}

// manifestName is the list of installed modules in a saved plan.
const manifestName = ".terraform/modules/modules.json"

// quoteArg quotes a word for a command line to be typed.
func quoteArg(s string) string { return strconv.Quote(s) }
