package help

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// explained returns the addresses that explain accepts: those of the configuration in the
// directory and, for a unit, those of the unit and its module. It reads files without
// evaluating them. It reads the state for instances only if there is no unit.
func (f folder) explained() []string {
	u := &unitParts{found: map[string]bool{}, read: map[string]bool{}}
	for _, path := range append([]string{f.c.Path(syntax.DefaultName), f.c.Path(syntax.DefaultJSONName)}, discovery.EnvironmentFiles(f.c.Files, f.c.Dir)...) {
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
		out = append(out, f.objects(flag.Instances)...)
	}
	return out
}

// unitParts contains the addresses found in a unit.
type unitParts struct {
	found  map[string]bool
	read   map[string]bool // files that were read
	source string          // directory of the module, if the unit names a local one
}

// module adds the addresses of a module's declarations.
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

// file adds the addresses in a unit file and in the files that it includes.
func (u *unitParts) file(path string) {
	if u.read[path] {
		return
	}
	text, err := readfile.Whole(path)
	if err != nil {
		return
	}
	u.read[path] = true
	if strings.HasSuffix(path, ".json") {
		u.json(text)
		return
	}
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

// json adds the addresses in a unit file in JSON.
func (u *unitParts) json(text []byte) {
	var doc struct {
		Inputs     map[string]json.RawMessage
		Locals     map[string]json.RawMessage
		Dependency map[string]json.RawMessage
	}
	_ = json.Unmarshal(text, &doc) // fields with other types stay empty
	if doc.Inputs != nil {
		u.found["inputs"] = true
	}
	for prefix, names := range map[string]map[string]json.RawMessage{"inputs.": doc.Inputs, "local.": doc.Locals, "dependency.": doc.Dependency} {
		for name := range names {
			u.found[prefix+name] = true
		}
	}
}

// inputs adds the keys of an object, or of the objects that merge combines.
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

// fileOf returns the absolute path of the file or directory that an argument in a file names:
// a literal path, or the result of find_in_parent_folders. It returns "" if that needs an
// evaluation.
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
				return "" // a module address
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
