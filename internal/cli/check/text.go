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

// Limits of the text for people. The option -all-findings lifts them.
const (
	maxUnits    = 20 // units that are listed below one finding
	maxInList   = 5  // units that are listed below each of more than maxSeparate findings
	maxFindings = 20 // findings that are listed in one block
	maxSeparate = 3  // findings of one lint that are printed separately, with the lines of the file
)

// A group is the findings of several units that are equal otherwise.
type group struct {
	*finding.Finding
	units []string
	n     int // the number of findings
}

// groups returns the findings to show. Those that differ only in their unit are one group.
func (v *result) groups() (out []*group) {
	type key struct {
		rule, message, address string
		at                     source.Range
		verdict                finding.Verdict
	}
	by := map[key]*group{}
	for _, f := range v.Findings {
		if f.Verdict == finding.Pass || f.Waived != "" {
			continue
		}
		k := key{f.Rule, f.Message, f.Address, f.At(), f.Verdict}
		if by[k] == nil {
			by[k] = &group{Finding: f}
			out = append(out, by[k])
		}
		// The address of a unit or of its dependency contains the name of the unit.
		inAddress := f.Address == f.Unit || strings.HasPrefix(f.Address, f.Unit+" -> ")
		if by[k].n++; f.Unit != "." && f.Unit != "" && !inAddress && !strings.HasPrefix(f.At().Filename, f.Unit+"/") {
			by[k].units = append(by[k].units, f.Unit)
		}
	}
	return out
}

// A block is printed as one message. It contains one group, or several groups of one rule or lint.
type block struct {
	groups []*group
	all    bool // nothing is cut
}

// blocks returns the blocks to print. The findings of a rule with the same verdict are one block. Each
// finding of a lint has its own, with the lines of the file, if they are few or all is true.
func (v *result) blocks(all bool) (out []*block) {
	type key struct {
		rule    string
		verdict finding.Verdict
	}
	groups, number := v.groups(), map[key]int{}
	for _, g := range groups {
		number[key{g.Rule, g.Verdict}]++
	}
	of := map[key]*block{}
	for _, g := range groups {
		k := key{g.Rule, g.Verdict}
		isRule := g.RuleAt.Filename != ""
		if b := of[k]; b != nil && (isRule || !all && number[k] > maxSeparate) {
			b.groups = append(b.groups, g)
			continue
		}
		of[k] = &block{[]*group{g}, all}
		out = append(out, of[k])
	}
	return out
}

// parts returns a block as blocks with at most maxFindings groups.
func (b *block) parts() (out []*block) {
	for part := range slices.Chunk(b.groups, maxFindings) {
		out = append(out, &block{part, b.all})
	}
	return out
}

// message returns a block as a message. label is the word that replaces "Warning" in its text;
// "" means none.
func (b *block) message() (m *diag.Message, label string) {
	g := b.groups[0]
	m = &diag.Message{Code: diag.CodeCLIFinding, Severity: diag.Warning, Summary: g.Rule, Alone: true}
	switch {
	case g.Verdict == finding.Unknown:
		label = "Not yet known"
	case g.Level == finding.Error:
		m.Severity = diag.Error
	case g.Level == finding.Advice:
		label = "Advice"
	}
	if len(b.groups) > 1 {
		n := 0
		for _, g := range b.groups {
			n += g.n
		}
		m.Summary += fmt.Sprintf(" (%d findings)", n)
		if g.RuleAt.Filename != "" {
			m.At = &g.RuleAt
		}
		m.Detail = b.list()
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
	if in := b.in(g); in != "" {
		m.Detail += "\n\nIn " + in + "."
	}
	return m, label
}

// list returns the findings of a block as a list. A message that several have in common is before them.
func (b *block) list() string {
	var messages []string
	by := map[string][]*group{}
	for _, g := range b.groups {
		if by[g.Message] == nil {
			messages = append(messages, g.Message)
		}
		by[g.Message] = append(by[g.Message], g)
	}
	var out strings.Builder
	left := len(b.groups)
	if !b.all {
		left = min(left, maxFindings)
	}
	hidden := len(b.groups) - left
	for _, text := range messages {
		groups := by[text]
		indent := "  "
		if len(groups) > 1 && left > 0 {
			if len(messages) == 1 {
				out.WriteString(text + "\n\n")
			} else {
				out.WriteString("  - " + strings.ReplaceAll(text, "\n", "\n    ") + "\n")
				indent = "      "
			}
		}
		for _, g := range groups[:min(left, len(groups))] {
			out.WriteString(indent + "- " + g.place())
			in := b.in(g)
			if len(g.units) == 1 {
				out.WriteString(" in " + in)
			}
			if len(groups) == 1 {
				out.WriteString(": " + strings.ReplaceAll(text, "\n", "\n"+indent+"  "))
			}
			out.WriteString("\n")
			if len(g.units) > 1 {
				out.WriteString(indent + "  in " + in + "\n")
			}
		}
		left -= min(left, len(groups))
	}
	if hidden > 0 {
		fmt.Fprintf(&out, "  - and %d more; -all-findings prints all of them\n", hidden)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// place returns the subject of a rule with the place that sets its value, or the place of a lint's finding.
func (g *group) place() string {
	at := g.At()
	file := ""
	if at.Filename != "" && at != g.RuleAt {
		file = fmt.Sprintf("%s:%d", at.Filename, at.Start.Line)
	}
	switch {
	case file == "":
		return g.Address
	case g.RuleAt.Filename == "" || g.Address == "":
		return file
	}
	return g.Address + " (" + file + ")"
}

// in returns the units of a group, "" if there are none to name.
func (b *block) in(g *group) string {
	n, most := len(g.units), maxUnits
	switch {
	case b.all:
		most = n
	case len(b.groups) > maxSeparate:
		most = maxInList
	}
	list := strings.Join(g.units[:min(n, most)], ", ")
	if n > most {
		list += fmt.Sprintf(" and %d more", n-most)
	}
	return list
}

// secret reports whether the line of a finding must not be shown.
func (g *group) secret() bool { return g.Rule == lint.PlaintextSecret || g.Rule == lint.SecretToken }

// text returns a block for people.
func (b *block) text(p, hidden *diag.Printer) string {
	m, label := b.message()
	if b.groups[0].secret() {
		p = hidden
	}
	text := p.Text(m)
	if label != "" {
		text = strings.Replace(text, "Warning: ", label+": ", 1)
	}
	return text
}

// where returns the place of a finding in parentheses.
func (b *block) where() string {
	if at := b.groups[0].At(); len(b.groups) == 1 && at.Filename != "" {
		return fmt.Sprintf(" (%s:%d)", at.Filename, at.Start.Line)
	}
	return ""
}

// print writes the findings for people.
func (v *result) print(everything bool) {
	out := v.c.Report
	p, hidden := out.Printer(v.set), out.Printer(v.hidden)
	all := v.blocks(everything)
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
	if v.Partial {
		text += " Objects in modules that are not on this machine were not checked."
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
	for _, b := range v.blocks(false) {
		for _, part := range b.parts() {
			part.all = true // the limit of the document decides what is cut
			first, rest, _ := strings.Cut(strings.TrimSpace(part.text(p, hidden)), "\n")
			first += part.where() // the texts of the first messages only are shown
			d.Messages = append(d.Messages, markdown.Message{
				Error: part.groups[0].Level == finding.Error && part.groups[0].Verdict == finding.Fail, Title: first, Text: rest, List: len(part.groups) > 1,
			})
		}
	}
	return d
}
