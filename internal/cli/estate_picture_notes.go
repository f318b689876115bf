package cli

import (
	"strconv"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/picture"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
)

// pageNote is what is kept of a unit's plan for the page.
type pageNote struct {
	changes []picture.Change
	secret  map[string]bool // the variables of its module, and whether they are secret
	hide    []string        // texts that are secret
}

// pageNotes are those of all units, which may be put there concurrently.
type pageNotes struct {
	mu    sync.Mutex
	of    map[string]*pageNote
	texts map[string]string // of changes, each once
}

// noteForPage keeps a plan while its provider schemas can be read.
func (r *estateRun) noteForPage(u *estate.Unit, e *engine.Engine, p *plan.Plan, sc *schemas) {
	if r.f.html == "" && !r.saves() {
		return
	}
	note := &pageNote{secret: secretVariables(e.Root().Variables)}
	note.keepPlan(p)
	if p.HasChanges() && r.f.html != "" {
		note.changes = pageChanges(view.Pieces(view.Style{}, p, sc, false))
	}
	r.page.put(u.Name, note)
}

// put keeps the note of a unit, and texts that several have once.
func (n *pageNotes) put(unit string, note *pageNote) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of, n.texts = map[string]*pageNote{}, map[string]string{}
	}
	for i, c := range note.changes {
		if have, ok := n.texts[c.Text]; ok {
			note.changes[i].Text = have
		} else {
			n.texts[c.Text] = c.Text
		}
	}
	n.of[unit] = note
}

func secretVariables(all map[string]*config.Variable) map[string]bool {
	out := map[string]bool{}
	for name, v := range all {
		out[name] = v.Sensitive || v.Ephemeral
	}
	return out
}

// keepPlan notes what is secret in a plan.
func (n *pageNote) keepPlan(p *plan.Plan) {
	for name, v := range p.Variables {
		n.keepSecret(v, n.secret[name])
	}
	at := func(v cty.Value, paths []cty.Path) {
		for _, path := range paths {
			if v == cty.NilVal || v.IsNull() {
				return
			}
			if part, err := path.Apply(v); err == nil {
				n.keepSecret(part, true)
			}
		}
	}
	for _, c := range p.Changes {
		at(c.Before, c.BeforeSensitive)
		at(c.After, c.AfterSensitive)
	}
	for _, o := range p.Outputs {
		n.keepSecret(o.Before, o.BeforeSensitive)
		n.keepSecret(o.After, o.AfterSensitive)
	}
}

// keepSecret notes the texts in a value that are secret, or all of them. They are hidden
// where a provider repeats them without saying that they are secret, as terraform_data
// does in its output: a page gets to others more easily than what a terminal said.
func (n *pageNote) keepSecret(v cty.Value, all bool) {
	all = all || value.Secret(v)
	v, _ = v.Unmark()
	switch {
	case v == cty.NilVal || !v.IsKnown() || v.IsNull():
	case v.Type() == cty.String:
		if text := v.AsString(); all && text != "" {
			n.hide = append(n.hide, text)
		}
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			n.keepSecret(x, all)
		}
	}
}

// hiding replaces what is secret in the quotes that it is shown in.
func (n *pageNote) hiding() *strings.Replacer {
	var pairs []string
	for _, text := range n.hide {
		pairs = append(pairs, strconv.Quote(text), value.SecretText)
	}
	return strings.NewReplacer(pairs...)
}

func pageChanges(pieces []view.Piece) []picture.Change {
	var out []picture.Change
	for _, p := range pieces {
		kind, op := picture.Resource, p.Op.String()
		switch p.Kind {
		case view.DriftPiece:
			kind, op = picture.Drift, ""
		case view.OutputPiece:
			kind, op = picture.Output, ""
		}
		out = append(out, picture.Change{Kind: kind, Op: op, Text: p.Text})
	}
	return out
}

// cover hides what is secret in all that the page shows of a unit.
func (n *pageNote) cover(u *picture.Unit) {
	hide := n.hiding()
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
