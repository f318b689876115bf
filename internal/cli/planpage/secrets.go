package planpage

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/cli/planhtml"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// secrets contains the values that the page must hide for a unit.
type secrets struct {
	of    map[string]bool // whether each variable of the module is secret; nil if the variables are unknown
	texts []string        // secret texts
	lines map[string]bool // lines of secret texts with several lines, without white space around them
}

// newSecrets returns the secrets in a module with the given variables, and in a plan, which
// may be nil.
func newSecrets(all map[string]*config.Variable, p *plan.Plan) *secrets {
	s := &secrets{of: make(map[string]bool, len(all))}
	for name, v := range all {
		s.of[name] = v.Sensitive || v.Ephemeral
	}
	if p != nil {
		s.plan(p)
	}
	return s
}

// names returns the secret variables, sorted.
func (s *secrets) names() []string {
	var out []string
	for name, secret := range s.of {
		if secret {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// plan adds the secrets in a plan.
func (s *secrets) plan(p *plan.Plan) {
	for name, v := range p.Variables {
		s.value(v, s.of[name])
	}
	at := func(v cty.Value, paths []cty.Path) {
		for _, path := range paths {
			if v == cty.NilVal || v.IsNull() {
				return
			}
			if part, err := path.Apply(v); err == nil {
				s.value(part, true)
			}
		}
	}
	for _, c := range p.Changes {
		at(c.Before, c.BeforeSensitive)
		at(c.After, c.AfterSensitive)
	}
	for _, o := range p.Outputs {
		s.value(o.Before, o.BeforeSensitive)
		s.value(o.After, o.AfterSensitive)
	}
}

// value adds the secret texts in a value or, with all, every text. The page hides them
// everywhere, because a provider may repeat a secret without marking it, as terraform_data
// does in its output. A page is shared more easily than the output on a terminal.
func (s *secrets) value(v cty.Value, all bool) {
	all = all || value.Secret(v)
	v, _ = v.Unmark()
	switch {
	case v == cty.NilVal || !v.IsKnown() || v.IsNull():
	case v.Type() == cty.String:
		if text := v.AsString(); all && text != "" {
			s.text(text)
		}
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			s.value(x, all)
		}
	}
}

// shortestLine is the length, in bytes, of the shortest line of a secret text that is hidden.
// Shorter ones, such as brackets, occur everywhere.
const shortestLine = 4

// text adds a secret text, with the parts that the changes of a plan show by themselves: the
// lines of the text, and the strings in it if it is JSON.
func (s *secrets) text(text string) {
	s.texts = append(s.texts, text)
	if strings.Contains(text, "\n") {
		if s.lines == nil {
			s.lines = map[string]bool{}
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= shortestLine {
				s.lines[line] = true
			}
		}
	}
	var in any
	if json.Unmarshal([]byte(text), &in) == nil {
		s.json(in)
	}
}

// json adds the strings in a decoded JSON value.
func (s *secrets) json(in any) {
	switch x := in.(type) {
	case string:
		if x != "" {
			s.text(x)
		}
	case []any:
		for _, part := range x {
			s.json(part)
		}
	case map[string]any:
		for _, part := range x {
			s.json(part)
		}
	}
}

// coverLines replaces the lines of secret texts in the text of a change, which shows them without
// quotes, behind white space and a symbol.
func (s *secrets) coverLines(text string) string {
	if len(s.lines) == 0 {
		return text
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		rest := strings.TrimSpace(line)
		if !s.lines[rest] && len(rest) > 2 && strings.ContainsRune("+-~", rune(rest[0])) {
			rest = strings.TrimSpace(rest[1:])
		}
		if s.lines[rest] {
			all[i] = line[:strings.LastIndex(line, rest)] + value.SecretText
		}
	}
	return strings.Join(all, "\n")
}

// cover replaces the secrets in all content of the page for a unit, including their quoted
// forms.
func (s *secrets) cover(u *planhtml.Box) {
	if len(s.texts) == 0 {
		return
	}
	var pairs []string
	for _, text := range s.texts {
		pairs = append(pairs, strconv.Quote(text), value.SecretText)
	}
	hide := strings.NewReplacer(pairs...)
	for i, c := range u.Changes {
		u.Changes[i].Text = s.coverLines(hide.Replace(c.Text)) // it has as many lines, which Causes count
		for j, x := range c.Causes {
			c.Causes[j].Text = s.coverLines(hide.Replace(x.Text))
		}
	}
	for i, m := range u.Messages {
		u.Messages[i].Text = hide.Replace(m.Text)
	}
	for i, in := range u.Inputs {
		u.Inputs[i].Value = hide.Replace(in.Value)
	}
}
