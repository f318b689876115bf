package run

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/planhtml"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// pageDraft is what a page will show, unit by unit. The zero value is empty. Its methods
// may be called concurrently.
type pageDraft struct {
	mu    sync.Mutex
	plans map[string]draftPlan     // of units whose turn has not ended
	units map[string]planhtml.Unit // of those whose turn has; empty ones where there is no page now
	texts map[string]string        // what units have in common is there once
}

// draftPlan is what is kept of a plan for the page.
type draftPlan struct {
	hide    *secrets
	changes []planhtml.Change
}

// plan keeps a plan; with draw its changes, too.
func (d *pageDraft) plan(unit string, hide *secrets, pieces []view.Piece, draw bool) {
	x := draftPlan{hide: hide}
	if draw {
		x.changes = pageChanges(pieces)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.plans == nil {
		d.plans = map[string]draftPlan{}
	}
	d.plans[unit] = x
}

// planned hands out what plan kept of a unit; nil if there is nothing.
func (d *pageDraft) planned(unit string) ([]planhtml.Change, *secrets) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.plans[unit]
	delete(d.plans, unit)
	return x.changes, x.hide
}

func (d *pageDraft) has(unit string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.units[unit]
	return ok
}

// put notes that a unit is done, and with draw what the page shows of it.
func (d *pageDraft) put(u *planhtml.Unit, draw bool) {
	x := planhtml.Unit{}
	if draw {
		d.share(u)
		x = *u
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.units == nil {
		d.units = map[string]planhtml.Unit{}
	}
	d.units[u.Name] = x
}

// share has equal texts of all units in memory once.
func (d *pageDraft) share(u *planhtml.Unit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.texts == nil {
		d.texts = map[string]string{}
	}
	one := func(text *string) {
		if have, ok := d.texts[*text]; ok {
			*text = have
		} else {
			d.texts[*text] = *text
		}
	}
	one(&u.Summary)
	for i := range u.Changes {
		one(&u.Changes[i].Text)
	}
	for i := range u.Inputs {
		in := &u.Inputs[i]
		one(&in.Name)
		one(&in.Value)
		for j := range in.Steps {
			one(&in.Steps[j].Text)
			one(&in.Steps[j].File)
			one(&in.Steps[j].Role)
		}
	}
}

// secrets is what a page hides of a unit.
type secrets struct {
	of    map[string]bool // the variables of its module, and whether they are secret; nil if they are not known
	texts []string        // that are secret
}

// newSecrets is what is secret of a module with variables, and in a plan, if there is one.
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

// names are the variables that are secret, in order.
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

// plan notes what is secret in a plan.
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

// value notes the texts in a value that are secret, or all of them. They are hidden
// where a provider repeats them without saying that they are secret, as terraform_data
// does in its output: a page gets to others more easily than what a terminal said.
func (s *secrets) value(v cty.Value, all bool) {
	all = all || value.Secret(v)
	v, _ = v.Unmark()
	switch {
	case v == cty.NilVal || !v.IsKnown() || v.IsNull():
	case v.Type() == cty.String:
		if text := v.AsString(); all && text != "" {
			s.texts = append(s.texts, text)
		}
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			s.value(x, all)
		}
	}
}

// cover hides what is secret in all that the page shows of a unit, in the quotes that it
// is shown in.
func (s *secrets) cover(u *planhtml.Unit) {
	if len(s.texts) == 0 {
		return
	}
	var pairs []string
	for _, text := range s.texts {
		pairs = append(pairs, strconv.Quote(text), value.SecretText)
	}
	hide := strings.NewReplacer(pairs...)
	for i, c := range u.Changes {
		u.Changes[i].Text = hide.Replace(c.Text)
	}
	for i, m := range u.Messages {
		u.Messages[i] = hide.Replace(m)
	}
	for i, in := range u.Inputs {
		u.Inputs[i].Value = hide.Replace(in.Value)
	}
}

func pageChanges(pieces []view.Piece) []planhtml.Change {
	var out []planhtml.Change
	for _, p := range pieces {
		kind, op := planhtml.Resource, p.Op.String()
		switch p.Kind {
		case view.DriftPiece:
			kind, op = planhtml.Drift, ""
		case view.OutputPiece:
			kind, op = planhtml.Output, ""
		}
		out = append(out, planhtml.Change{Kind: kind, Op: op, Text: p.Text})
	}
	return out
}
