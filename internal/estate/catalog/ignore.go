package catalog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// IgnoreFile is the name of the file at the root of a repository that excludes directories from
// the catalog.
const IgnoreFile = ".terragrunt-catalog-ignore"

// Rules selects directories that are excluded. The last matching rule is used.
type Rules []rule

type rule struct {
	pattern *regexp.Regexp
	keep    bool
}

// Match reports whether a directory is excluded.
func (rs Rules) Match(dir string) bool {
	for i := len(rs) - 1; i >= 0; i-- {
		if rs[i].pattern.MatchString(dir) {
			return !rs[i].keep
		}
	}
	return false
}

// Committed returns the rules in the ignore file of a repository.
func Committed(root string) (Rules, error) {
	rs, err := ReadRules(filepath.Join(root, IgnoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return rs, err
}

// ReadRules parses a file of rules. It skips invalid rules.
func ReadRules(file string) (Rules, error) {
	b, err := readfile.Whole(file)
	if err != nil {
		return nil, err
	}
	var out Rules
	for _, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rest, keep := strings.CutPrefix(line, "!")
		rest = strings.TrimPrefix(strings.TrimSuffix(rest, "/"), "/")
		if p, err := regexp.Compile(pattern(rest)); err == nil { // otherwise the line is not valid UTF-8
			out = append(out, rule{p, keep})
		}
	}
	return out, nil
}

// pattern converts the pattern of a rule to a regular expression.
func pattern(text string) string {
	var b strings.Builder
	b.WriteString("^")
	for text != "" {
		switch {
		case strings.HasPrefix(text, "**/"):
			b.WriteString("(.*/)?")
			text = text[3:]
		case strings.HasPrefix(text, "**"):
			b.WriteString(".*")
			text = text[2:]
		case text[0] == '*':
			b.WriteString("[^/]*")
			text = text[1:]
		case text[0] == '?':
			b.WriteString("[^/]")
			text = text[1:]
		default:
			n := strings.IndexAny(text, "*?")
			if n < 0 {
				n = len(text)
			}
			b.WriteString(regexp.QuoteMeta(text[:n]))
			text = text[n:]
		}
	}
	return b.String() + "$"
}
