package origin

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Data files
//
// The explanation of yamldecode(file("common.yaml")) ends in the decoded file: at the line of the
// requested part, of the nearest part around it that can be located, or at line 1. The text of the line
// is not shown, because there is no schema that marks secrets.

// DataFiles locates values in files that an expression decodes. All three functions are required.
type DataFiles struct {
	Eval func(hcl.Expression) (cty.Value, diag.List)
	// Find returns the path and the text of the file that a call function(name) reads. ok is false
	// if the function reads no file, or if the file cannot be read.
	Find func(function, name string) (file string, text []byte, ok bool)
	Name func(file string) string // returns the displayed name of a file
}

// Decoded returns the way to the part at a path in the file that a call of yamldecode or jsondecode
// decodes. ok is false for other calls.
func (d DataFiles) Decoded(decode *hclsyntax.FunctionCallExpr, path hcl.Traversal) (_ explanation.Way, ok bool) {
	how := baseName(decode.Name)
	if how != "yamldecode" && how != "jsondecode" || len(decode.Args) != 1 || len(path) == 0 {
		return explanation.Way{}, false
	}
	read, ok := unwrap(decode.Args[0]).(*hclsyntax.FunctionCallExpr)
	if !ok || len(read.Args) != 1 {
		return explanation.Way{}, false
	}
	name, ds := d.Eval(read.Args[0])
	if name, _ = name.Unmark(); ds.HasErrors() || !isText(name) {
		return explanation.Way{}, false
	}
	by := baseName(read.Name)
	file, text, ok := d.Find(by, name.AsString())
	if !ok || diag.TooDeep(file, text) != nil {
		return explanation.Way{}, false
	}
	var at source.Range
	switch {
	case by == "read_tfvars_file" && !strings.HasSuffix(file, ".json"):
		if f, diags := hclnative.ParseConfig(text, file); !diags.HasErrors() {
			at = attributeAt(f.Body, path)
		}
	case how == "jsondecode":
		if x, diags := hcljson.ParseExpression(text, file); !diags.HasErrors() {
			at = partAt(x, path)
		}
	default:
		at = yamlAt(string(text), path)
	}
	at.Filename = file
	if at.Start.Line == 0 {
		at.Start, at.End = hcl.InitialPos, hcl.InitialPos
	}
	part, _ := steps(path)
	return explanation.Way{Stops: []explanation.Stop{{
		Kind: DataFile, Text: fmt.Sprintf("%s holds %s", d.Name(file), strings.TrimPrefix(pathText(part), ".")),
		At: at, Layer: &source.Layer{Kind: source.Import, Name: "read by " + by}, Bare: true,
	}}}, true
}

// dataFiles returns the DataFiles for expressions of a module.
func (r *reader) dataFiles(f *frame) DataFiles {
	return DataFiles{
		Eval: func(x hcl.Expression) (cty.Value, diag.List) { return r.eval(f, x) },
		Find: func(function, name string) (file string, text []byte, ok bool) {
			if function != "file" {
				return "", nil, false
			}
			return r.e.File(name)
		},
		Name: func(file string) string {
			if r.e.Show != nil {
				file, _ = r.e.Show(file)
			}
			return file
		},
	}
}

func isText(v cty.Value) bool {
	return v != cty.NilVal && !v.IsMarked() && v.IsKnown() && !v.IsNull() && v.Type() == cty.String
}

// stepName returns the name in a step of a path. ok is false for indexes of lists.
func stepName(t hcl.Traverser) (name string, ok bool) {
	switch t := t.(type) {
	case hcl.TraverseAttr:
		return t.Name, true
	case hcl.TraverseIndex:
		if isText(t.Key) {
			return t.Key.AsString(), true
		}
	}
	return "", false
}

// attributeAt returns the range at which a variable file sets the value at a path. It is zero if the
// file does not contain the variable.
func attributeAt(body hcl.Body, path hcl.Traversal) source.Range {
	attrs, _ := body.JustAttributes()
	name, _ := stepName(path[0])
	a := attrs[name]
	if a == nil {
		return source.Range{}
	}
	if len(path) == 1 {
		return a.Range
	}
	return partAt(a.Expr, path[1:])
}

// partAt returns the range of the value at a path in nested object and list constructors. If the path
// leads out of them, it returns the range of the innermost expression on the path.
func partAt(x hcl.Expression, path hcl.Traversal) source.Range {
	for _, step := range path {
		var next hcl.Expression
		if pairs, diags := hcl.ExprMap(x); !diags.HasErrors() {
			key, _ := stepName(step)
			for _, p := range pairs {
				if k, diags := p.Key.Value(nil); !diags.HasErrors() && isText(k) && k.AsString() == key {
					next = p.Value
				}
			}
		} else if list, diags := hcl.ExprList(x); !diags.HasErrors() {
			if i, ok := indexOf(step); ok && i < len(list) {
				next = list[i]
			}
		}
		if next == nil {
			break
		}
		x = next
	}
	return x.Range()
}

// indexOf returns the index in a step of a path.
func indexOf(step hcl.Traverser) (int, bool) {
	index, ok := step.(hcl.TraverseIndex)
	if !ok || index.Key.Type() != cty.Number || !index.Key.IsKnown() || index.Key.IsNull() {
		return 0, false
	}
	n, _ := index.Key.AsBigFloat().Int64()
	return int(n), n >= 0
}

// yamlAt finds the line of a part by the indentation of keys in block style, which nearly all such
// files use. It stops at anything else (flow style, elements of lists, several documents, duplicate
// keys) and returns the range of the last key that it has found.
func yamlAt(text string, path hcl.Traversal) (at source.Range) {
	lines := strings.Split(text, "\n")
	from, to := 0, len(lines) // lines of the mapping in which the step is searched
	offset := make([]int, len(lines)+1)
	for i, line := range lines {
		offset[i+1] = offset[i] + len(line) + 1
	}
	for _, step := range path {
		key, named := stepName(step)
		if !named {
			return at
		}
		depth, found := -1, -1
		end := to
		for i := from; i < to; i++ {
			line := strings.TrimRight(lines[i], " \r")
			bare := strings.TrimLeft(line, " ")
			if bare == "" || bare[0] == '#' || bare == "---" && i == 0 {
				continue
			}
			indent := len(line) - len(bare)
			switch {
			case bare == "---" || bare[0] == '\t' || depth >= 0 && indent < depth:
				return at
			case depth < 0:
				depth = indent
			case indent > depth:
				continue
			}
			if found >= 0 && end == to {
				end = i
			}
			name, _, is := strings.Cut(bare, ":")
			if name = strings.Trim(strings.TrimSpace(name), `"'`); is && name == key {
				if found >= 0 {
					return at
				}
				found = i
				at.Start = hcl.Pos{Line: i + 1, Column: indent + 1, Byte: offset[i] + indent}
				at.End = hcl.Pos{Line: i + 1, Column: len(line) + 1, Byte: offset[i] + len(line)}
			}
		}
		if found < 0 {
			return at
		}
		from, to = found+1, end
	}
	return at
}
