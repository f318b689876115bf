// Package planpage creates the HTML page that shows the plan of an estate, unit by unit during
// a run, or from a saved plan.
//
// Main types: Pager, for a run, and Saved, for a saved plan. Both create a planhtml.Page. The
// one rule: the page never contains a sensitive value.
package planpage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/planhtml"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # The page of --html
//
// The content of the page for a unit is collected when the unit ends, while the origins of its
// inputs are known. The page never contains sensitive values, even with -show-sensitive. It
// contains source ranges but no source text, since a line may contain other values.

// A Pager creates the page of a run.
type Pager struct {
	draft
	Call *command.Call
	File string           // path of --html; "" for no page
	To   request.Markdown // the file of -markdown
	Kept *savedplan.Files // saves the content of the page with each unit's plan
	// Found contains the messages of the search for units.
	Found diag.List
	Rules
}

// Rules are the failures of rules as messages: All of them, and those Of each unit by its name. All also
// contains the other messages about the whole run. Set contains the text of the files.
type Rules struct {
	Set *source.Set
	All diag.List
	Of  map[string]diag.List
}

// Writes reports whether the run writes a page or Markdown.
func (p *Pager) Writes() bool { return p.File != "" || p.To.File != "" }

// Note stores the content of the page for a unit, once, and saves it with the plan.
func (p *Pager) Note(ctx context.Context, e *estate.Estate, res *estate.Result) {
	if !p.Kept.Wanted() && !p.Writes() || p.has(res.Unit.Name) {
		return
	}
	u, secret := p.unit(ctx, e, res)
	if p.Kept.Wanted() {
		p.Kept.Note(res.Unit.Name, savedplan.PageNote, savedUnit{Summary: u.Summary, Messages: u.Messages, Inputs: u.Inputs, Outside: p.outside(e, res.Unit), Secret: secret})
	}
	p.Put(&u, p.Writes())
}

// Draw writes the files of --html and -markdown.
func (p *Pager) Draw(e *estate.Estate, about estate.SavedRun, results []*estate.Result) diag.List {
	if !p.Writes() || results == nil {
		return nil
	}
	units := make([]planhtml.Box, len(results))
	for i, res := range results {
		units[i] = p.units[res.Unit.Name]
	}
	page, links := pageOf(about, units)
	for i, res := range results {
		links.add(i, needNames(res.Unit), p.outside(e, res.Unit))
	}
	var ds diag.List
	if p.To.File != "" {
		page.Messages = messages(p.Call, e.Sources(), p.Call.Report.Filter(p.Found))
		page.Messages = append(page.Messages, messages(p.Call, p.Rules.Set, p.Call.Report.Filter(p.All))...)
		ds = flags.WriteMarkdown(p.Call, p.To, Markdown(page, about.Mode()))
	}
	if p.File != "" {
		for i := range page.Units {
			u := &page.Units[i]
			u.Messages = append(slices.Clip(u.Messages), messages(p.Call, p.Rules.Set, p.Call.Report.Filter(p.Of[u.Name]))...)
		}
		ds = append(Write(p.Call, p.File, page), ds...)
	}
	return ds
}

// pageOf returns the page of units, without their dependencies.
func pageOf(about estate.SavedRun, units []planhtml.Box) (*planhtml.Page, *pageLinks) {
	p := &planhtml.Page{
		Dir: about.Dir, Estate: true, Causes: about.Causes,
		Title: fmt.Sprintf("Plan of %d units in %s", len(units), about.Dir), Command: "run --all plan",
		Made: about.Time.UTC().Format(time.RFC3339), Program: view.Product + " " + release.Version, Units: units,
	}
	if len(about.Flags) > 0 {
		p.Command += " " + strings.Join(about.Flags, " ")
	}
	p.From = about.Branch
	if revision := about.Revision; revision != "" {
		if p.From != "" {
			p.From += " at "
		}
		p.From += revision
	}
	links := &pageLinks{page: p, at: map[string]int{}}
	for i := range units {
		links.at[units[i].Name] = i
	}
	return p, links
}

// pageLinks adds the dependencies of units to a page.
type pageLinks struct {
	page *planhtml.Page
	at   map[string]int
}

// add adds the dependencies of a unit. It ignores units that the page does not contain.
// Dependencies outside of the estate become units of the page.
func (l *pageLinks) add(i int, needs, outside []string) {
	p := l.page
	for _, name := range needs {
		if j, ok := l.at[name]; ok {
			p.Units[i].Needs = append(p.Units[i].Needs, j)
		}
	}
	for _, name := range outside {
		if _, ok := l.at[name]; !ok {
			l.at[name] = len(p.Units)
			p.Units = append(p.Units, planhtml.Box{Name: name, State: planhtml.Outside, Summary: "outside of the estate"})
		}
		p.Units[i].Needs = append(p.Units[i].Needs, l.at[name])
	}
}

