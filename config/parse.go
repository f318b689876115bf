package config

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// parsed is one file after parsing and the first cut into top-level blocks.
type parsed struct {
	path   string
	layer  *source.Layer
	blocks []typedPart
	ds     diag.List
}

// parseFile reads and parses one file. It never fails: what could be
// understood is in the result, and the rest is messages.
func parseFile(f FileRole, layer *source.Layer, read func() ([]byte, error), set *source.Set) *parsed {
	p := &parsed{path: f.Path, layer: layer}
	text, err := read()
	set.Add(&source.File{Path: f.Path, Bytes: text, Layer: layer})
	if err != nil {
		p.ds = diag.List{{
			Code:    "config/read-file",
			Summary: "Failed to read file",
			Detail:  "The file " + quote(f.Path) + " cannot be read: " + err.Error() + ".",
		}}
		return p
	}
	body, ds := parseText(f.Path, text)
	p.ds = ds
	if body == nil {
		return p
	}
	var diags hcl.Diagnostics
	p.blocks, diags = topBlocks(body, layer)
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	return p
}

// parseText parses the text of a file in the syntax that its name tells. The
// body is nil where nothing could be understood.
func parseText(path string, text []byte) (hcl.Body, diag.List) {
	native := !strings.HasSuffix(path, ".json")
	if native {
		if body, ok := parsePieces(path, text); ok {
			return body, nil
		}
	}
	if at, deep := tooDeep(path, text); deep {
		return nil, errorAt("config/too-deep", at, "Too deeply nested", "Expressions and blocks in this file are nested more than %d levels deep, which no configuration written for a reader needs. Flatten it, or move the data to a file that is read with jsondecode or yamldecode.", maxDepth)
	}
	parse := json.Parse
	if native {
		parse = func(text []byte, path string) (*hcl.File, hcl.Diagnostics) {
			return hclsyntax.ParseConfig(text, path, hcl.InitialPos)
		}
	}
	file, diags := parse(text, path)
	if file == nil || file.Body == nil {
		return nil, diag.FromHCL(diags)
	}
	return file.Body, diag.FromHCL(diags)
}
