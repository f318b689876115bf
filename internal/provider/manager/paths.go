package manager

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/provider/intercept"
	"github.com/zclconf/go-cty/cty"
)

// # Paths in requests
//
// A process that several units share runs in an empty directory. A relative path in a request
// would mean another file there than in the unit's directory. So before a request goes to a
// shared process, its known strings are looked up in both directories: a provider may have written
// into the empty one. If a string can name a
// file or directory, the unit gets a process of its own, in its own directory.

// A pathFinder finds relative paths in requests.
type pathFinder struct {
	own    string // the directory of the unit
	shared string // the directory of the shared process
}

// inCall returns the name of the first argument of a call that can contain a relative path, or
// "" if there is none.
func (f pathFinder) inCall(c intercept.Call) string {
	switch c := c.(type) {
	case *intercept.ValidateConfig:
		return f.inValues(c.Request.Config)
	case *intercept.Configure:
		return f.inValues(c.Request.Config)
	case *intercept.ValidateResource:
		return f.inValues(c.Request.Config)
	case *intercept.UpgradeState:
		for _, name := range slices.Sorted(maps.Keys(c.Request.Flat)) {
			if f.isPath(name[strings.LastIndexByte(name, '.')+1:], c.Request.Flat[name]) {
				return name
			}
		}
		return f.inJSON("", c.Request.JSON)
	case *intercept.UpgradeIdentity:
		return f.inJSON("", c.Request.JSON)
	case *intercept.Read:
		return f.inValues(c.Request.Prior, c.Request.Meta, c.Request.Identity)
	case *intercept.Plan:
		return f.inValues(c.Request.Config, c.Request.Proposed, c.Request.Prior, c.Request.Meta, c.Request.PriorIdentity)
	case *intercept.Apply:
		return f.inValues(c.Request.Config, c.Request.Planned, c.Request.Prior, c.Request.Meta, c.Request.PlannedIdentity)
	case *intercept.Import:
		if f.isPath("id", c.Request.ID) {
			return "id"
		}
		return f.inValues(c.Request.Identity)
	case *intercept.Move:
		if name := f.inJSON("", c.Request.SourceJSON); name != "" {
			return name
		}
		return f.inJSON("", c.Request.SourceIdentityJSON)
	case *intercept.ReadData:
		return f.inValues(c.Request.Config, c.Request.Meta)
	case *intercept.OpenEphemeral:
		return f.inValues(c.Request.Config)
	case *intercept.List:
		return f.inValues(c.Request.Config)
	case *intercept.GenerateConfig:
		return f.inValues(c.Request.State)
	case *intercept.CallFunction:
		return f.inValues(c.Request.Args...)
	}
	return ""
}

func (f pathFinder) inValues(values ...cty.Value) string {
	for _, v := range values {
		if v != cty.NilVal {
			if name := f.inValue("", v); name != "" {
				return name
			}
		}
	}
	return ""
}

// inValue is like inCall for a value of the argument with the given name.
func (f pathFinder) inValue(name string, v cty.Value) string {
	v, _ = v.Unmark()
	switch ty := v.Type(); {
	case !v.IsKnown() || v.IsNull():
	case ty == cty.String:
		return f.inString(name, v.AsString())
	case ty.IsObjectType() || ty.IsMapType():
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			key := k.AsString()
			if ty.IsMapType() && f.isPath("", key) {
				return key
			}
			if found := f.inValue(key, e); found != "" {
				return found
			}
		}
	case ty.IsCollectionType() || ty.IsTupleType():
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			if found := f.inValue(name, e); found != "" {
				return found
			}
		}
	}
	return ""
}

// inString is like inValue for a string, which may contain JSON.
func (f pathFinder) inString(name, s string) string {
	if (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")) && json.Valid([]byte(s)) {
		return f.inJSON(name, []byte(s))
	}
	if !f.isPath(name, s) {
		return ""
	}
	if name == "" {
		return "value"
	}
	return name
}

// inJSON is like inValue for JSON text. Text that is not JSON contains no path.
func (f pathFinder) inJSON(name string, text []byte) string {
	var doc any
	if len(text) == 0 || json.Unmarshal(text, &doc) != nil {
		return ""
	}
	return f.inDocument(name, doc)
}

func (f pathFinder) inDocument(name string, doc any) string {
	switch doc := doc.(type) {
	case string:
		return f.inString(name, doc)
	case []any:
		for _, e := range doc {
			if found := f.inDocument(name, e); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(doc)) {
			if f.isPath("", k) {
				return k
			}
			if found := f.inDocument(k, doc[k]); found != "" {
				return found
			}
		}
	}
	return ""
}

// pathArgument reports whether an argument contains paths, judged by its name. The file may not
// exist yet.
func pathArgument(name string) bool {
	name = strings.TrimSuffix(name, "s")
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "file", "filename", "filepath", "path", "dir", "directory", "directorie", "folder", "kubeconfig", "credential":
		return true
	}
	return strings.HasSuffix(name, "custom_ca_bundle") || strings.HasSuffix(name, "repository_cache")
}

// longestPath is the length above which a string is no path.
const longestPath = 4096

// isPath reports whether a string can be a relative path: it names a file or directory in one of
// the directories, or a new file in an existing directory of the unit, or it is the value of an
// argument for paths.
func (f pathFinder) isPath(argument, s string) bool {
	if s == "" || len(s) > longestPath || strings.ContainsAny(s, "\x00\n") {
		return false
	}
	s = strings.TrimPrefix(s, "@")
	for _, scheme := range []string{"file://", "fileb://", "file:"} {
		s = strings.TrimPrefix(s, scheme)
	}
	if strings.Contains(s, "://") {
		return false
	}
	for _, p := range filepath.SplitList(s) {
		if p == "" || filepath.IsAbs(p) || strings.HasPrefix(p, "~") {
			continue
		}
		if pathArgument(argument) || f.exists(f.own, p) || f.exists(f.shared, p) {
			return true
		}
		if dir := filepath.Dir(p); strings.ContainsRune(p, filepath.Separator) && f.exists(f.own, dir) {
			return true
		}
	}
	return false
}

// exists reports whether a relative path, or a pattern, names something in a directory.
func (f pathFinder) exists(dir, path string) bool {
	at := filepath.Join(dir, path)
	if _, err := os.Lstat(at); err == nil {
		return true
	}
	if !strings.ContainsAny(path, "*?[") || strings.Trim(path, "*?") == "" { // "*" means everything in policies
		return false
	}
	found, err := filepath.Glob(at)
	return err == nil && len(found) > 0
}

// inEnviron is like inCall for environment variables.
func (f pathFinder) inEnviron(environ []string) string {
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && f.isPath(strings.ToLower(name), value) {
			return name
		}
	}
	return ""
}

// unread reports whether providers do not read an environment variable, given as NAME=VALUE: it is
// one of Terraform, OpenTofu, Terragrunt and Terrace themselves. Units may differ in it.
func unread(variable string) bool {
	for _, prefix := range []string{"TF_VAR_", "TF_WORKSPACE=", "TF_DATA_DIR=", "TF_CLI_ARGS", "TF_INPUT=", "TG_", "TERRAGRUNT_", "TERRACE_", "PWD=", "OLDPWD=", "_="} {
		if strings.HasPrefix(variable, prefix) {
			return true
		}
	}
	return false
}

// environOf returns the variables of an environment that a provider may read, sorted.
func environOf(environ []string) []string {
	out := slices.DeleteFunc(slices.Clone(environ), unread)
	slices.Sort(out)
	return out
}
