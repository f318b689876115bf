// Package rules reads rules about the values of a configuration and checks them.
//
// Main types: Set, the rules of a directory or estate; Checker, one check of a Set; and Unit, a
// configuration with its subjects. The one rule: a rule neither passes nor fails while a value that
// decides it is unknown.
package rules

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// The suffixes of files with rules, and of files with tests of rules.
const (
	Suffix           = ".rules.hcl"
	PolicySuffix     = ".policy.hcl"
	TestSuffix       = ".rulestest.hcl"
	PolicyTestSuffix = ".policytest.hcl"
)

// A Set contains the rules of a directory or estate.
type Set struct {
	Rules      []*Rule
	Exceptions []*Exception
	files      []*file
}

// A file is a file with rules.
type file struct {
	name   string // as in ranges
	base   string // name without directories, for targets of tests
	inputs map[string]cty.Value
	locals map[string]*lang.Expr
	policy bool
}

// A Rule is a condition that all subjects of a kind must meet.
type Rule struct {
	Name     string
	At       source.Range
	Kind     subject.Kind
	Patterns []Pattern // of subject.Subject.Name; nil means all
	Level    finding.Level
	Final    bool // exceptions are not allowed

	operations []string // the planned operations to which the rule applies; nil means all
	filter     *lang.Expr
	locals     map[string]*lang.Expr
	conditions []condition
	file       *file
	// wide means that the rule refers to the whole estate, by these lists if it has a subject.
	wide  bool
	lists []list
}

// A condition is an enforce block.
type condition struct {
	expr    *lang.Expr
	message *lang.Expr // nil means that there is none
}

// An Exception excuses subjects from a rule.
type Exception struct {
	Rule    string
	Address Pattern // of the subject
	Unit    Pattern // of the unit's name
	Reason  string
	Expires time.Time // the exception ends before this day; zero means never
	At      source.Range
}

// A Pattern is a text in which * represents any characters.
type Pattern struct {
	text  string   // "" means everything
	parts []string // the texts between the *; nil means that there is none
}

// NewPattern returns the pattern of a text. "" and "*" match everything.
func NewPattern(text string) Pattern {
	if text == "" || text == "*" {
		return Pattern{}
	}
	if !strings.Contains(text, "*") {
		return Pattern{text: text}
	}
	return Pattern{text, strings.Split(text, "*")}
}

// Match reports whether the pattern matches a text.
func (p Pattern) Match(text string) bool {
	if p.parts == nil {
		return p.text == "" || p.text == text
	}
	text, ok := strings.CutPrefix(text, p.parts[0])
	last := len(p.parts) - 1
	for _, part := range p.parts[1:last] {
		if !ok {
			return false
		}
		_, text, ok = strings.Cut(text, part)
	}
	return ok && strings.HasSuffix(text, p.parts[last])
}

// Applies reports whether the rule is about subjects of a kind with a name.
func (r *Rule) Applies(k subject.Kind, name string) bool {
	if r.Kind != k {
		return false
	}
	for _, p := range r.Patterns {
		if p.Match(name) {
			return true
		}
	}
	return len(r.Patterns) == 0
}

// Wants returns a test whether a rule of the set needs subjects of a kind with a name. planned means
// that the operations are known. The test caches its results and may be called concurrently.
func (s *Set) Wants(planned bool) func(subject.Kind, string) bool {
	var known sync.Map // named to bool
	return func(k subject.Kind, name string) bool {
		if v, ok := known.Load(named{k, name}); ok {
			return v.(bool)
		}
		wants := s.lists(planned, k, name) || slices.ContainsFunc(s.Rules, func(r *Rule) bool { return r.Applies(k, name) })
		if k != subject.Unit && k != subject.Edge { // each has its own name
			known.Store(named{k, name}, wants)
		}
		return wants
	}
}

// lists reports whether a rule reads a list of subjects of the whole estate that may contain
// subjects of a kind with a name. The planned operations are unknown before a plan, so that changes()
// then needs no subjects.
func (s *Set) lists(planned bool, k subject.Kind, name string) bool {
	for _, r := range s.Rules {
		if r.wide {
			for _, l := range r.lists {
				if l.kind == k && (planned || l.name != "changes") && l.pattern.Match(name) {
					return true
				}
			}
		}
	}
	return false
}

// Empty reports whether there are no rules.
func (s *Set) Empty() bool { return s == nil || len(s.Rules) == 0 }

// exprs returns all expressions that decide the rule.
func (r *Rule) exprs() []*lang.Expr {
	var out []*lang.Expr
	if r.filter != nil {
		out = append(out, r.filter)
	}
	for _, c := range r.conditions {
		out = append(out, c.expr)
		if c.message != nil {
			out = append(out, c.message)
		}
	}
	return out
}

// local returns the expression of a local value as the rule sees it, or nil.
func (r *Rule) local(name string) *lang.Expr {
	if x := r.locals[name]; x != nil {
		return x
	}
	return r.file.locals[name]
}

// walk calls do with an expression and those of all local values that it refers to, each once.
func (r *Rule) walk(x *lang.Expr, seen map[*lang.Expr]bool, do func(*lang.Expr)) {
	if seen[x] {
		return
	}
	seen[x] = true
	do(x)
	for _, ref := range x.Refs() {
		if ref.Traversal.RootName() == "local" && len(ref.Traversal) > 1 {
			if a, ok := ref.Traversal[1].(hcl.TraverseAttr); ok {
				if l := r.local(a.Name); l != nil {
					r.walk(l, seen, do)
				}
			}
		}
	}
}
