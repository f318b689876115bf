package check

import (
	"fmt"
	"slices"
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

// A block is printed as one message. It contains one finding, or all findings of one rule.
type block []*group

// maxFindings is the number of findings that are listed in one block.
const maxFindings = 20

// blocks returns the blocks to print. The findings of a rule with the same verdict are one block;
// each finding of a lint has its own, with the lines of the file.
func (v *result) blocks() (out []block) {
	type key struct {
		rule    string
		verdict finding.Verdict
	}
	at := map[key]int{}
	for _, g := range v.groups() {
		k := key{g.Rule, g.Verdict}
		i, again := at[k]
		if g.RuleAt.Filename != "" && again {
			out[i] = append(out[i], g)
			continue
		}
		at[k] = len(out)
		out = append(out, block{g})
	}
	return out
}

// message returns a block as a message. label is the word that replaces "Warning" in its text;
// "" means none.
func (b block) message() (m *diag.Message, label string) {
	g := b[0]
	m = &diag.Message{Code: diag.CodeCLIFinding, Severity: diag.Warning, Summary: g.Rule, Alone: true}
	switch {
	case g.Verdict == finding.Unknown:
		label = "Not yet known"
	case g.Level == finding.Error:
		m.Severity = diag.Error
	case g.Level == finding.Advice:
		label = "Advice"
	}
	if len(b) > 1 {
		m.At, m.Detail = &g.RuleAt, b.list()
		return m, label
	}
	m.Detail = g.Message
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
	if in := g.inUnits(); in != "" {
		m.Detail += "\n\nIn " + in + "."
	}
	return m, label
}

// list returns the findings of a block as a list. A message that all have in common is before it.
func (b block) list() string {
	common := !slices.ContainsFunc(b, func(g *group) bool { return g.Message != b[0].Message })
	var out strings.Builder
	if common {
		out.WriteString(b[0].Message + "\n\n")
	}
	for _, g := range b[:min(len(b), maxFindings)] {
		out.WriteString("  - " + g.Address)
		if at := g.At(); at.Filename != "" && at != g.RuleAt {
			fmt.Fprintf(&out, " (%s:%d)", at.Filename, at.Start.Line)
		}
		if in := g.inUnits(); in != "" {
			out.WriteString(" in " + in)
		}
		if !common {
			out.WriteString(": " + strings.ReplaceAll(g.Message, "\n", "\n    "))
		}
		out.WriteString("\n")
	}
	if n := len(b) - maxFindings; n > 0 {
		fmt.Fprintf(&out, "  - and %d more\n", n)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// inUnits returns the units of a finding, "" if there are none to name.
func (g *group) inUnits() string {
	n := len(g.units)
	list := strings.Join(g.units[:min(n, maxUnits)], ", ")
	if n > maxUnits {
		list += fmt.Sprintf(" and %d more", n-maxUnits)
	}
	return list
}

// secret reports whether the line of a finding must not be shown.
func (g *group) secret() bool { return g.Rule == lint.PlaintextSecret || g.Rule == lint.SecretToken }

// text returns a block for people.
func (b block) text(p, hidden *diag.Printer) string {
	m, label := b.message()
	if b[0].secret() {
		p = hidden
	}
	text := p.Text(m)
	if label != "" {
		text = strings.Replace(text, "Warning: ", label+": ", 1)
	}
	return text
}

// where returns the place of a finding, or the number of findings, in parentheses.
func (b block) where() string {
	if len(b) > 1 {
		return fmt.Sprintf(" (%d findings)", len(b))
	}
	if at := b[0].At(); at.Filename != "" {
		return fmt.Sprintf(" (%s:%d)", at.Filename, at.Start.Line)
	}
	return ""
}

// print writes the findings for people.
func (v *result) print() {
	out := v.c.Report
	p, hidden := out.Printer(v.set), out.Printer(v.hidden)
	all := v.blocks()
	for _, b := range all {
		out.Copy(b.text(p, hidden))
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
	dir := v.c.DirectoryName()
	d := &markdown.Document{
		Mark: "terrace: check of " + dir, Title: "Check passed in", Subjects: []string{dir}, Lines: []string{v.summary()},
		More: "The output of `check -json` contains everything.",
	}
	if n := v.Count(finding.Error); n > 0 {
		d.Title = "Check failed with " + view.Numbered(n, "error") + " in"
	}
	p, hidden := v.c.Report.Plain(v.set), v.c.Report.Plain(v.hidden)
	for _, b := range v.blocks() {
		first, rest, _ := strings.Cut(strings.TrimSpace(b.text(p, hidden)), "\n")
		first += b.where() // the texts of the first messages only are shown
		d.Messages = append(d.Messages, markdown.Message{Error: b[0].Level == finding.Error && b[0].Verdict == finding.Fail, Title: first, Text: rest})
	}
	return d
}
