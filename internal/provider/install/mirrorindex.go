package install

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

var directInstallation = cliconfig.Installation{Methods: []cliconfig.Method{{Kind: cliconfig.Direct, Retries: -1}}}

type mirrorArchive struct {
	Hashes []lock.Hash `json:"hashes"`
	URL    string      `json:"url"`
}

// writeIndex writes the documents of a network mirror for a provider: index.json, and one
// document per version.
func (m *mirror) writeIndex(ctx context.Context, p addr.Provider) error {
	entries, err := os.ReadDir(m.base(p))
	if err != nil {
		return err
	}
	versions := make(map[string]map[string]mirrorArchive)
	for _, e := range entries {
		v, pl, ok := packedName(p, e.Name())
		if !ok {
			continue
		}
		path := filepath.Join(m.base(p), e.Name())
		h1, err := lock.HashArchive(ctx, path, unpackLimit)
		if err != nil {
			return err
		}
		zh, err := lock.HashZip(ctx, path)
		if err != nil {
			return err
		}
		if versions[v.String()] == nil {
			versions[v.String()] = make(map[string]mirrorArchive)
		}
		hashes := []lock.Hash{h1, zh}
		slices.Sort(hashes)
		versions[v.String()][pl.String()] = mirrorArchive{Hashes: hashes, URL: e.Name()}
	}
	index := make(map[string]struct{})
	for v, archives := range versions {
		index[v] = struct{}{}
		if err := writeDocument(filepath.Join(m.base(p), v+".json"), map[string]any{"archives": archives}); err != nil {
			return err
		}
	}
	return writeDocument(filepath.Join(m.base(p), "index.json"), map[string]any{"versions": index})
}

func writeDocument(path string, doc any) error {
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteMode(path, text, 0o644)
}
