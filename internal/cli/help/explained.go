package help

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// explained are the addresses that explain takes: of the configuration in the folder and, in
// that of a unit, of the unit and its module. Files are read as they are written: nothing is
// evaluated, and a state is read for instances only where no unit is.
func (f folder) explained() []string {
	u := &unitParts{found: map[string]bool{}, read: map[string]bool{}}
	for _, path := range append([]string{f.c.Path(syntax.DefaultName)}, discovery.EnvironmentFiles(f.c.Files, f.c.Dir)...) {
		u.file(path)
	}
	dir := f.c.Dir
	if u.source != "" {
		dir = u.source
	}
	if root, _ := f.c.Below(dir).Root(); root != nil {
		u.module(root)
	}
	out := slices.Sorted(maps.Keys(u.found))
	if len(u.read) == 0 {
		out = append(out, f.objects(command.Instances)...)
	}
	return out
}

// unitParts are addresses that were found.
type unitParts struct {
	found  map[string]bool
	read   map[string]bool // files
	source string          // the folder of the module, if a unit names one on this machine
}

// module adds what a module declares.
func (u *unitParts) module(m *config.Module) {
	for name := range m.Variables {
		u.found["var."+name] = true
	}
	for name := range m.Locals {
		u.found["local."+name] = true
	}
	for name := range m.Outputs {
		u.found["output."+name] = true
	}
	for name := range m.Calls {
		u.found["module."+name] = true
	}
	for a := range m.Resources {
		u.found[a.String()] = true
	}
}

// file adds what the file of a unit has, with the files that it includes.
func (u *unitParts) file(path string) {
	if u.read[path] {
		return
	}
	text, err := readfile.Whole(path)
	if err != nil {
		return
	}
	u.read[path] = true
	file, _ := hclsyntax.ParseConfig(text, path, hcl.InitialPos)
	if file == nil {
		return
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return
	}
	if inputs := body.Attributes["inputs"]; inputs != nil {
		u.found["inputs"] = true
		u.inputs(inputs.Expr)
	}
	for _, b := range body.Blocks {
		switch b.Type {
		case "locals":
			for name := range b.Body.Attributes {
				u.found["local."+name] = true
			}
		case "dependency":
			if len(b.Labels) == 1 {
				u.found["dependency."+b.Labels[0]] = true
			}
		case "terraform":
			source := b.Body.Attributes["source"]
			if dir := fileOf(path, source); dir != "" && u.source == "" {
				u.source = dir
			}
		case "remote_state":
			for name := range b.Body.Attributes {
				u.found["remote_state."+name] = true
			}
		case "include":
			included := b.Body.Attributes["path"]
			if name := fileOf(path, included); name != "" {
				u.file(name)
			}
		}
	}
}

// inputs adds the keys of an object, or of those that merge joins.
func (u *unitParts) inputs(x hclsyntax.Expression) {
	switch x := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		u.inputs(x.Expression)
	case *hclsyntax.FunctionCallExpr:
		for _, arg := range x.Args {
			u.inputs(arg)
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			if key, diags := item.KeyExpr.Value(nil); !diags.HasErrors() && syntax.IsString(key) {
				u.found["inputs."+key.AsString()] = true
			}
		}
	}
}

// fileOf is the file or the folder that an argument in a file names, absolute: a path as it
// stands, or what find_in_parent_folders finds. "" where it takes more to know.
func fileOf(in string, a *hclsyntax.Attribute) string {
	if a == nil {
		return ""
	}
	dir := filepath.Dir(in)
	call, ok := a.Expr.(*hclsyntax.FunctionCallExpr)
	if !ok {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() || !syntax.IsString(v) {
			return ""
		}
		name := v.AsString()
		if !filepath.IsAbs(name) {
			if !strings.HasPrefix(name, ".") {
				return "" // an address
			}
			name = filepath.Join(dir, name)
		}
		if !exists(name) {
			return ""
		}
		return filepath.Clean(name)
	}
	name := syntax.DefaultName
	switch {
	case call.Name != "find_in_parent_folders" || len(call.Args) > 1:
		return ""
	case len(call.Args) == 1:
		v, diags := call.Args[0].Value(nil)
		if diags.HasErrors() || !syntax.IsString(v) {
			return ""
		}
		name = v.AsString()
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		if path := filepath.Join(parent, name); exists(path) {
			return path
		}
		if parent == filepath.Dir(parent) {
			return ""
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
