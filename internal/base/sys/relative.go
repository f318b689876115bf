package sys

import (
	"os"
	"path/filepath"
	"strings"
)

// RelativePaths returns a text in which the absolute paths of files in dir, and in the repository
// that contains dir, are relative to dir. Paths of dir itself and of the directories above it stay.
func RelativePaths(dir, text string) string {
	if !filepath.IsAbs(dir) || !strings.Contains(text, string(filepath.Separator)) {
		return text
	}
	up := ""
	for _, d := range repositoryDirs(dir) {
		prefix := strings.TrimSuffix(d, string(filepath.Separator)) + string(filepath.Separator)
		text = relativeTo(text, prefix, up, strings.TrimPrefix(dir+string(filepath.Separator), prefix))
		up += ".." + string(filepath.Separator)
	}
	return text
}

// repositoryDirs returns dir and the directories above it up to the root of the repository. Outside
// of a repository it returns only dir.
func repositoryDirs(dir string) []string {
	var out []string
	for d := dir; ; d = filepath.Dir(d) {
		out = append(out, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return out
		}
		if d == filepath.Dir(d) {
			return []string{dir}
		}
	}
}

// relativeTo replaces a prefix of paths in a text. It keeps an occurrence within a longer path, the path
// of a directory that contains the directory dir below prefix, and a path in a quoted command, which
// must work in every directory.
func relativeTo(text, prefix, by, dir string) string {
	var b strings.Builder
	quotes := 0
	for {
		i := strings.Index(text, prefix)
		if i < 0 {
			break
		}
		rest := text[i+len(prefix):]
		before := i == 0 || strings.ContainsRune(" \t\n\"'`([{=,<>", rune(text[i-1]))
		quotes += strings.Count(text[:i], `"`)
		if quotes%2 == 1 && i > 0 && text[i-1] != '"' {
			before = false
		}
		name := rest
		if end := strings.IndexAny(rest, " \t\n\"'`)]},:;"); end >= 0 {
			name = rest[:end]
		}
		name = strings.TrimRight(name, "."+string(filepath.Separator))
		b.WriteString(text[:i])
		if before && name != "" && !strings.HasPrefix(dir, name+string(filepath.Separator)) {
			b.WriteString(by)
		} else {
			b.WriteString(prefix)
		}
		text = rest
	}
	return b.String() + text
}
