package funcs

// YAML often comes from other sources (a file, the response of a server). Two kinds of small
// texts can use all time or memory: deeply nested brackets, for which the parser takes
// quadratic time, and aliases of aliases, whose expansion is exponential. Both are estimated
// before parsing. The estimate may be too high, but never too low.

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
	maxNesting   = 10000    // maximum nesting depth of brackets
	maxExpansion = 64 << 20 // maximum size in bytes of the text with expanded aliases
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

// nesting returns the maximum nesting depth of brackets in s, including those in strings.
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

// anchor is the target of aliases. Its node ends before the next line that is not indented
// more, and before the first alias of it.
type anchor struct {
	name   string
	indent int
	item   bool    // on a line that starts with a dash
	from   float64 // size of the text before it
	size   float64 // valid after it is closed
	closed bool
}

// expansion returns the approximate size in bytes of s with expanded aliases. It is a float64,
// which can represent exponential growth up to infinity.
func expansion(s string) float64 {
	if !strings.Contains(s, "*") {
		return float64(len(s))
	}
	var open []*anchor // sorted by indent
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

// ends reports whether the node of a ends before a line with this indent.
func ends(a *anchor, indent int, item bool) bool {
	if indent == a.indent && item && !a.item {
		return false // a list may have the same indent as its key
	}
	return indent <= a.indent
}

func (a *anchor) close(total float64) {
	if !a.closed {
		a.closed, a.size = true, total-a.from
	}
}
