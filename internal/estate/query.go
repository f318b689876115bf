package estate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// # Queries
//
// A query is terms joined by |, each of which narrows what the one before left. A
// term names units and stacks by name (app-*), path (./prod/**, {my path}),
// attribute (type=unit, reading=shared.hcl) or by what changed between two states
// of the git repository ([main...HEAD]). ! in front turns it round; ... in front
// adds what needs the units that match, behind it what they need; a number at its
// open end says how far, a folder in parentheses how far out; ^ leaves out the
// matching units themselves.

// far is how far a term without a number reaches.
const far = 1 << 30

// A query is one --filter.
type query struct {
	text  string
	terms []term
}

// A term is one part of a query.
type term struct {
	kind     termKind
	not      bool
	name     string // of an attribute
	value    string
	up, down int    // how far to what needs the units, and to what they need
	upIn     string // the folder that this does not leave; "" for none
	downIn   string
	without  bool
}

type termKind int

const (
	termName termKind = iota
	termPath
	termAttribute
	termGit
)

func badFilter(q, why string) diag.List {
	ds := diag.Errorf(nil, "Invalid filter", "The filter %q cannot be used: %s.", q, why)
	ds[0].Code = "estate/filter"
	return ds
}

// parseQueries reads the filters of a command.
func parseQueries(texts []string) ([]query, diag.List) {
	var out []query
	var ds diag.List
	for _, text := range texts {
		q, err := parseQuery(text)
		if err != nil {
			ds = append(ds, badFilter(text, err.Error())...)
			continue
		}
		out = append(out, q)
	}
	return out, ds
}

// negative reports whether a query takes units away instead of adding some.
func (q *query) negative() bool { return q.terms[0].not }

func parseQuery(text string) (query, error) {
	q := query{text: text}
	for _, part := range splitTop(text, '|') {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return q, err
		}
		q.terms = append(q.terms, t)
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

const dots = "..."

func parseTerm(s string) (term, error) {
	var t term
	for {
		rest, ok := strings.CutPrefix(s, "!")
		if !ok {
			break
		}
		t.not = !t.not
		s = strings.TrimSpace(rest)
	}
	s, err := t.reachUp(s)
	if err != nil {
		return t, err
	}
	if rest, ok := strings.CutPrefix(s, "^"); ok {
		t.without, s = true, strings.TrimSpace(rest)
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
func (t *term) reachUp(s string) (string, error) {
	if strings.HasPrefix(s, "(") {
		end := strings.IndexByte(s, ')')
		if end < 2 || !strings.HasPrefix(strings.TrimSpace(s[end+1:]), dots) {
			return s, fmt.Errorf("a folder in parentheses must be followed by %q and what it bounds", dots)
		}
		t.upIn, t.up = s[1:end], far
		return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s[end+1:]), dots)), nil
	}
	head, tail, ok := strings.Cut(s, dots)
	head = strings.TrimSpace(head)
	if !ok || head != "" && !isNumber(head) {
		return s, nil
	}
	t.up = distanceOf(head)
	return strings.TrimSpace(tail), nil
}

// reachDown reads ...N or ...(DIR), which is all that may stand behind an operand.
func (t *term) reachDown(s string) error {
	if s == "" {
		return nil
	}
	tail, ok := strings.CutPrefix(s, dots)
	if !ok {
		return fmt.Errorf("%q cannot stand behind what is looked for", s)
	}
	tail = strings.TrimSpace(tail)
	switch {
	case tail == "" || isNumber(tail):
		t.down = distanceOf(tail)
	case len(tail) > 2 && tail[0] == '(' && tail[len(tail)-1] == ')':
		t.down, t.downIn = far, tail[1:len(tail)-1]
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
func (t *term) match(word string) error {
	switch {
	case word == "":
		return fmt.Errorf("nothing is said of what is looked for")
	case word[0] == '{':
		t.kind, t.value = termPath, strings.TrimSpace(word[1:len(word)-1])
		if t.value == "" {
			return fmt.Errorf("the path in braces is empty")
		}
		return nil
	case word[0] == '[':
		t.kind, t.value = termGit, strings.TrimSpace(word[1:len(word)-1])
		if t.value == "" {
			return fmt.Errorf("the git expression is empty")
		}
		return nil
	}
	for _, mark := range [...]string{dots, "^"} {
		if strings.Contains(word, mark) {
			return fmt.Errorf("%q cannot stand in %q: git references belong in [brackets], and paths with such parts in {braces}", mark, word)
		}
	}
	if name, value, ok := strings.Cut(word, "="); ok {
		t.kind, t.name, t.value = termAttribute, strings.TrimSpace(name), strings.TrimSpace(value)
		return t.checkAttribute()
	}
	t.value = word
	if word == "." || word == ".." || strings.Contains(word, "/") {
		t.kind = termPath
	}
	return nil
}

func (t *term) checkAttribute() error {
	switch {
	case t.value == "":
		return fmt.Errorf("the attribute %q has no value", t.name)
	case t.name == "name" || t.name == "reading" || t.name == "source":
		return nil
	case t.name == "type" && (t.value == "unit" || t.value == "stack"):
		return nil
	case t.name == "external" && (t.value == "true" || t.value == "false"):
		return nil
	case t.name == "type":
		return fmt.Errorf("type is unit or stack, not %q", t.value)
	case t.name == "external":
		return fmt.Errorf("external is true or false, not %q", t.value)
	}
	return fmt.Errorf("there is no attribute %q; type, name, external, source and reading are known", t.name)
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0
}

// distanceOf is how far a graph term reaches; without a number, or with 0, as far
// as it goes.
func distanceOf(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return far
}
