package funcs

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// regular returns the functions with regular expressions (RE2). They share a cache of compiled
// patterns, since a pattern is usually used for many instances.
func regular() family {
	ps := &patterns{}
	return family{
		"regex":    matchFunc(ps),
		"regexall": matchAllFunc(ps),
		"replace":  replaceFunc(ps),
	}
}

// patterns caches at most maxPatterns compiled regular expressions.
type patterns struct {
	mu   sync.Mutex
	kept map[string]*regexp.Regexp
}

const maxPatterns = 256

func (ps *patterns) compile(pattern string) (*regexp.Regexp, error) {
	ps.mu.Lock()
	re := ps.kept[pattern]
	ps.mu.Unlock()
	if re != nil {
		return re, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.kept == nil || len(ps.kept) >= maxPatterns {
		ps.kept = make(map[string]*regexp.Regexp)
	}
	ps.kept[pattern] = re
	return re, nil
}

// groups is a pattern with the type of its matches: a string without capture groups, a tuple
// with unnamed groups, an object with named groups.
type groups struct {
	re    *regexp.Regexp
	match cty.Type
}

// groups compiles the pattern in argument 0 of c.
func (ps *patterns) groups(c call) (groups, error) {
	re, err := ps.compile(c.text(0))
	if err != nil {
		return groups{}, function.NewArgErrorf(0, "invalid regexp pattern: %s", syntaxText(err, c.secret[0]))
	}
	ty, err := matchType(re)
	if err != nil {
		return groups{}, function.NewArgErrorf(0, "invalid regexp pattern: %s", err)
	}
	return groups{re, ty}, nil
}

func syntaxText(err error, secret bool) string {
	var bad *syntax.Error
	switch {
	case !errors.As(err, &bad):
		return "it cannot be compiled"
	case secret:
		return bad.Code.String()
	}
	return fmt.Sprintf("%s in %s", bad.Code, bad.Expr)
}

func matchType(re *regexp.Regexp) (cty.Type, error) {
	names := re.SubexpNames()[1:]
	named := make(map[string]cty.Type, len(names))
	for _, name := range names {
		if name != "" {
			named[name] = cty.String
		}
	}
	switch {
	case len(names) == 0:
		return cty.String, nil
	case len(named) == 0:
		types := make([]cty.Type, len(names))
		for i := range types {
			types[i] = cty.String
		}
		return cty.Tuple(types), nil
	case len(named) < len(names):
		return cty.NilType, errors.New("cannot mix both named and unnamed capture groups")
	}
	return cty.Object(named), nil
}

// value returns the value of one match, given its indices in str.
func (g groups) value(str string, at []int) cty.Value {
	group := func(i int) cty.Value {
		if at[2*i] < 0 {
			return cty.NullVal(cty.String) // the group is not part of the match
		}
		return cty.StringVal(str[at[2*i]:at[2*i+1]])
	}
	names := g.re.SubexpNames()
	switch {
	case g.match == cty.String:
		return group(0)
	case g.match.IsTupleType():
		vs := make([]cty.Value, len(names)-1)
		for i := range vs {
			vs[i] = group(i + 1)
		}
		return cty.TupleVal(vs)
	}
	vs := make(map[string]cty.Value, len(names)-1)
	for i, name := range names[1:] {
		vs[name] = group(i + 1)
	}
	return cty.ObjectVal(vs)
}

// patternType returns the result type of a function whose argument 0 is a pattern. It is
// dynamic if the pattern is unknown.
func (ps *patterns) patternType(args []cty.Value) (cty.Type, error) {
	pattern, marks := args[0].Unmark()
	if !pattern.IsKnown() {
		return cty.DynamicPseudoType, nil
	}
	g, err := ps.groups(call{args: []cty.Value{pattern}, secret: []bool{secretMarks(marks)}})
	return g.match, err
}

func matchFunc(ps *patterns) function.Function {
	return function.New(&function.Spec{
		Description: "Applies a regular expression to a string and returns what the first match yields: a string without capture groups, a tuple with unnamed groups, an object with named ones.",
		Params:      stringParams("pattern", "string"),
		Type:        ps.patternType,
		Impl: quoting(func(c call) (cty.Value, error) {
			g, err := ps.groups(c)
			if err != nil {
				return cty.NilVal, err
			}
			at := g.re.FindStringSubmatchIndex(c.text(1))
			if at == nil {
				return cty.NilVal, errors.New("pattern did not match any part of the given string")
			}
			return g.value(c.text(1), at), nil
		}),
	})
}

func matchAllFunc(ps *patterns) function.Function {
	return function.New(&function.Spec{
		Description: "Applies a regular expression to a string and returns the list of what its matches yield.",
		Params:      stringParams("pattern", "string"),
		Type: func(args []cty.Value) (cty.Type, error) {
			ty, err := ps.patternType(args)
			return cty.List(ty), err
		},
		RefineResult: notNull,
		Impl: quoting(func(c call) (cty.Value, error) {
			g, err := ps.groups(c)
			if err != nil {
				return cty.NilVal, err
			}
			all := g.re.FindAllStringSubmatchIndex(c.text(1), maxElements+1)
			if err := elementBound(float64(len(all))); err != nil {
				return cty.NilVal, err
			}
			if len(all) == 0 {
				return cty.ListValEmpty(g.match), nil
			}
			vs := make([]cty.Value, len(all))
			for i, at := range all {
				vs[i] = g.value(c.text(1), at)
			}
			return cty.ListVal(vs), nil
		}),
	})
}

func replaceFunc(ps *patterns) function.Function {
	return onStrings("Replaces every occurrence of a substring; a substring between slashes is a regular expression, whose groups the replacement may name as $1 or ${name}.",
		cty.String, func(c call) (cty.Value, error) {
			str, search, with := c.text(0), c.text(1), c.text(2)
			if len(search) < 2 || !strings.HasPrefix(search, "/") || !strings.HasSuffix(search, "/") {
				if err := textBound(float64(len(str)) + float64(strings.Count(str, search))*float64(len(with))); err != nil {
					return cty.NilVal, err
				}
				return cty.StringVal(strings.ReplaceAll(str, search, with)), nil
			}
			re, err := ps.compile(search[1 : len(search)-1])
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(1, "invalid regexp pattern: %s", syntaxText(err, c.secret[1]))
			}
			if err := replacedSize(re, str, with); err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(re.ReplaceAllString(str, with)), nil
		}, "str", "substr", "replace")
}

// replacedSize estimates the size of a replacement, in which each $ may be replaced by a match.
func replacedSize(re *regexp.Regexp, str, with string) error {
	most := (float64(len(str)) + 1) * float64(len(with)+1)
	if most <= value.MaxText {
		return nil
	}
	size, groups := float64(len(str)), float64(strings.Count(with, "$"))
	for _, at := range re.FindAllStringIndex(str, value.MaxText/(len(with)+1)+1) { // any more matches exceed the limit anyway
		size += float64(len(with)) + groups*float64(at[1]-at[0])
	}
	return textBound(size)
}
