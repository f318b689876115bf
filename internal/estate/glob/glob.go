// Package glob matches paths with patterns: Match as copy rules of unit files have
// them, Compile as filters have them. Both know * ? and {a,b}; they differ in what **
// stands for. Paths have slashes.
package glob

import (
	"path"
	"regexp"
	"strings"
)

// Match reports whether a path matches a pattern: * and ? stay within one part of
// the path, ** as a part stands for any number of parts, none among them, and
// {a,b} for either. Paths have slashes.
func Match(pattern, name string) bool {
	for _, p := range alternatives(pattern) {
		if globParts(strings.Split(p, "/"), strings.Split(name, "/")) {
			return true
		}
	}
	return false
}

// mostAlternatives bounds how many patterns braces may stand for.
const mostAlternatives = 256

// alternatives writes a pattern without braces.
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

// globParts matches part by part. It keeps the set of pattern positions that the
// name can stand at, so that many ** cost no more than their number.
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

// Compile makes the test of a pattern as filters have it: * and ? stay within one
// part of a path, ** goes across parts, [a-z] and {a,b} as in shells. What is no
// sound pattern matches itself alone.
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

// classText is what stands in the brackets of a pattern, for a regular expression.
func classText(s string) string {
	neg := ""
	if s[0] == '!' || s[0] == '^' {
		neg, s = "^", s[1:]
	}
	return neg + strings.NewReplacer(`\`, `\\`, "[", `\[`, "&", `\&`, "^", `\^`).Replace(s)
}
