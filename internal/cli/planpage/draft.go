package planpage

import (
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/cli/planhtml"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/plan"
)

// draft collects the content of a page, unit by unit. The zero value is empty. Its methods may
// be called concurrently.
type draft struct {
	mu    sync.Mutex
	plans map[string]draftPlan    // units that are not finished
	units map[string]planhtml.Box // finished units; empty entries if there is no page yet
	texts map[string]string       // stores texts that several units share once
}

// draftPlan is the part of a plan that the page needs.
type draftPlan struct {
	hide    *secrets
	changes []planhtml.Change
	origins []view.Origin
}

// Plan stores the changes and the secrets of a unit's plan. pieces are the changes without
// colors and secrets, and variables those of the unit's module.
func (p *Pager) Plan(unit string, variables map[string]*config.Variable, of *plan.Plan, pieces []view.Piece) {
	x := draftPlan{hide: newSecrets(variables, of), origins: view.Origins(of)}
	if p.Writes() {
		x.changes = pageChanges(pieces)
	}
	d := &p.draft
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.plans == nil {
		d.plans = map[string]draftPlan{}
	}
	d.plans[unit] = x
}

// planned returns what Plan stored for a unit, and removes it from the draft. It returns the zero
// value if there is nothing.
func (d *draft) planned(unit string) draftPlan {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.plans[unit]
	delete(d.plans, unit)
	return x
}

// Unit returns the content of the page for a finished unit.
func (d *draft) Unit(name string) (u planhtml.Box, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u, ok = d.units[name]
	return u, ok
}

func (d *draft) has(unit string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.units[unit]
	return ok
}

// Put stores a finished unit and, with draw, its content of the page.
func (d *draft) Put(u *planhtml.Box, draw bool) {
	x := planhtml.Box{}
	if draw {
		d.share(u)
		x = *u
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.units == nil {
		d.units = map[string]planhtml.Box{}
	}
	d.units[u.Name] = x
}

// share makes equal texts of all units share memory.
func (d *draft) share(u *planhtml.Box) {
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
	for i := range u.Origins {
		one(&u.Origins[i].Path)
		one(&u.Origins[i].File)
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		one(&c.Text)
		for j := range c.Causes {
			one(&c.Causes[j].Text)
		}
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
		out = append(out, planhtml.Change{Kind: kind, Op: op, Text: p.Text, Causes: slices.Clone(p.Causes)})
	}
	return out
}
