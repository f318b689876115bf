package filter

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/glob"
)

// Paths returns a function that reports whether an absolute path matches queries. Queries that
// begin with ! remove paths from the matches of the others, or from all paths if there are no
// others. Only queries about paths and names are allowed, since the files need not be units.
func Paths(root string, texts []string) (func(path string) bool, diag.List) {
	queries, ds := Parse(texts)
	var take, drop []func(string) bool
	for _, q := range queries {
		t := q.Terms[0]
		if len(q.Terms) > 1 || t.Kind != ByPath && t.Kind != ByName || t.Up > 0 || t.Down > 0 {
			ds = append(ds, Invalid(q.Text, "files are chosen by paths and names alone")...)
			continue
		}
		match := pathMatcher(root, t)
		if t.Not {
			drop = append(drop, match)
		} else {
			take = append(take, match)
		}
	}
	matches := func(list []func(string) bool, path string) bool {
		return slices.ContainsFunc(list, func(f func(string) bool) bool { return f(path) })
	}
	return func(path string) bool {
		return (len(take) == 0 || matches(take, path)) && !matches(drop, path)
	}, ds
}

// pathMatcher returns a function that matches the path or the name of a file or of one of its
// parent directories.
func pathMatcher(root string, t Term) func(string) bool {
	if t.Kind == ByName {
		return func(path string) bool {
			rel, err := filepath.Rel(root, path)
			return err == nil && slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(part string) bool { return glob.Match(t.Value, part) })
		}
	}
	text := t.Value
	if !filepath.IsAbs(text) {
		text = filepath.Join(root, text)
	}
	pattern := filepath.ToSlash(filepath.Clean(text))
	return func(path string) bool {
		for path = filepath.ToSlash(path); path != ""; path = path[:strings.LastIndexByte(path, '/')] {
			if glob.Match(pattern, path) {
				return true
			}
		}
		return false
	}
}
