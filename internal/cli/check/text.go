package check

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/markdown"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/rules/lint"
	"github.com/terrace-iac/terrace/source"
)

// maxUnits is the number of units that are listed below one finding.
const maxUnits = 20

// A group is the findings of several units that are equal otherwise.
type group struct {
	*finding.Finding
	units []string
}

// groups returns the findings to show. Those that differ only in their unit are one group.
func (v *result) groups() (out []*group) {
	type key struct {
		rule, message string
		at            source.Range
		verdict       finding.Verdict
		waived        bool
	}
	by := map[key]*group{}
	for _, f := range v.Findings {
		if f.Verdict == finding.Pass || f.Waived != "" {
			continue
		}
		k := key{f.Rule, f.Message, f.At(), f.Verdict, f.Waived != ""}
		if by[k] == nil {
			by[k] = &group{Finding: f}
			out = append(out, by[k])
		}
		if f.Unit != "." && f.Unit != "" && !strings.HasPrefix(f.At().Filename, f.Unit+"/") {
			by[k].units = append(by[k].units, f.Unit)
		}
	}
	return out
}

// message returns a finding as a message. label is the word that replaces "Warning" in its text;
// "" means none.
func (g *group) message() (m *diag.Message, label string) {
	m = &diag.Message{Code: diag.CodeCLIFinding, Severity: diag.Warning, Summary: g.Rule, Detail: g.Message, Alone: true}
	switch {
	case g.Verdict == finding.Unknown:
		label = "Not yet known"
	case g.Level == finding.Error:
		m.Severity = diag.Error
	case g.Level == finding.Advice:
		label = "Advice"
	}
	at := g.At()
	if at.Filename != "" {
		m.At = &at
	}
	if g.RuleAt.Filename != "" && g.RuleAt != at {
		m.Notes = append(m.Notes, diag.Note{Text: "the rule", At: &g.RuleAt})
	}
	if g.Address != "" && g.RuleAt.Filename != "" {
		m.Address = g.Address
	}
	if n := len(g.units); n > 0 {
		list := strings.Join(g.units[:min(n, maxUnits)], ", ")
		if n > maxUnits {
			list += fmt.Sprintf(" and %d more", n-maxUnits)
		}
		m.Detail += fmt.Sprintf("\n\nIn %s.", list)
	}
	return m, label
}

// secret reports whether the line of a finding must not be shown.
func (g *group) secret() bool { return g.Rule == lint.PlaintextSecret || g.Rule == lint.SecretToken }

// text returns a finding for people.
func (g *group) text(p, hidden *diag.Printer) string {
	m, label := g.message()
	if g.secret() {
		p = hidden
	}
	text := p.Text(m)
	if label != "" {
		text = strings.Replace(text, "Warning: ", label+": ", 1)
	}
	return text
}

// print writes the findings for people.
func (v *result) print() {
	out := v.c.Report
	p, hidden := out.Printer(v.set), out.Printer(nil)
	all := v.groups()
	for _, g := range all {
		out.Copy(g.text(p, hidden))
	}
	if len(all) == 0 {
		out.Human.Good("Success!")
		out.Say(" " + v.summary() + "\n")
		return
	}
	out.Say("\n" + v.summary() + "\n")
}

// summary returns the numbers of findings as a sentence.
func (v *result) summary() string {
	var parts []string
	for _, x := range []struct {
		n    int
		noun string
	}{{v.Count(finding.Error), "error"}, {v.Count(finding.Warning), "warning"}} {
		if x.n > 0 {
			parts = append(parts, view.Numbered(x.n, x.noun))
		}
	}
	if n := v.Count(finding.Advice); n > 0 {
		parts = append(parts, fmt.Sprintf("%d advice", n))
	}
	text := "No findings."
	if len(parts) > 0 {
		text = "Findings: " + strings.Join(parts, ", ") + "."
	}
	unknown, waived := v.Undecided()
	if unknown > 0 {
		text += fmt.Sprintf(" Not yet known: %d.", unknown)
	}
	if waived > 0 {
		text += fmt.Sprintf(" Exceptions: %d.", waived)
	}
	if v.Known > 0 {
		text += fmt.Sprintf(" In the baseline: %d.", v.Known)
	}
	return text
}

// document returns the Markdown of the findings.
func (v *result) document() *markdown.Document {
	dir := filepath.Base(v.c.Dir)
	d := &markdown.Document{
		Mark: "terrace: check of " + dir, Title: "Check passed in", Subjects: []string{dir}, Lines: []string{v.summary()},
		More: "The output of the command contains everything.",
	}
	if n := v.Count(finding.Error); n > 0 {
		d.Title = "Check failed with " + view.Numbered(n, "error") + " in"
	}
	p, hidden := &diag.Printer{Set: v.set}, &diag.Printer{}
	for _, g := range v.groups() {
		first, rest, _ := strings.Cut(strings.TrimSpace(g.text(p, hidden)), "\n")
		d.Messages = append(d.Messages, markdown.Message{Error: g.Level == finding.Error && g.Verdict == finding.Fail, Title: first, Text: rest})
	}
	return d
}
