package unit

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Files of data
//
// yamldecode(file("common.yaml")) hands on what another file holds, so an explanation ends
// in that file: at the line of the part, or of what holds it, where the text shows
// it, else at the first line. The line itself is not shown, since nothing says what of it is secret.

// decoded leads into the file whose text a call decodes.
func (s scope) decoded(decode *hclsyntax.FunctionCallExpr, path hcl.Traversal) (explanation.Way, bool) {
	if len(decode.Args) != 1 || len(path) == 0 {
		return explanation.Way{}, false
	}
	read, ok := decode.Args[0].(*hclsyntax.FunctionCallExpr)
	if !ok || len(read.Args) != 1 {
		return explanation.Way{}, false
	}
	name, ds := s.Eval(read.Args[0], nil)
	name, _ = name.Unmark()
	if ds.HasErrors() || !syntax.IsString(name) {
		return explanation.Way{}, false
	}
	var file string
	switch read.Name {
	case "file":
		file = absPath(filepath.Dir(s.e.f.Path), name.AsString())
	case "read_tfvars_file":
		file = absPath(s.e.dir, name.AsString())
	default:
		return explanation.Way{}, false
	}
	text, err := s.x.u.l.env.readFile(file)
	if err != nil || diag.TooDeep(file, text) != nil {
		return explanation.Way{}, false
	}
	var at source.Range
	switch {
	case read.Name == "read_tfvars_file" && !strings.HasSuffix(file, ".json"):
		if f, diags := hclnative.ParseConfig(text, file); !diags.HasErrors() {
			at = attributeAt(f.Body, path)
		}
	case decode.Name == "jsondecode":
		if x, diags := hcljson.ParseExpression(text, file); !diags.HasErrors() {
			at = partAt(x, path)
		}
	case decode.Name == "yamldecode":
		at = yamlAt(string(text), path)
	}
	at.Filename = file
	if at.Start.Line == 0 {
		at.Start, at.End = hcl.InitialPos, hcl.InitialPos
	}
	return explanation.Way{Stops: []explanation.Stop{{
		Kind: explanation.DataFile, Text: fmt.Sprintf("%s holds %s", s.x.relative(file), strings.TrimPrefix(pathText(path), ".")),
		At: at, Layer: &source.Layer{Kind: source.Import, Name: "read by " + read.Name}, Bare: true,
	}}}, true
}

// attributeAt is where a variable file sets what a path leads to.
func attributeAt(body hcl.Body, path hcl.Traversal) source.Range {
	attrs, _ := body.JustAttributes()
	name, _ := syntax.StepName(path[0])
	a := attrs[name]
	if a == nil {
		return source.Range{}
	}
	if len(path) == 1 {
		return a.Range
	}
	return partAt(a.Expr, path[1:])
}

// partAt is where an object or list that is written out has what a path leads to, as far
// as it is written out.
func partAt(x hcl.Expression, path hcl.Traversal) source.Range {
	for _, step := range path {
		var next hcl.Expression
		if pairs, diags := hcl.ExprMap(x); !diags.HasErrors() {
			key, _ := syntax.StepName(step)
			for _, p := range pairs {
				if k, diags := p.Key.Value(nil); !diags.HasErrors() && syntax.IsString(k) && k.AsString() == key {
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

// indexOf is the element that a step names.
func indexOf(step hcl.Traverser) (int, bool) {
	index, ok := step.(hcl.TraverseIndex)
	if !ok || index.Key.Type() != cty.Number || !syntax.Known(index.Key) {
		return 0, false
	}
	n, _ := index.Key.AsBigFloat().Int64()
	return int(n), n >= 0
}

// yamlAt finds the line of a part by the indentation of keys that are written in blocks,
// the form of nearly all such files. It stops before any other: text in flow style,
// elements of lists, several documents, keys that occur twice.
func yamlAt(text string, path hcl.Traversal) (at source.Range) {
	lines := strings.Split(text, "\n")
	from, to := 0, len(lines) // the lines of the mapping that a step is looked up in
	offset := make([]int, len(lines)+1)
	for i, line := range lines {
		offset[i+1] = offset[i] + len(line) + 1
	}
	for _, step := range path {
		key, named := syntax.StepName(step)
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
