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
	if at, deep := tooDeep(f.Path, text); deep {
		p.ds = errorAt("config/too-deep", at, "Too deeply nested", "Expressions and blocks in this file are nested more than %d levels deep, which no configuration written for a reader needs. Flatten it, or move the data to a file that is read with jsondecode or yamldecode.", maxDepth)
		return p
	}
	var file *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(f.Path, ".json") {
		file, diags = json.Parse(text, f.Path)
	} else {
		file, diags = hclsyntax.ParseConfig(text, f.Path, hcl.InitialPos)
	}
	p.ds = diag.FromHCL(diags)
	if file == nil || file.Body == nil {
		return p
	}
	p.blocks, diags = topBlocks(file.Body, layer)
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	return p
}
