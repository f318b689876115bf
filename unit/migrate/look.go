package migrate

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/unit"
)

// look is the rendered form of a unit file.
type look struct {
	path     string
	files    []string // the files that it depends on, except itself
	includes []unit.Imported
	parts    map[string]any // the rendered unit, or each module by name
	edges    []string
	loaded   bool
	err      string // its errors; "" if there are none
	kinds    string // err without the names of functions and blocks that an edit renames
}

func (l *look) uses(path string) bool { return l.path == path || slices.Contains(l.files, path) }

// lookAt renders the units of one file.
func lookAt(l *unit.Loader, t *demand.Task, path string) *look {
	out := &look{path: path, parts: map[string]any{}}
	units, ds := l.Load(t, path)
	out.loaded = len(units) > 0
	for _, u := range units {
		text, more := u.RenderJSON(t)
		ds = append(ds, more...)
		var v map[string]any
		if err := json.Unmarshal(text, &v); err != nil {
			out.err = err.Error()
			return out
		}
		absolutePaths(v, u.Dir)
		out.parts[u.Module+"/"+u.Key] = v
		edges, more := u.Dependencies(t, nil)
		ds = append(ds, more...)
		for _, e := range edges {
			out.edges = append(out.edges, u.Module+"/"+u.Key+" "+e.ID)
		}
		files, more := u.Files(t)
		ds = append(ds, more...)
		out.files = append(out.files, files...)
		out.includes, more = u.Imports(t)
		ds = append(ds, more...)
	}
	slices.Sort(out.edges)
	out.err, out.kinds = problems(ds)
	return out
}

// problems returns the text of all errors, without line numbers, which edits may change.
func problems(ds diag.List) (text, kinds string) {
	var out, short []string
	for _, m := range ds.Errors() {
		file := ""
		if m.At != nil {
			file = filepath.Base(m.At.Filename) + ": "
		}
		out = append(out, file+m.Summary+": "+m.Detail)
		short = append(short, file+m.Summary)
	}
	slices.Sort(out)
	slices.Sort(short)
	return strings.Join(slices.Compact(out), " "), strings.Join(slices.Compact(short), " ")
}

// absolutePaths makes the paths in a rendered unit absolute, so that different spellings of
// a path are equal.
func absolutePaths(v map[string]any, dir string) {
	abs := func(s string) string {
		root, sub := unit.SplitSource(s)
		if !filepath.IsAbs(root) {
			root = filepath.Join(dir, root)
		}
		root = filepath.Clean(root)
		if sub != "" {
			root += "//" + sub
		}
		return root
	}
	if deps, ok := v["dependency"].(map[string]any); ok {
		for _, d := range deps {
			if m, ok := d.(map[string]any); ok {
				if p, ok := m["config_path"].(string); ok {
					m["config_path"] = abs(p)
				}
			}
		}
	}
	if tf, ok := v["terraform"].(map[string]any); ok {
		if s, ok := tf["source"].(string); ok && unit.LocalSource(s) {
			tf["source"] = abs(s)
		}
	}
	if d, ok := v["dependencies"].(map[string]any); ok {
		if paths, ok := d["paths"].([]any); ok {
			for i, p := range paths {
				if s, ok := p.(string); ok {
					paths[i] = abs(s)
				}
			}
		}
	}
}

// differs describes how two renderings of a unit file differ. It returns "" if they are
// equal. removed lists local values that became imports and are no longer shown. restless
// lists the paths of values that are not compared.
func differs(before, after *look, removed, restless []string) string {
	switch {
	case before.err == "" && after.err != "":
		return "afterwards it would fail: " + after.err
	case before.kinds != after.kinds:
		return "it has errors, and they would be others afterwards: " + before.err
	case !slices.Equal(before.edges, after.edges):
		return "it would depend on other units"
	}
	for name, b := range before.parts {
		a := after.parts[name]
		for _, d := range differences(name, without(b, removed), without(a, removed)) {
			if !slices.Contains(restless, d) {
				return "it would change " + strings.TrimPrefix(strings.TrimPrefix(d, name), ".")
			}
		}
	}
	return ""
}

// without returns a rendered unit without some of its local values.
func without(v any, gone []string) any {
	m, ok := v.(map[string]any)
	if !ok || len(gone) == 0 {
		return v
	}
	out := make(map[string]any, len(m))
	for k, in := range m {
		out[k] = in
	}
	locals, _ := out["locals"].(map[string]any)
	kept := map[string]any{}
	for k, in := range locals {
		if !slices.Contains(gone, k) {
			kept[k] = in
		}
	}
	if len(kept) == 0 {
		out["locals"] = nil
	} else {
		out["locals"] = kept
	}
	return out
}

// differences returns the paths at which two rendered values differ, in order. It does not
// return the values, which may be secret.
func differences(path string, a, b any) (out []string) {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if !aok || !bok {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{path}
	}
	var names []string
	for k := range am {
		names = append(names, k)
	}
	for k := range bm {
		if _, both := am[k]; !both {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		out = append(out, differences(path+"."+k, am[k], bm[k])...)
	}
	return out
}
