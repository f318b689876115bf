// Package filter parses queries about units, as the --filter option takes them. It does not
// evaluate them; package discovery does.
//
// Main types: Query and Term. A query consists of terms joined by |. Each term narrows the result
// of the one before. A term matches units and stacks by name (app-*), path (./prod/**, {my
// path}), attribute (type=unit, reading=shared.hcl), by a change between two commits
// ([main...HEAD]) or by values that differ from a commit (affected=main). A leading ! negates the term. A leading ... adds the dependents of the
// matching units, and a trailing ... their dependencies. A number at the open end limits the
// distance, a directory in parentheses bounds the search, and ^ removes the matching units
// themselves.
//
// The one rule: an invalid query is an error that quotes the filter.
package filter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// Far is the distance of a graph operator without a number: no limit.
const Far = 1 << 30

// A Query is the value of one --filter option.
type Query struct {
	Text  string
	Terms []Term // at least one
}

// A Term is one part of a query.
type Term struct {
	Kind     Kind
	Not      bool
	Name     string // name of an attribute, for ByAttribute
	Value    string
	Up, Down int    // maximum distance of dependents and of dependencies; 0 means none
	UpIn     string // directory that bounds Up; "" means none
	DownIn   string // directory that bounds Down; "" means none
	Without  bool   // the matching units themselves are removed
}

// Kind is the property that a term matches.
type Kind int

// The kinds of terms.
const (
	ByName Kind = iota
	ByPath
	ByAttribute
	ByGit
)

// Invalid returns the error about an invalid filter q.
func Invalid(q, why string) diag.List {
	return diag.Errorf(diag.CodeEstateFilter, nil, "Invalid filter", "The filter %q cannot be used: %s.", q, why)
}

// Parse parses the filters of a command.
func Parse(texts []string) ([]Query, diag.List) {
	var out []Query
	var ds diag.List
	for _, text := range texts {
		q, err := parseQuery(text)
		if err != nil {
			ds = append(ds, Invalid(text, err.Error())...)
			continue
		}
		out = append(out, q)
	}
	return out, ds
}

// Negative reports whether a query removes units instead of adding some.
func (q *Query) Negative() bool { return q.Terms[0].Not }

func parseQuery(text string) (Query, error) {
	q := Query{Text: text}
	for _, part := range splitTop(text, '|') {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return q, err
		}
		q.Terms = append(q.Terms, t)
	}
	return q, nil
}

// splitTop splits text at separators outside of brackets.
func splitTop(text string, sep byte) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case sep:
			if depth <= 0 {
				out = append(out, text[from:i])
				from = i + 1
			}
		}
	}
	return append(out, text[from:])
}

// dots separates commits, and marks graph operators.
const dots = "..."

func parseTerm(s string) (Term, error) {
	var t Term
	for {
		rest, ok := strings.CutPrefix(s, "!")
		if !ok {
			break
		}
		t.Not = !t.Not
		s = strings.TrimSpace(rest)
	}
	s, err := t.reachUp(s)
	if err != nil {
		return t, err
	}
	if rest, ok := strings.CutPrefix(s, "^"); ok {
		t.Without, s = true, strings.TrimSpace(rest)
	}
	if s == "" {
		return t, fmt.Errorf("a term is empty")
	}
	word, rest, err := operand(s)
	if err != nil {
		return t, err
	}
	if err := t.reachDown(strings.TrimSpace(rest)); err != nil {
		return t, err
	}
	return t, t.match(word)
}

// reachUp parses a leading N... or (DIR)... and returns the rest.
func (t *Term) reachUp(s string) (string, error) {
	if strings.HasPrefix(s, "(") {
		end := strings.IndexByte(s, ')')
		if end < 2 || !strings.HasPrefix(strings.TrimSpace(s[end+1:]), dots) {
			return s, fmt.Errorf("a directory in parentheses must be followed by %q and what it bounds", dots)
		}
		t.UpIn, t.Up = s[1:end], Far
		return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s[end+1:]), dots)), nil
	}
	head, tail, ok := strings.Cut(s, dots)
	head = strings.TrimSpace(head)
	if !ok || head != "" && !isNumber(head) {
		return s, nil
	}
	t.Up = distanceOf(head)
	return strings.TrimSpace(tail), nil
}

