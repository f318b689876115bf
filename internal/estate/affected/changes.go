package affected

import (
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/unit"
)

// ChangesIn returns estate.Options.Changed and estate.OutlineOptions.UnitFilesOnly for the head revision, if
// the revisions differ in the contents of files only. paths are the files whose contents may differ, as
// absolute paths; resolve returns the path among them, if any, from which a file is read; old reads the
// files of the base. changed is nil if a file cannot be read.
func ChangesIn(paths []string, resolve func(path string) string, old *readfile.Kept) (changed func(path string) ([]byte, bool), unitFilesOnly bool) {
	texts := make(map[string][]byte, len(paths))
	unitFilesOnly = true
	for _, path := range paths {
		text, err := old.Whole(path)
		if err != nil {
			return nil, false
		}
		texts[path] = text
		name := filepath.Base(path)
		unitFilesOnly = unitFilesOnly && unit.OrdinaryName(name) && filepath.Ext(name) == ".hcl"
	}
	return func(path string) ([]byte, bool) {
		text, ok := texts[resolve(path)]
		return text, ok
	}, unitFilesOnly
}
