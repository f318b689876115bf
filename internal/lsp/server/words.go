package server

import (
	"regexp"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/similar"
	"github.com/zclconf/go-cty/cty"
)

var words = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_-]*`) })

// misspelled returns the only word in a text that is similar to another word, with its offset. The word
// is "" if there is none, or more than one.
func misspelled(text []byte, word string) (at int, wrong string) {
	for _, m := range words().FindAllIndex(text, -1) {
		w := string(text[m[0]:m[1]])
		if similar.Nearest(w, slices.Values([]string{word})) != word {
			continue
		}
		if wrong != "" {
			return 0, ""
		}
		at, wrong = m[0], w
	}
	return at, wrong
}

// requiredOf returns the names of the variables without a default, sorted.
func requiredOf(all map[string]*config.Variable) (out []string) {
	for name, v := range all {
		if v.Default == cty.NilVal {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
