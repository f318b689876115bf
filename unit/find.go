package unit

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
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
// reserved (section 3, rule 1, of the import specification); see OrdinaryName and HasModules.
func (l *Loader) IsUnitFile(path string) bool {
	name := filepath.Base(path)
	switch {
	case name == syntax.DefaultName, name == syntax.DefaultJSONName, name == l.env.configName():
		return true
	case !strings.HasSuffix(name, ".hcl"), !OrdinaryName(name):
		return false
	}
	text, err := l.readUnit(path)
	if err != nil || !HasModules(text) {
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

// HasModules reports whether the text of a *.hcl file has module blocks that are units: blocks at the top
// level whose source is not a Sentinel file. Configuration and tests of Sentinel have module blocks of
// their own, and their names are free (https://developer.hashicorp.com/sentinel/docs/configuration). The
// result is true if the text has a module block and syntax errors, so that the caller can report them.
func HasModules(text []byte) bool {
	word := []byte("module")
	from := -1 // the first line that may begin a block
	top := false
	for at, rest := 0, text; len(rest) > 0 && from < 0; {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		trimmed := bytes.TrimLeft(line, " \t")
		if name, ok := bytes.CutPrefix(trimmed, word); ok {
			if name = bytes.TrimLeft(name, " \t"); len(name) > 0 && (name[0] == '"' || name[0] == '{') {
				from, top = at, len(trimmed) == len(line)
			}
		}
		at, rest = at+len(line)+1, after
	}
	if from < 0 {
		return false
	}
	before := text[:from]
	if top && !bytes.Contains(before, []byte("<<")) && !bytes.Contains(before, []byte("/*")) && !bytes.Contains(text, []byte(sentinelSuffix)) {
		return true // neither nested, nor part of a text or a comment; parsing takes longer
	}
	if _, deep := source.TooDeep("", text); deep {
		return true
	}
	f, diags := hclsyntax.ParseConfig(text, "", hcl.InitialPos)
	if diags.HasErrors() {
		return true
	}
	for _, b := range f.Body.(*hclsyntax.Body).Blocks {
		if b.Type == "module" && !isSentinel(b) {
			return true
		}
	}
	return false
}

// sentinelSuffix ends the names of files in the language of Sentinel.
const sentinelSuffix = ".sentinel"

// isSentinel reports whether the source of a module block is a Sentinel file.
func isSentinel(b *hclsyntax.Block) bool {
	a := b.Body.Attributes["source"]
	if a == nil {
		return false
	}
	v, diags := a.Expr.Value(nil)
	if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
		return false
	}
	path, _, _ := strings.Cut(v.AsString(), "?")
	return strings.HasSuffix(path, sentinelSuffix)
}

// Source returns the text of a unit, stack or values file, for messages. Messages do not
// show parts of it that may contain handed-in values.
func Source(path string, text []byte) *source.File { return syntax.Source(path, text) }
