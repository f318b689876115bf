package planpage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/markdown"
	"github.com/terrace-iac/terrace/internal/cli/planhtml"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/plan"
)

// Markdown returns the document of a page.
func Markdown(p *planhtml.Page, mode plan.Mode) *markdown.Document {
	d := &markdown.Document{Mark: "terrace: plan of " + p.Dir, Subjects: []string{p.Dir}, More: "The output of the command contains everything."}
	if p.Estate {
		d.More = "`--all-changes` prints everything, and `--html` writes a page with everything."
	}
	var total plan.Counts
	drifted, changed, failed, deferred := 0, 0, 0, 0
	var units []planhtml.Box
	for _, u := range p.Units {
		if u.State == planhtml.Outside {
			continue
		}
		units = append(units, u)
		total = total.Plus(u.Counts)
		deferred += len(u.Waits)
		for _, c := range u.Changes {
			if c.Kind == planhtml.Drift {
				drifted++
			}
		}
		if u.State == planhtml.Failed {
			failed++
		}
		if changes(&u, mode) {
			changed++
		}
	}
	slices.SortStableFunc(units, func(a, b planhtml.Box) int { return cmp.Compare(a.Name, b.Name) })
	what := "Plan"
	switch {
	case mode&plan.Destroy != 0:
		what = "Destroy plan"
	case mode&plan.RefreshOnly != 0:
		what = "Drift"
		d.Mark = "terrace: drift of " + p.Dir
	}
	switch {
	case failed > 0 && len(units) == 1:
		d.Title = what + " failed"
	case failed == 0 && slices.ContainsFunc(p.Messages, func(m planhtml.Message) bool { return m.Error }):
		d.Title = what + " failed"
	case failed > 0:
		d.Title = fmt.Sprintf("%s failed in %s", what, view.Numbered(failed, "unit"))
	case changed == 0:
		d.Title = what + ": no changes"
	case mode&plan.RefreshOnly != 0 && drifted == 0:
		d.Title = what + ": only outputs changed"
	case mode&plan.RefreshOnly != 0:
		d.Title = what + ": " + view.Numbered(drifted, "change") + " outside of the configuration"
	case total == (plan.Counts{}) && onlyOutputs(units):
		d.Title = what + ": only outputs change"
	default:
		d.Title = what + ": " + strings.TrimSuffix(view.Summary(total), ".")
	}
	d.Title += " in"
	if p.Estate {
		text := fmt.Sprintf("%d of %s with changes.", changed, view.Numbered(len(units), "unit"))
		if deferred > 0 {
			text += fmt.Sprintf(" %s deferred, because something that they need is not known yet.", are(view.Numbered(deferred, "change"), deferred))
		}
		d.Lines = append(d.Lines, text)
	}
	d.Messages = allMessages(p.Messages, units, p.Estate)
	if p.Causes {
		d.Causes = causes(units, p.Estate)
	}
	if p.Estate {
		d.Table = table(units, mode)
	}
	d.Details = details(units, mode, p.Causes)
	return d
}

func are(text string, n int) string {
	if n == 1 {
		return text + " is"
	}
	return text + " are"
}

// changes reports whether a unit is listed as changed. A refresh-only plan shows the changes made
// outside, other plans what they would do.
func changes(u *planhtml.Box, mode plan.Mode) bool {
	return len(u.Waits) > 0 || slices.ContainsFunc(u.Changes, func(c planhtml.Change) bool {
		return c.Kind != planhtml.Drift || mode&plan.RefreshOnly != 0
	})
}

// onlyOutputs reports whether outputs are the only planned changes of units.
func onlyOutputs(units []planhtml.Box) bool {
	return !slices.ContainsFunc(units, func(u planhtml.Box) bool {
		return len(u.Waits) > 0 || slices.ContainsFunc(u.Changes, func(c planhtml.Change) bool {
			return c.Kind != planhtml.Drift && c.Kind != planhtml.Output
		})
	})
}

