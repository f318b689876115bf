package scaffold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Copy returns the files of a unit or stack, with a file of the values that they need, for a
// directory. It is an error if one of the files exists.
func Copy(from, to string) (*Draft, diag.List) {
	files, err := contents(from)
	d := &Draft{to: to, title: "Values of " + filepath.Base(from), build: func() map[string][]byte { return files }}
	if err == nil && len(files[syntax.ValuesName]) == 0 && !holds(to, syntax.ValuesName) {
		all, hclDiags := references(files)
		if hclDiags.HasErrors() {
			return nil, diag.FromHCL(hclDiags)
		}
		if len(all.parts) > 0 {
			leaves := all.leaves(&d.fields)
			d.build = func() map[string][]byte {
				for i, leaf := range leaves {
					leaf.value = d.fields[i].value
				}
				files[syntax.ValuesName] = all.file()
				return files
			}
		}
	}
	if err != nil {
		return nil, notWritten(err)
	}
	return d, d.free()
}

// contents returns the files of a component by their relative paths, without files that runs
// left there.
func contents(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, en fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case en.IsDir() && slices.Contains([]string{".git", ".terraform", ".terragrunt-cache", ".terragrunt-stack"}, en.Name()):
			return fs.SkipDir
		case en.IsDir():
			return nil
		case !en.Type().IsRegular():
			return fmt.Errorf("%s is no ordinary file, and only those are copied", path)
		}
		out[name], err = readfile.Whole(path)
		return err
	})
	return out, err
}

// references returns the values that a unit or stack refers to.
func references(files map[string][]byte) (*asked, hcl.Diagnostics) {
	all := &asked{}
	for _, name := range []string{unit.DefaultName, unit.StackName} {
		text, ok := files[name]
		if !ok {
			continue
		}
		f, ds := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
		if ds.HasErrors() {
			return nil, ds
		}
		w := &valuesWalk{text: text, all: all}
		if ds := hclsyntax.Walk(f.Body.(*hclsyntax.Body), w); ds.HasErrors() {
			return nil, ds
		}
	}
	if text, ok := files[unit.DefaultJSONName]; ok {
		if _, ds := hcljson.Parse(text, unit.DefaultJSONName); ds.HasErrors() {
			return nil, ds
		}
		var doc any
		_ = json.Unmarshal(text, &doc) // the parser has accepted it
		if ds := all.json(doc); ds.HasErrors() {
			return nil, ds
		}
	}
	return all, nil
}

// leaves adds a field for each value without parts, and returns these values in the same order:
// first those that are required.
func (a *asked) leaves(fields *[]*field) (out []*asked) {
	var found []*asked
	var names []string
	var walk func(a *asked, prefix string)
	walk = func(a *asked, prefix string) {
		for _, name := range slices.Sorted(maps.Keys(a.parts)) {
			part := a.parts[name]
			if len(part.parts) > 0 {
				walk(part, prefix+name+".")
				continue
			}
			found, names = append(found, part), append(names, prefix+name)
		}
	}
	walk(a, "")
	for _, required := range []bool{true, false} {
		for i, part := range found {
			if part.required() == required {
				*fields = append(*fields, &field{name: names[i], ty: cty.DynamicPseudoType, required: required, fallback: strings.TrimPrefix(part.fallback, comment)})
				out = append(out, part)
			}
		}
	}
	return out
}

// file returns the file of the values.
func (a *asked) file() []byte {
	var required, optional []string
	for _, name := range slices.Sorted(maps.Keys(a.parts)) {
		if a.parts[name].required() {
			required = append(required, name)
		} else {
			optional = append(optional, name)
		}
	}
	var b bytes.Buffer
	lines := func(title string, names []string) {
		for i, name := range names {
			if i == 0 {
				if b.Len() > 0 {
					b.WriteString("\n")
				}
				fmt.Fprintf(&b, "# %s\n", title)
			}
			b.WriteString(a.parts[name].line(name))
		}
	}
	lines("Required: fill these in", required)
	lines("Optional, with what is used without them", optional)
	return hclwrite.Format(b.Bytes())
}

