package syntax

import (
	"bytes"
	"sync"
	"weak"

	"github.com/hashicorp/hcl/v2"
)

// Parses shares parsed files between loaders that read the same files, such as those of two revisions
// of an estate. It keeps no file alive: a file is shared as long as one of its users has it. The zero
// value is empty and ready to use; a nil *Parses shares nothing. It may be used concurrently.
type Parses struct {
	// Seen is called with the syntax tree of each file in native syntax that is parsed without errors. It
	// must not keep the tree, which is large, and may be called concurrently. nil calls nothing.
	Seen func(path string, text []byte, tree *hcl.File)

	mu    sync.Mutex
	files map[parsesKey]weak.Pointer[File]
}

type parsesKey struct {
	path string
	spec *BlockSpec
}

// Parse is like the function Parse. The caller must not modify the result.
func (p *Parses) Parse(path string, text []byte, spec *BlockSpec) *File {
	if p == nil {
		return Parse(path, text, spec)
	}
	key := parsesKey{path, spec}
	p.mu.Lock()
	f := p.files[key].Value()
	p.mu.Unlock()
	if f != nil && bytes.Equal(f.Src.Bytes, text) {
		return f
	}
	f = parse(path, text, spec, p.Seen)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil {
		p.files = map[parsesKey]weak.Pointer[File]{}
	}
	p.files[key] = weak.Make(f)
	return f
}
