package unit

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// Reserved file names.
const (
	DefaultName          = syntax.DefaultName
	DefaultJSONName      = syntax.DefaultJSONName
	StackName            = syntax.StackName
	ValuesName           = syntax.ValuesName
	AutoIncludeName      = syntax.AutoIncludeName
	StackAutoIncludeName = syntax.StackAutoIncludeName
)

// IsUnitFile reports whether a file contains units. These are files with the name of unit
// files, and *.hcl files with another name that contain a module block, unless the name is
// reserved (section 3, rule 1, of the import specification).
func (l *Loader) IsUnitFile(path string) bool {
	name := filepath.Base(path)
	switch {
	case name == syntax.DefaultName, name == syntax.DefaultJSONName, name == l.env.configName():
		return true
	case !strings.HasSuffix(name, ".hcl"), !OrdinaryName(name):
		return false
	}
	text, err := l.readUnit(path)
	if err != nil || !bytes.Contains(text, []byte("module")) {
		return false
	}
	return l.file(path, syntax.Language().Unit).Root.First("module") != nil
}

// OrdinaryName reports whether the name of a file is not reserved for files of another kind, such as
// stack files, tests and rules.
func OrdinaryName(name string) bool {
	switch name {
	case syntax.StackName, syntax.ValuesName, syntax.AutoIncludeName, syntax.StackAutoIncludeName:
		return false
	}
	for _, end := range [...]string{".lock.hcl", ".tftest.hcl", ".tofutest.hcl", ".estatetest.hcl", ".tfmock.hcl", ".tofumock.hcl", ".pkr.hcl", ".rules.hcl", ".policy.hcl", ".rulestest.hcl", ".policytest.hcl", ".tfquery.hcl"} {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return !strings.HasPrefix(name, ".") && !OtherTool(name)
}

// OtherTool reports whether the name of a file is that of a file of Terraform Stacks, which Terrace
// does not read.
func OtherTool(name string) bool {
	for _, end := range [...]string{".tfcomponent.hcl", ".tfdeploy.hcl", ".tfstack.hcl"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// Source returns the text of a unit, stack or values file, for messages. Messages do not
// show parts of it that may contain handed-in values.
func Source(path string, text []byte) *source.File { return syntax.Source(path, text) }
