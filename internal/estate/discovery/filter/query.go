// Package filter reads queries about units, as --filter takes them. It knows nothing of
// units: package discovery looks for what a Query asks for.
//
// Main types: Query and Term. A query is terms joined by |, each of which narrows what
// the one before left. A term names units and stacks by name (app-*), path (./prod/**,
// {my path}), attribute (type=unit, reading=shared.hcl) or by what changed between two
// commits ([main...HEAD]). ! in front negates it; ... in front adds what depends on the
// units that match, behind it their dependencies; a number at its open end says how far,
// a folder in parentheses bounds the search; ^ leaves out the matching units themselves.
//
// The one rule: what cannot be understood is an error that quotes the filter.
package filter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// Far is how far a term without a number reaches.
const Far = 1 << 30

// A Query is one --filter.
type Query struct {
	Text  string
	Terms []Term // at least one
}

// A Term is one part of a query.
type Term struct {
	Kind     Kind
	Not      bool
	Name     string // of an attribute
	Value    string
	Up, Down int    // how far to the dependents of the units, and to their dependencies
	UpIn     string // the folder that this does not leave; "" for none
	DownIn   string
	Without  bool // the matching units are not found themselves
}

// Kind is what a term looks at.
type Kind int

// The kinds of terms.
const (
	ByName Kind = iota
	ByPath
	ByAttribute
	ByGit
)

// Invalid is the error about a filter that cannot be used.
func Invalid(q, why string) diag.List {
	return diag.Errorf(diag.CodeEstateFilter, nil, "Invalid filter", "The filter %q cannot be used: %s.", q, why)
}

// Parse reads the filters of a command.
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

// Negative reports whether a query takes units away instead of adding some.
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

// splitTop splits at a separator that stands in no brackets.
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

// dots stand between commits, and where a term reaches further.
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

// reachUp takes N... or (DIR)... from the front.
func (t *Term) reachUp(s string) (string, error) {
	if strings.HasPrefix(s, "(") {
		end := strings.IndexByte(s, ')')
		if end < 2 || !strings.HasPrefix(strings.TrimSpace(s[end+1:]), dots) {
			return s, fmt.Errorf("a folder in parentheses must be followed by %q and what it bounds", dots)
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

// reachDown reads ...N or ...(DIR), which is all that may stand behind an operand.
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
		return fmt.Errorf("behind %q there may be a number or a folder in parentheses, not %q", dots, tail)
	}
	return nil
}

// operand cuts off what is looked for; rest begins with ... or is empty.
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

// graphEnd reports whether text is what may stand behind the last dots of a term.
func graphEnd(s string) bool {
	s = strings.TrimSpace(s)
	return s == "" || isNumber(s) || s[0] == '('
}

// match decides what an operand is.
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
	case t.Name == "name" || t.Name == "reading" || t.Name == "source":
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
	return fmt.Errorf("there is no attribute %q; type, name, external, source and reading are known", t.Name)
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0
}

// distanceOf is how Far a graph term reaches; without a number, or with 0, as Far
// as it goes.
func distanceOf(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return Far
}
