package estate

import (
	"bytes"
	"os"
)

// holdsModule reports whether a file has a module block at the start of a line.
// It looks at the text alone: whether the file is sound is found out when it is
// loaded.
func holdsModule(path string) bool {
	src, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(src) {
		rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("module"))
		if !ok {
			continue
		}
		if rest = bytes.TrimLeft(rest, " \t"); len(rest) > 0 && (rest[0] == '"' || rest[0] == '{') {
			return true
		}
	}
	return false
}

// holdsValues reports whether a folder has variable files that are taken by
// themselves.
func holdsValues(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, en := range entries {
		if isValues(en.Name()) {
			return true
		}
	}
	return false
}
