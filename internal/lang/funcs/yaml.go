package funcs

// YAML often comes from elsewhere (a file, the answer of a server), and two
// kinds of small texts can take all time or memory: brackets nested very deep,
// in whose depth the parser is quadratic, and aliases of aliases, whose
// expansion is exponential in their number. Both are measured before parsing,
// from above: a text may be taken for larger than it is, never for smaller.

import (
	"math"
	"strings"

	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

func yamlDecodeFunc() function.Function {
	decode := yaml.YAMLDecodeFunc
	return guarded(function.New(&function.Spec{
		Description: "Parses a string as a subset of YAML and returns what it describes.",
		Params:      decode.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if args[0].IsKnown() {
				if err := tooLarge(args[0].AsString()); err != nil {
					return cty.NilType, err
				}
			}
			return decode.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			return yaml.Standard.Unmarshal([]byte(args[0].AsString()), ret)
		},
	}))
}

const (
	maxNesting   = 10000    // brackets open at once
	maxExpansion = 64 << 20 // bytes of the text with its aliases written out
)

func tooLarge(text string) error {
	if nesting(text) > maxNesting {
		return function.NewArgErrorf(0, "the text nests brackets more than %d deep", maxNesting)
	}
	if size := expansion(text); size > maxExpansion && size > 16*float64(len(text)) {
		return function.NewArgErrorf(0, "the text would become larger than %d MiB with its aliases written out", maxExpansion>>20)
	}
	return nil
}

// nesting is the most brackets in s that are open at once, those in strings
// counted as well.
func nesting(s string) int {
	depth, most := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return most
}

// anchor is a place that aliases refer to. Its node ends before the next line
// that is not indented deeper, and before the first alias of it.
type anchor struct {
	name   string
	indent int
	item   bool    // in a line that starts with a dash
	from   float64 // size of the text before it
	size   float64 // once closed
	closed bool
}

// expansion is about how many bytes s has with its aliases written out. It is a
// float64, which has room for exponential growth and ends in infinity.
func expansion(s string) float64 {
	if !strings.Contains(s, "*") {
		return float64(len(s))
	}
	var open []*anchor // indent never falls towards the end
	named := make(map[string]*anchor)
	total := 0.0
	for line := range strings.Lines(s) {
		words := strings.TrimLeft(line, " ")
		indent := len(line) - len(words)
		item := strings.HasPrefix(words, "- ")
		if words := strings.TrimSpace(words); words != "" && words[0] != '#' {
			for len(open) > 0 && ends(open[len(open)-1], indent, item) {
				open[len(open)-1].close(total)
				open = open[:len(open)-1]
			}
		}
		for i := range len(words) {
			total++
			if words[i] != '&' && words[i] != '*' || i > 0 && !strings.ContainsRune(" \t[{,:-", rune(words[i-1])) {
				continue
			}
			name := words[i+1:]
			if end := strings.IndexAny(name, " \t\r\n,[]{}"); end >= 0 {
				name = name[:end]
			}
			if words[i] == '&' {
				a := &anchor{name: name, indent: indent, item: item, from: total}
				named[name] = a
				open = append(open, a)
			} else if a := named[name]; a != nil {
				a.close(total)
				total += a.size
			}
		}
	}
	return math.Max(total, float64(len(s)))
}

// ends tells whether the node of a has ended where a line starts with indent.
func ends(a *anchor, indent int, item bool) bool {
	if indent == a.indent && item && !a.item {
		return false // a list may stand as deep as its key
	}
	return indent <= a.indent
}

func (a *anchor) close(total float64) {
	if !a.closed {
		a.closed, a.size = true, total-a.from
	}
}
