package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/zclconf/go-cty/cty"
)

// What init made of the backend block is kept in the data folder as
// terraform.tfstate, in the form that the peers use, so that a folder that one
// tool initialized works with the other: the configuration in force, with what
// -backend-config changed, and a hash of the block as written.

type backendCache struct {
	Type   string             `json:"type"`
	Config map[string]*string `json:"config"`
	Hash   uint64             `json:"hash"`
}

func (c *backendCache) backend() backend {
	text := func(name string) string {
		if s := c.Config[name]; s != nil {
			return *s
		}
		return ""
	}
	return backend{path: text("path"), workspaceDir: text("workspace_dir")}
}

func localValue(path, workspaceDir string) cty.Value {
	text := func(s string) cty.Value {
		if s == "" {
			return cty.NullVal(cty.String)
		}
		return cty.StringVal(s)
	}
	return cty.ObjectVal(map[string]cty.Value{"path": text(path), "workspace_dir": text(workspaceDir)})
}

// backendHash is the number that OpenTofu 1.12 computes of the same block.
func backendHash(b backend) uint64 {
	return uint64(cty.TupleVal([]cty.Value{cty.StringVal("local"), b.config()}).Hash())
}

// readBackendCache returns nil if there is none.
func (s *session) readBackendCache() (*backendCache, diag.List) {
	path := s.dataPath("terraform.tfstate")
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var doc struct {
		Version int           `json:"version"`
		Backend *backendCache `json:"backend"`
	}
	if err == nil {
		err = json.Unmarshal(src, &doc)
	}
	if err != nil {
		return nil, diag.Errorf(nil, "Failed to read the backend configuration", "The file %s, in which init keeps the configuration of the backend, cannot be read: %s. Run \"%s init -reconfigure\" to write it anew.", path, err, view.Program)
	}
	if doc.Backend == nil || doc.Backend.Type == "" {
		return nil, nil
	}
	return doc.Backend, nil
}

// writeBackendCache writes the file, or removes it with nil.
func (s *session) writeBackendCache(c *backendCache) diag.List {
	path := s.dataPath("terraform.tfstate")
	fail := func(err error) diag.List {
		return diag.Errorf(nil, "Failed to save the backend configuration", "The file %s cannot be written: %s.", path, err)
	}
	if c == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
		return nil
	}
	doc := struct {
		Version int           `json:"version"`
		Backend *backendCache `json:"backend"`
	}{3, c}
	src, err := json.MarshalIndent(doc, "", "    ")
	if err == nil {
		err = os.MkdirAll(s.dataPath(), 0o777)
	}
	if err == nil {
		err = atomicfile.Write(path, src, 0o644)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// cacheOf is the cache entry for settings in force and for the block as written.
func cacheOf(inForce, written backend) *backendCache {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return &backendCache{
		Type:   "local",
		Config: map[string]*string{"path": text(inForce.path), "workspace_dir": text(inForce.workspaceDir)},
		Hash:   backendHash(written),
	}
}
