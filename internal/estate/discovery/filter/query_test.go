package filter

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseQuery(t *testing.T) {
	tests := []struct{ text, want string }{
		{"vpc", "name vpc"},
		{" ! vpc", "not name vpc"},
		{"!!vpc", "name vpc"},
		{"./a/** | type=unit", "path ./a/** | attribute type=unit"},
		{"{a|b c} | x", "path a|b c | name x"},
		{"{./{a,b}/**}", "path ./{a,b}/**"},
		{"...vpc", "name vpc up"},
		{"vpc ...", "name vpc down"},
		{"2...^vpc...1", "name vpc up 2 down 1 without"},
		{"0...vpc", "name vpc up"},
		{"...name=a...", "attribute name=a up down"},
		{"(a b)...vpc...(..)", "name vpc up in a b down in .."},
		{"...[main...HEAD]...", "git main...HEAD up down"},
		{"[HEAD~1]", "git HEAD~1"},
		{".", "path ."},
		{"a...b", `error "..." cannot be part of "a...b": git references belong in [brackets], and paths with such parts in {braces}`},
		{"app^", `error "^" cannot be part of "app^": git references belong in [brackets], and paths with such parts in {braces}`},
		{"{a...^b}", "path a...^b"},
		{"", "error a term is empty"},
		{"!", "error a term is empty"},
		{"...", "error a term is empty"},
		{"a||b", "error a term is empty"},
		{"{}", "error the path in braces is empty"},
		{"[]", "error the git expression is empty"},
		{"[HEAD", `error "[" is never closed`},
		{"[a]pp", `error "pp" cannot follow what is looked for`},
		{"(a)", `error a directory in parentheses must be followed by "..." and what it bounds`},
		{"type=", `error the attribute "type" has no value`},
		{"type=x", `error type is unit or stack, not "x"`},
		{"external=x", `error external is true or false, not "x"`},
		{"foo=x", `error there is no attribute "foo"; type, name, external, source, reading and affected are known`},
	}
	for _, tt := range tests {
		q, err := parseQuery(tt.text)
		got := words(q)
		if err != nil {
			got = "error " + err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: %s", tt.text, got)
		}
	}
}

// words renders a query as text for comparison.
func words(q Query) string {
	var terms []string
	for _, t := range q.Terms {
		s := [...]string{"name", "path", "attribute", "git"}[t.Kind] + " "
		if t.Not {
			s = "not " + s
		}
		if t.Name != "" {
			s += t.Name + "="
		}
		s += t.Value + reachText("up", t.Up, t.UpIn) + reachText("down", t.Down, t.DownIn)
		if t.Without {
			s += " without"
		}
		terms = append(terms, s)
	}
	return strings.Join(terms, " | ")
}

func reachText(name string, n int, in string) string {
	switch {
	case n == 0:
		return ""
	case in != "":
		return " " + name + " in " + in
	case n == Far:
		return " " + name
	}
	return fmt.Sprintf(" %s %d", name, n)
}

// FuzzParseQuery checks that every query is an error or has terms with a value.
func FuzzParseQuery(f *testing.F) {
	for _, s := range []string{"a...", "...^[x...y] | !{b}", "(d)...x...(e)", "1...a=b...2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseQuery(text)
		if err != nil {
			return
		}
		for _, term := range q.Terms {
			if term.Value == "" || term.Up < 0 || term.Down < 0 {
				t.Errorf("%q: %+v", text, term)
			}
		}
	})
}
