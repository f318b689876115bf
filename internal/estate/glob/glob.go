// Package glob matches slash-separated paths with patterns. Match implements the patterns of copy
// rules in unit files, and Compile those of filters. Both support *, ? and {a,b}. They differ in
// the meaning of **.
package glob

import (
	"path"
	"regexp"
	"strings"
)

// Match reports whether a path matches a pattern. * and ? match within one element of the path.
// ** as a whole element matches any number of elements, including none. {a,b} matches either
// alternative. Paths use slashes.
func Match(pattern, name string) bool {
	for _, p := range alternatives(pattern) {
		if globParts(strings.Split(p, "/"), strings.Split(name, "/")) {
			return true
		}
	}
	return false
}

// mostAlternatives is the maximum number of patterns to which braces expand.
const mostAlternatives = 256

// alternatives expands the braces of a pattern.
func alternatives(p string) []string {
	out := []string{p}
	for i := 0; i < len(out) && len(out) < mostAlternatives; {
		from := strings.IndexByte(out[i], '{')
		to := strings.IndexByte(out[i], '}')
		if from < 0 || to < from {
			i++
			continue
		}
		head, tail := out[i][:from], out[i][to+1:]
		var each []string
		for _, alt := range strings.Split(out[i][from+1:to], ",") {
			each = append(each, head+alt+tail)
		}
		out = append(out[:i], append(each, out[i+1:]...)...)
	}
	return out
}

// globParts matches element by element. It tracks the set of possible positions in the pattern,
// so that the cost is linear in the number of **.
func globParts(pattern, name []string) bool {
	at := map[int]bool{0: true}
	spread := func() {
		for i := range pattern {
			if at[i] && pattern[i] == "**" {
				at[i+1] = true
			}
		}
	}
	spread()
	for _, part := range name {
		next := map[int]bool{}
		for i := range at {
			if i == len(pattern) {
				continue
			}
			if pattern[i] == "**" {
				next[i] = true
			} else if ok, err := path.Match(pattern[i], part); ok && err == nil {
				next[i+1] = true
			}
		}
		at = next
		spread()
	}
	return at[len(pattern)]
}

// Compile returns a function that matches the pattern of a filter. * and ? match within one
// element of a path, ** matches across elements, and [a-z] and {a,b} work as in shells. An
// invalid pattern only matches itself.
func Compile(pattern string) func(string) bool {
	if !strings.ContainsAny(pattern, "*?[{") {
		return func(name string) bool { return name == pattern }
	}
	var b strings.Builder
	b.WriteString("^(?s:")
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '{':
			depth++
			b.WriteString("(?:")
		case c == '}' && depth > 0:
			depth--
			b.WriteString(")")
		case c == ',' && depth > 0:
			b.WriteString("|")
		case c == '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end < 2 {
				b.WriteString(`\[`)
				continue
			}
			b.WriteString("[" + classText(pattern[i+1:i+end]) + "]")
			i += end
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	re, err := regexp.Compile(b.String() + ")$")
	if err != nil {
		return func(name string) bool { return name == pattern }
	}
	return re.MatchString
}

// classText converts the content of brackets in a pattern to that of a regular expression.
func classText(s string) string {
	neg := ""
	if s[0] == '!' || s[0] == '^' {
		neg, s = "^", s[1:]
	}
	return neg + strings.NewReplacer(`\`, `\\`, "[", `\[`, "&", `\&`, "^", `\^`).Replace(s)
}
