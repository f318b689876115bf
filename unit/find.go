package unit

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// Names of files with a meaning.
const (
	DefaultName          = syntax.DefaultName
	DefaultJSONName      = syntax.DefaultJSONName
	StackName            = syntax.StackName
	ValuesName           = syntax.ValuesName
	AutoIncludeName      = syntax.AutoIncludeName
	StackAutoIncludeName = syntax.StackAutoIncludeName
)

// IsUnitFile tells whether a file is one that holds units, for those who look
// for them: unit files by their name, and any other *.hcl file that holds a
// module block, unless its name has a meaning of its own (section 3, rule 1, of
// the import specification).
func (l *Loader) IsUnitFile(path string) bool {
	name := filepath.Base(path)
	switch {
	case name == syntax.DefaultName, name == syntax.DefaultJSONName, name == l.env.configName():
		return true
	case !strings.HasSuffix(name, ".hcl"), !ordinaryName(name):
		return false
	}
	text, err := l.env.readFile(path)
	if err != nil || !bytes.Contains(text, []byte("module")) {
		return false
	}
	return l.file(path, syntax.Language().Unit).Root.First("module") != nil
}

// ordinaryName tells names without a meaning of their own.
func ordinaryName(name string) bool {
	switch name {
	case syntax.StackName, syntax.ValuesName, syntax.AutoIncludeName, syntax.StackAutoIncludeName:
		return false
	}
	for _, end := range [...]string{".lock.hcl", ".tftest.hcl", ".tofutest.hcl", ".estatetest.hcl", ".tfmock.hcl", ".tofumock.hcl", ".pkr.hcl"} {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return !strings.HasPrefix(name, ".")
}

// Source is the text of a unit, stack or values file, of which messages show nothing
// that is handed in.
func Source(path string, text []byte) *source.File { return syntax.Source(path, text) }
