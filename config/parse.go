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

// parsed is one file after parsing and splitting into top-level blocks.
type parsed struct {
	path   string
	layer  *source.Layer
	blocks []typedPart
	ds     diag.List
}

// syntax is the parsed text of a file. Several modules may share it.
type syntax struct {
	text  []byte
	err   error
	deep  diag.List // error that the text is nested too deeply
	body  hcl.Body  // nil if nothing could be parsed
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

// handedIn contains the block types whose arguments may be credentials or keys. Their text is
// never shown.
var handedIn = []string{"backend", "cloud", "encryption"}

// parseFile splits one file into top-level blocks. It returns everything that could be parsed;
// errors are messages.
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

// whyUnread returns the error of reading a file without its path, which may differ from the
// path in the message.
func whyUnread(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return diag.Reason(err)
}