func needNames(u *estate.Unit) []string {
	var out []string
	for _, n := range u.Needs {
		out = append(out, n.Name)
	}
	return out
}

// outside returns the names of a unit's dependencies outside of the estate.
func (p *Pager) outside(e *estate.Estate, u *estate.Unit) []string {
	var out []string
	for _, id := range u.External {
		out = append(out, p.Call.Report.Redactor.Text(e.Found.Name(id)))
	}
	return out
}

// Write writes a page to a file, and reports that.
func Write(c *command.Call, name string, p *planhtml.Page) diag.List {
	ds := WriteFile(c, name, p)
	if !ds.HasErrors() && c.Report.Human != nil {
		c.Report.Human.Say("\nWrote the page: " + name + "\n")
	}
	return ds
}

// WriteFile writes a page to a file.
func WriteFile(c *command.Call, name string, p *planhtml.Page) diag.List {
	if err := atomicfile.WriteFrom(c.Path(name), 0o600, func(w io.Writer) error { return planhtml.Write(w, p) }); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the page", "The page of --html could not be written: %s.", err)
	}
	return nil
}

// unit returns the content of the page for a unit, without its dependencies, and the names of
// its secret variables.
func (p *Pager) unit(ctx context.Context, e *estate.Estate, res *estate.Result) (planhtml.Box, []string) {
	out := pageResult(res)
	inUnit, inModule := unitview.SplitByOrigin(res, p.Call.Report.Filter(res.Diags))
	out.Messages = append(messages(p.Call, e.Sources(), inUnit), messages(p.Call, res.Set, inModule)...)
	planned := p.planned(res.Unit.Name)
	hide := planned.hide
	var names []string
	if hide != nil {
		names = hide.names()
	} else {
		hide = &secrets{}
		if all := e.Declared(ctx, res.Unit); all != nil {
			hide = newSecrets(all, nil)
		}
	}
	if res.Status == estate.Succeeded || res.Status == estate.Failed {
		out.Inputs = p.inputs(ctx, e, res.Unit, hide)
	}
	out.Changes, out.Origins = planned.changes, planned.origins
	hide.cover(&out)
	return out, names
}

// savedUnit is the content of the page for a unit that the rest of a saved plan does not
// contain.
type savedUnit struct {
	Summary  string             `json:"summary,omitempty"`
	Messages []planhtml.Message `json:"messages,omitempty"`
	Inputs   []planhtml.Input   `json:"inputs,omitempty"`
	Outside  []string           `json:"outside,omitempty"` // dependencies outside of the estate
	Secret   []string           `json:"secret,omitempty"`  // secret variables of the module
}

// Saved returns the page of a saved plan. It is equal to the page written when the plan was
// made.
func Saved(p *estate.SavedPlan, results []*estate.Result) (*planhtml.Page, error) {
	var d draft
	units, outside := make([]planhtml.Box, len(p.Units)), make([][]string, len(p.Units))
	for i, u := range p.Units {
		var n savedUnit
		if err := savedplan.ReadNote(u, savedplan.PageNote, &n); err != nil {
			return nil, err
		}
		x := pageResult(results[i])
		x.Summary, x.Messages, x.Inputs, outside[i] = n.Summary, n.Messages, n.Inputs, n.Outside
		if err := savedplan.ReadNote(u, savedplan.OriginNote, &x.Origins); err != nil {
			return nil, err
		}
		if u.Planned {
			if err := savedChanges(u, &x, n.Secret); err != nil {
				return nil, err
			}
		}
		d.share(&x)
		units[i] = x
	}
	page, links := pageOf(p.About, units)
	for i, u := range p.Units {
		links.add(i, u.Needs, outside[i])
	}
	return page, nil
}

// savedChanges adds the changes of a saved plan to the content of the page for a unit.
func savedChanges(u *estate.SavedUnit, x *planhtml.Box, secret []string) error {
	var pieces []view.Piece
	if err := savedplan.ReadNote(u, savedplan.TextNote, &pieces); err != nil {
		return err
	}
	p, err := u.Plan()
	if err != nil {
		return err
	}
	hide := &secrets{of: map[string]bool{}}
	for _, name := range secret {
		hide.of[name] = true
	}
	if p != nil {
		hide.plan(p)
	}
	x.Changes = pageChanges(pieces)
	hide.cover(x)
	return nil
}

