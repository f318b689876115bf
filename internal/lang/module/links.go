package module

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ResolveLinks resolves the links in a slash-separated path relative to root. The result is
// relative unless there is an absolute link. readlink is like os.Readlink, which nil means.
func ResolveLinks(readlink func(path string) (string, error), root, rel string) string {
	if readlink == nil {
		readlink = os.Readlink
	}
	open := func(p string) string {
		if filepath.IsAbs(p) {
			return filepath.FromSlash(p)
		}
		return filepath.Join(root, filepath.FromSlash(p))
	}
	done, rest := "", strings.Split(rel, "/")
	if path.IsAbs(rel) {
		done = "/"
	}
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		target, err := readlink(open(next))
		if err != nil || links > 255 {
			done = next
			continue
		}
		links++
		target = filepath.ToSlash(target)
		if path.IsAbs(target) || filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if done == "" {
		return "."
	}
	return done
}
