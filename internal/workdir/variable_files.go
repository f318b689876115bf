package workdir

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// An entry is one value in a variable file.
type entry struct {
	name  string
	value cty.Value
	at    source.Range
}

// isJSON reports whether a variable file is JSON: by the extension of its name, or for other
// extensions by its first character.
func isJSON(name string, src []byte) bool {
	switch filepath.Ext(name) {
	case ".json":
		return true
	case ".tfvars":
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(src, " \t\r\n"), []byte("{"))
}

// deepName returns a file name from which diag.TooDeep detects the syntax.
func deepName(name string, src []byte) string {
	if isJSON(name, src) {
		return "x.json"
	}
	return "x"
}

// parse parses a variable file. References and function calls are errors. It returns the values
// without errors, in the order of the file.
func parse(src []byte, name string) ([]entry, diag.List) {
	var f *hcl.File
	var diags hcl.Diagnostics
	if ds := diag.TooDeep(deepName(name, src), src); ds != nil {
		ds[0].At.Filename = name
		return nil, ds
	}
	if isJSON(name, src) {
		f, diags = json.Parse(src, name)
	} else {
		f, diags = hclnative.ParseConfig(src, name)
	}
	if diags.HasErrors() || f == nil || f.Body == nil {
		return nil, diag.FromValues(src, diags)
	}
	if ds := declarations(f.Body, name); len(ds) > 0 {
		return nil, ds
	}
	ds := diag.FromValues(src, diags)
	attrs, diags := f.Body.JustAttributes()
	ds = append(ds, diag.FromValues(src, diags)...)
	out := make([]entry, 0, len(attrs))
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		ds = append(ds, diag.FromValues(src, diags)...)
		if !diags.HasErrors() {
			out = append(out, entry{name, v, a.Expr.Range()})
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.at.Start.Byte, b.at.Start.Byte) })
	return out, ds.Sort()
}

// declarations returns an error for each variable block in a variable file, which may only contain
// values.
func declarations(body hcl.Body, file string) diag.List {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	var ds diag.List
	for _, b := range native.Blocks {
		if b.Type != "variable" || len(b.Labels) == 0 {
			continue
		}
		at := b.DefRange()
		ds = append(ds, &diag.Message{
			Code:    diag.CodeVarsDeclaration,
			Summary: "Variable declaration in .tfvars file",
			Detail: fmt.Sprintf("A .tfvars file is used to assign values to variables that have already been declared in .tf files, not to declare new variables. To declare variable %q, place this block in one of your .tf files, such as variables.tf.\n\n"+
				"To set a value for this variable in %s, use the definition syntax instead:\n    %s = <value>", b.Labels[0], strings.TrimPrefix(file, "./"), b.Labels[0]),
			At: &at,
		})
	}
	return ds
}