// pageResult returns the content of the page that follows from a unit's result alone.
func pageResult(res *estate.Result) planhtml.Box {
	n := res.Counts
	out := planhtml.Box{
		Name: res.Unit.Name, State: planhtml.Planned, Summary: unitview.Sentence(estate.Plan, res, false),
		Counts: n,
	}
	out.Summary = strings.Join(append([]string{out.Summary}, res.Reads.Lines()...), "; ")
	switch res.Status {
	case estate.Failed:
		out.State = planhtml.Failed
	case estate.EarlyExit:
		out.State = planhtml.NotRun
	case estate.Excluded:
		out.State, out.Summary = planhtml.Excluded, strings.TrimSuffix("excluded: "+res.Unit.Excluded, ": ")
	}
	for _, d := range res.Deferred {
		w := planhtml.Wait{What: d.Address, Why: plan.DeferralText("", d.Reason, nil, d.Objects)}
		if d.At != nil && d.Address != "" {
			w.At = placeText(d.At.Filename, d.At.Start.Line)
		}
		for _, x := range d.Waits {
			w.For = append(w.For, planhtml.Source{Unit: x.Unit, Ref: x.Ref, Input: x.Input, At: x.Where})
		}
		out.Waits = append(out.Waits, w)
	}
	return out
}

func placeText(file string, line int) string {
	return fmt.Sprintf("%s:%d", filepath.ToSlash(file), line)
}

// messages returns messages as printed on a terminal.
func messages(c *command.Call, set *source.Set, ds diag.List) []planhtml.Message {
	var out []planhtml.Message
	p := c.Report.Plain(set)
	for _, m := range ds {
		var b strings.Builder
		_ = p.Print(&b, diag.List{m}) // a write to a Builder cannot fail
		out = append(out, planhtml.Message{Error: m.Severity == diag.Error, Text: b.String()})
	}
	return out
}

// inputs returns the inputs of a unit with their origins. It omits values if the module's
// variables are unknown, since they might be secret.
func (p *Pager) inputs(ctx context.Context, e *estate.Estate, u *estate.Unit, hide *secrets) []planhtml.Input {
	var wanted func(string) bool
	if hide.of != nil {
		wanted = func(name string) bool { _, ok := hide.of[name]; return ok }
	}
	var out []planhtml.Input
	for _, x := range inputs.Origins(e.Task(ctx), u.Unit, wanted) {
		in := planhtml.Input{Name: x.Name}
		hide.value(x.Value, hide.of[x.Of])
		switch {
		case hide.of[x.Of]:
			in.Value = value.SecretText
		case hide.of != nil && x.Value != cty.NilVal:
			in.Value = shortValue(x.Value)
		}
		step := func(text string, at *explanation.SourceLine, replaced bool) {
			if at != nil && at.File != "" {
				in.Steps = append(in.Steps, planhtml.Step{
					Text: p.Call.Report.Redactor.Text(text), File: sys.RelativeTo(p.Call.Dir, at.File), Line: at.Line, Column: at.Column, Role: roleOf(e, u, at.File, at.Of), Replaced: replaced,
				})
			}
		}
		for _, st := range x.Steps {
			step(st.Text, st.At, false)
			for i := range st.Replaces {
				step("replaced", &st.Replaces[i], true)
			}
			for i := range st.With {
				step("merged with this", &st.With[i], false)
			}
		}
		out = append(out, in)
	}
	return out
}

// lineOf returns the line that contains the byte at an offset, without white space around it.
func lineOf(text []byte, at int) string {
	if at > len(text) {
		return ""
	}
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[from:], []byte("\n"))
	return strings.TrimSpace(string(line))
}

// longestValue is the number of characters of an input's value that the page shows.
const longestValue = 400

func shortValue(v cty.Value) string {
	if value.ContainsSecret(v) && !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return value.SecretText
	}
	text := []rune(view.Value(value.Redact(v)))
	if len(text) > longestValue {
		return string(text[:longestValue]) + "…"
	}
	return string(text)
}

// roleOf returns the role of a file for a unit: the unit's own file, or one that a block
// includes.
func roleOf(e *estate.Estate, u *estate.Unit, file string, l *source.Layer) string {
	if l != nil && l.Via != nil {
		if f := e.Sources().File(l.Via.Filename); f != nil {
			return strings.TrimSpace(strings.TrimRight(lineOf(f.Bytes, l.Via.Start.Byte), "{ }"))
		}
	}
	switch {
	case l != nil && l.Kind != source.Base:
		return l.String()
	case file == u.Path:
		return "unit file"
	}
	return ""
}

// NoPage returns the error for --html if there is no page to write.
func NoPage() error {
	return errors.New("--html goes with run --all plan, and with show of a saved plan of all units")
}