// asked is a value that the files refer to, or the parts of it that they refer to.
type asked struct {
	parts map[string]*asked
	// fallback is the text of the expression used if the value is missing. "" means that the
	// value is required.
	fallback string
	value    string // the value that the user typed, as an expression; "" for none
}

func (a *asked) add(path []string, fallback string) {
	for _, name := range path {
		if a.parts == nil {
			a.parts = map[string]*asked{}
		}
		if a.parts[name] == nil {
			a.parts[name] = &asked{fallback: fallback}
		}
		a = a.parts[name]
	}
	if fallback == "" {
		a.fallback = ""
	}
}

// json adds the references in a JSON document. Each of its strings is a template.
func (a *asked) json(v any) (ds hcl.Diagnostics) {
	switch v := v.(type) {
	case string:
		x, ds := hclsyntax.ParseTemplate([]byte(v), unit.DefaultJSONName, hcl.InitialPos)
		if ds.HasErrors() {
			return ds
		}
		return hclsyntax.Walk(x, &valuesWalk{text: []byte(v), all: a})
	case []any:
		for _, e := range v {
			ds = append(ds, a.json(e)...)
		}
	case map[string]any:
		for key, e := range v {
			if key != "//" { // a comment
				ds = append(append(ds, a.json(key)...), a.json(e)...)
			}
		}
	}
	return ds
}

func (a *asked) required() bool {
	for _, p := range a.parts {
		if p.required() {
			return true
		}
	}
	return len(a.parts) == 0 && a.fallback == ""
}

// comment begins a fallback that is not allowed in a file of values.
const comment = "# "

func (a *asked) line(name string) string {
	if rest, ok := strings.CutPrefix(a.fallback, comment); ok && len(a.parts) == 0 && a.value == "" {
		return fmt.Sprintf("%s%s = %s\n", comment, key(name), rest)
	}
	return fmt.Sprintf("%s = %s\n", key(name), a.text())
}

func (a *asked) text() string {
	if len(a.parts) == 0 {
		return cmp.Or(a.value, a.fallback, `"TODO"`)
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(a.parts)) {
		b.WriteString(a.parts[name].line(name))
	}
	return b.String() + "}"
}

func key(name string) string {
	if hclsyntax.ValidIdentifier(name) {
		return name
	}
	return quoted(name)
}

// valuesWalk finds references to values.
type valuesWalk struct {
	text      []byte
	all       *asked
	fallbacks []string // fallbacks of the enclosing calls of try, the innermost last
}

// Enter implements hclsyntax.Walker.
func (w *valuesWalk) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch n := n.(type) {
	case *hclsyntax.FunctionCallExpr:
		if n.Name != "try" || len(n.Args) < 2 {
			break
		}
		last := n.Args[len(n.Args)-1]
		fallback := string(last.Range().SliceBytes(w.text))
		if _, ds := last.Value(nil); ds.HasErrors() { // a computed fallback cannot be copied into the file
			fallback = comment + strings.Join(strings.Fields(fallback), " ")
		}
		w.fallbacks = append(w.fallbacks, fallback)
	case *hclsyntax.ScopeTraversalExpr:
		if path := valuePath(n.Traversal); len(path) > 0 && hclsyntax.ValidIdentifier(path[0]) { // other names cannot be set in a file
			fallback := ""
			if len(w.fallbacks) > 0 {
				fallback = w.fallbacks[len(w.fallbacks)-1]
			}
			w.all.add(path, fallback)
		}
	}
	return nil
}

// Exit implements hclsyntax.Walker.
func (w *valuesWalk) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "try" && len(call.Args) >= 2 {
		w.fallbacks = w.fallbacks[:len(w.fallbacks)-1]
	}
	return nil
}

// valuePath returns the path of a reference to values, without the name "values". It ends
// before the first index of a list. It returns nil for other references.
func valuePath(t hcl.Traversal) (path []string) {
	if t.RootName() != "values" {
		return nil
	}
	for _, step := range t[1:] {
		switch step := step.(type) {
		case hcl.TraverseAttr:
			path = append(path, step.Name)
		case hcl.TraverseIndex:
			if step.Key.Type() != cty.String {
				return path
			}
			path = append(path, step.Key.AsString())
		default:
			return path
		}
	}
	return path
}
