package config

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// parsed is one file after parsing and the first cut into top-level blocks.
type parsed struct {
	path   string
	layer  *source.Layer
	blocks []typedPart
	ds     diag.List
}

// syntax is the text of a file, parsed. Several modules may share one.
type syntax struct {
	text  []byte
	err   error
	deep  diag.List // that it nests too deeply
	body  hcl.Body  // nil if there is nothing to work with
	diags hcl.Diagnostics
}

// parse reads and parses one file.
func parse(path string, read func() ([]byte, error)) *syntax {
	s := &syntax{}
	if s.text, s.err = read(); s.err != nil {
		return s
	}
	if s.deep = diag.TooDeep(path, s.text); s.deep != nil {
		return s
	}
	if !strings.HasSuffix(path, ".json") {
		s.body, s.diags = hclnative.Parse(s.text, path)
		return s
	}
	file, diags := json.Parse(s.text, path)
	if s.diags = diags; file != nil {
		s.body = file.Body
	}
	return s
}

// handedIn are the blocks whose arguments may be credentials of a backend or keys. Their
// text is never shown.
var handedIn = []string{"backend", "cloud", "encryption"}

// parseFile makes the first cut of one file. It never fails: what could be
// understood is in the result, and the rest is messages.
func parseFile(f FileRole, layer *source.Layer, s *syntax, set *source.Set) *parsed {
	p := &parsed{path: f.Path, layer: layer}
	set.Add(&source.File{Path: f.Path, Bytes: s.text, Layer: layer, Private: handedIn})
	if s.err != nil {
		p.ds = diag.List{{
			Code:    unreadFile,
			Summary: "Failed to read file",
			Detail:  "The file " + quote(f.Path) + " cannot be read: " + whyUnread(s.err) + ".",
		}}
		return p
	}
	if s.deep != nil {
		p.ds = slices.Clone(s.deep)
		return p
	}
	p.ds = diag.FromHCL(s.diags)
	if s.body == nil {
		return p
	}
	var diags hcl.Diagnostics
	p.blocks, diags = topBlocks(s.body, layer)
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	return p
}

// whyUnread is why a file cannot be read, without its path, which may be another one than the
// message tells.
func whyUnread(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return diag.Reason(err)
}