// reachDown parses ...N or ...(DIR) after an operand.
func (t *Term) reachDown(s string) error {
	if s == "" {
		return nil
	}
	tail, ok := strings.CutPrefix(s, dots)
	if !ok {
		return fmt.Errorf("%q cannot follow what is looked for", s)
	}
	tail = strings.TrimSpace(tail)
	switch {
	case tail == "" || isNumber(tail):
		t.Down = distanceOf(tail)
	case len(tail) > 2 && tail[0] == '(' && tail[len(tail)-1] == ')':
		t.Down, t.DownIn = Far, tail[1:len(tail)-1]
	default:
		return fmt.Errorf("behind %q there may be a number or a directory in parentheses, not %q", dots, tail)
	}
	return nil
}

// operand returns the operand at the start of s. rest begins with ... or is empty.
func operand(s string) (word, rest string, err error) {
	closing := map[byte]byte{'{': '}', '[': ']'}
	if end, ok := closing[s[0]]; ok {
		depth := 0
		for i := range len(s) {
			switch s[i] {
			case s[0]:
				depth++
			case end:
				if depth--; depth == 0 {
					return s[:i+1], s[i+1:], nil
				}
			}
		}
		return "", "", fmt.Errorf("%q is never closed", s[:1])
	}
	at := len(s)
	for i := 0; i+3 <= len(s); i++ {
		if s[i:i+3] == dots && graphEnd(s[i+3:]) {
			at = i
			break
		}
	}
	return strings.TrimSpace(s[:at]), s[at:], nil
}

// graphEnd reports whether text may follow the last dots of a term.
func graphEnd(s string) bool {
	s = strings.TrimSpace(s)
	return s == "" || isNumber(s) || s[0] == '('
}

// match sets the kind and value of a term from its operand.
func (t *Term) match(word string) error {
	switch {
	case word == "":
		return fmt.Errorf("it does not say what to look for")
	case word[0] == '{':
		t.Kind, t.Value = ByPath, strings.TrimSpace(word[1:len(word)-1])
		if t.Value == "" {
			return fmt.Errorf("the path in braces is empty")
		}
		return nil
	case word[0] == '[':
		t.Kind, t.Value = ByGit, strings.TrimSpace(word[1:len(word)-1])
		if t.Value == "" {
			return fmt.Errorf("the git expression is empty")
		}
		return nil
	}
	for _, mark := range [...]string{dots, "^"} {
		if strings.Contains(word, mark) {
			return fmt.Errorf("%q cannot be part of %q: git references belong in [brackets], and paths with such parts in {braces}", mark, word)
		}
	}
	if name, value, ok := strings.Cut(word, "="); ok {
		t.Kind, t.Name, t.Value = ByAttribute, strings.TrimSpace(name), strings.TrimSpace(value)
		return t.checkAttribute()
	}
	t.Value = word
	if word == "." || word == ".." || strings.Contains(word, "/") {
		t.Kind = ByPath
	}
	return nil
}

func (t *Term) checkAttribute() error {
	switch {
	case t.Value == "":
		return fmt.Errorf("the attribute %q has no value", t.Name)
	case t.Name == "name" || t.Name == "reading" || t.Name == "source" || t.Name == "affected":
		return nil
	case t.Name == "type" && (t.Value == "unit" || t.Value == "stack"):
		return nil
	case t.Name == "external" && (t.Value == "true" || t.Value == "false"):
		return nil
	case t.Name == "type":
		return fmt.Errorf("type is unit or stack, not %q", t.Value)
	case t.Name == "external":
		return fmt.Errorf("external is true or false, not %q", t.Value)
	}
	return fmt.Errorf("there is no attribute %q; type, name, external, source, reading and affected are known", t.Name)
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0
}

// distanceOf parses the distance of a graph operator. No number and 0 mean Far.
func distanceOf(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return Far
}