// allMessages merges the messages of units with those of the run, errors first.
func allMessages(ofRun []planhtml.Message, units []planhtml.Box, estate bool) []markdown.Message {
	at := map[planhtml.Message]int{}
	var out []markdown.Message
	for _, m := range ofRun {
		first, rest, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
		out = append(out, markdown.Message{Error: m.Error, Title: first, Text: rest})
	}
	for _, u := range units {
		for _, m := range u.Messages {
			i, ok := at[m]
			if !ok {
				i = len(out)
				at[m] = i
				first, rest, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
				out = append(out, markdown.Message{Error: m.Error, Title: first, Text: rest})
			}
			if estate {
				out[i].Of = append(out[i].Of, u.Name)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b markdown.Message) int {
		switch {
		case a.Error == b.Error:
			return 0
		case a.Error:
			return -1
		}
		return 1
	})
	return out
}

// causes merges the causes of units, those of most objects first.
func causes(units []planhtml.Box, estate bool) []markdown.Cause {
	var names []string
	of := map[string][]view.Origin{}
	for _, u := range units {
		names = append(names, u.Name)
		of[u.Name] = u.Origins
	}
	var out []markdown.Cause
	for _, g := range view.GroupCauses(names, func(unit string) []view.Origin { return of[unit] }) {
		c := markdown.Cause{What: g.Attribute, Count: g.Objects}
		if g.File != "" {
			c.Place = view.Place(g.File, g.Line, "")
		}
		if c.Was = g.Was; estate {
			c.Units = g.Units
		}
		out = append(out, c)
	}
	return out
}

func table(units []planhtml.Box, mode plan.Mode) markdown.Table {
	t := markdown.Table{Columns: []markdown.Column{{Name: "Unit"}, {Name: "Add", Right: true}, {Name: "Change", Right: true}, {Name: "Destroy", Right: true}, {Name: "Result"}}}
	number := func(n int) markdown.Cell {
		if n == 0 {
			return markdown.Cell{}
		}
		return markdown.Cell{Text: strconv.Itoa(n)}
	}
	drift := mode&plan.RefreshOnly != 0
	if drift {
		t.Columns = []markdown.Column{{Name: "Unit"}, {Name: "Objects", Right: true}, {Name: "Result"}}
	}
	for _, u := range units {
		if u.State == planhtml.Excluded || u.State == planhtml.Planned && !changes(&u, mode) {
			continue
		}
		if drift {
			n := 0
			for _, c := range u.Changes {
				if c.Kind == planhtml.Drift {
					n++
				}
			}
			t.Rows = append(t.Rows, []markdown.Cell{{Text: u.Name, Code: true}, number(n), {Text: u.Summary, Code: true}})
			continue
		}
		t.Rows = append(t.Rows, []markdown.Cell{{Text: u.Name, Code: true}, number(u.Counts.Add), number(u.Counts.Change), number(u.Counts.Destroy), {Text: u.Summary, Code: true}})
	}
	return t
}

// details returns the changes of units. Units with equal changes share a detail.
func details(units []planhtml.Box, mode plan.Mode, causes bool) []markdown.Detail {
	at := map[string]int{}
	var out []markdown.Detail
	var of [][]string
	for _, u := range units {
		var b strings.Builder
		outputs := false
		for _, c := range u.Changes {
			if c.Kind == planhtml.Drift && mode&plan.RefreshOnly == 0 {
				continue
			}
			if c.Kind == planhtml.Output && !outputs {
				outputs = true
				b.WriteString("# Changes to outputs:\n")
			}
			text := c.Text
			if causes {
				text = view.WithCauses(view.Style{}, text, c.Causes)
			}
			b.WriteString(strings.Trim(text, "\n"))
			if b.WriteString("\n"); c.Kind != planhtml.Output {
				b.WriteString("\n")
			}
		}
		for _, w := range u.Waits {
			fmt.Fprintf(&b, "# %s is deferred: %s", cmp.Or(w.What, "the unit"), w.Why)
			for i, x := range w.For {
				b.WriteString([]string{"; it waits for ", ", "}[min(i, 1)])
				fmt.Fprintf(&b, "%s of unit %s", x.Ref, x.Unit)
			}
			b.WriteString("\n")
		}
		text := strings.TrimRight(b.String(), "\n")
		if text == "" {
			continue
		}
		i, ok := at[text]
		if !ok {
			i = len(out)
			at[text] = i
			out, of = append(out, markdown.Detail{Title: u.Name, Note: u.Summary, Text: text, Diff: true}), append(of, nil)
		}
		of[i] = append(of[i], u.Name)
	}
	for i := range out {
		if n := len(of[i]); n > 1 {
			out[i].Note = fmt.Sprintf("and %s with the same changes", view.Numbered(n-1, "more unit"))
		}
	}
	return out
}

// Failed writes the file of -markdown for a run that did not begin. e may be nil.
func (p *Pager) Failed(about estate.SavedRun, e *estate.Estate, ds diag.List) diag.List {
	if p.To.File == "" || len(ds) == 0 {
		return nil
	}
	set := p.Call.Report.Set
	if e != nil {
		set = e.Sources()
	}
	d := Markdown(&planhtml.Page{Dir: about.Dir, Units: []planhtml.Box{{State: planhtml.Failed, Messages: messages(p.Call, set, p.Call.Report.Filter(ds))}}}, about.Mode())
	return flags.WriteMarkdown(p.Call, p.To, d)
}

// A Comment writes the Markdown of a plan in one directory.
type Comment struct {
	Call *command.Call
	To   request.Markdown
	Mode plan.Mode
	// Workspace is the workspace of a saved plan. "" means the selected workspace.
	Workspace string

	box  planhtml.Box
	hide *secrets
	done bool
}

// Plan adds a plan. variables are those of the root module.
func (m *Comment) Plan(p *plan.Plan, variables map[string]*config.Variable, schemas view.Schemas) {
	m.hide = newSecrets(variables, p)
	m.box.Counts, m.box.Origins = p.Counts(), view.Origins(p)
	m.box.Changes = pageChanges(view.Pieces(view.Style{Names: m.Call.Report.Names}, p, schemas, false))
	for _, d := range p.Deferred {
		m.box.Waits = append(m.box.Waits, planhtml.Wait{What: d.Addr, Why: plan.DeferralText("", d.Reason.Text(), nil, d.Objects), At: placeText(d.At.Filename, d.At.Start.Line)})
	}
	if m.box.Counts != (plan.Counts{}) {
		m.box.Summary = strings.TrimSuffix(view.Summary(m.box.Counts), ".")
	}
}

// Write writes the file of -markdown, once, with messages.
func (m *Comment) Write(ds diag.List) diag.List {
	if m.To.File == "" || m.done {
		return nil
	}
	m.done = true
	u := m.box
	workspace := m.Workspace
	if workspace == "" {
		workspace, _ = m.Call.Workspace() // the caller reports the error
	}
	u.Name, u.State = m.Call.WorkspaceName(workspace), planhtml.Planned
	if ds.HasErrors() {
		u.State = planhtml.Failed
	}
	u.Messages = messages(m.Call, m.Call.Report.Set, m.Call.Report.Filter(ds))
	if m.hide != nil {
		m.hide.cover(&u)
	}
	return flags.WriteMarkdown(m.Call, m.To, Markdown(&planhtml.Page{Dir: u.Name, Causes: len(u.Origins) > 0, Units: []planhtml.Box{u}}, m.Mode))
}
