package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/source"
)

// A Printer writes messages for people. The zero value writes plain text without snippets, 78
// columns wide. It is safe for concurrent use if the writers are.
//
// The form is that of OpenTofu 1.12 with additional notes.
type Printer struct {
	Set   *source.Set // source of snippets; nil means no snippets
	Color bool        // draw a frame and use colors, for a terminal
	Width int         // columns of the terminal; 0 if the output is not a terminal

	CompactWarnings     bool                     // if there are no errors, only show summaries and positions of warnings
	ConsolidateWarnings bool                     // of warnings with equal texts only show the first, with the number of others
	ConsolidateErrors   bool                     // the same for errors
	Difference          func(*Difference) string // the text of a difference; nil omits differences
	Codes               bool                     // the last line of a message is its code
	Names               Names                    // the program's names in messages
	Relative            func(text string) string // shortens the paths in a text; nil keeps them

	parsed parsed
}

const plainWidth = 78

// Print writes all messages. Warnings come first, so that errors are nearest to the prompt.
func (p *Printer) Print(w io.Writer, ds List) error { return p.Split(w, w, ds) }

// Split writes warnings to one writer and errors to another.
func (p *Printer) Split(out, errs io.Writer, ds List) error {
	if len(ds) == 0 {
		return nil
	}
	if w := p.warnings(ds); len(w) > 0 {
		if _, err := out.Write(w); err != nil {
			return err
		}
	}
	_, err := errs.Write(p.errors(ds))
	return err
}

func (p *Printer) warnings(ds List) []byte {
	groups := group(ds.Warnings(), p.ConsolidateWarnings)
	var b bytes.Buffer
	if p.CompactWarnings && !ds.HasErrors() && len(groups) > 0 {
		p.compact(&b, groups)
		return b.Bytes()
	}
	for _, g := range groups {
		b.WriteString(p.message(g))
	}
	return b.Bytes()
}

func (p *Printer) errors(ds List) []byte {
	var b bytes.Buffer
	for _, g := range group(ds.Errors(), p.ConsolidateErrors) {
		b.WriteString(p.message(g))
	}
	return b.Bytes()
}

// Text returns one message in the form of Print.
func (p *Printer) Text(m *Message) string { return p.message(similar{first: m}) }

// similar is a group of messages that are shown as one.
type similar struct {
	first   *Message
	others  int // with the same summary and detail
	further int // with the same summary and other details
}

// maxPerSummary is the number of groups with the same summary that are shown. An estate can have
// thousands of warnings that differ only in a path.
const maxPerSummary = 10

// group groups messages with equal summaries and details, in the order of the first of each.
// Messages without a source range are not grouped, because the hint about other positions would
// be wrong. Of groups with equal summaries it only returns the first maxPerSummary.
func group(ds List, consolidate bool) []similar {
	var out []similar
	type text struct{ summary, detail string }
	index := map[text]int{}
	shown := map[string][]int{} // the groups of a summary
	for _, m := range ds {
		if consolidate && m.At != nil && !m.Alone {
			key := text{m.Summary, m.Detail}
			if i, ok := index[key]; ok {
				out[i].others++
				continue
			}
			if groups := shown[m.Summary]; len(groups) == maxPerSummary {
				out[groups[maxPerSummary-1]].further++
				continue
			}
			index[key] = len(out)
			shown[m.Summary] = append(shown[m.Summary], len(out))
		}
		out = append(out, similar{first: m})
	}
	return out
}

func (p *Printer) compact(b *bytes.Buffer, groups []similar) {
	fmt.Fprintf(b, "\n%s\n\n", p.paint(bold+yellow, "Warnings:"))
	for _, g := range groups {
		fmt.Fprintf(b, "- %s\n", clean(p.relative(p.Names.in(g.first).Text(g.first.Summary))))
		if at := g.first.At; at != nil {
			fmt.Fprintf(b, "  on %s line %d", clean(p.relative(at.Filename)), at.Start.Line)
			if n := g.others + g.further; n > 0 {
				fmt.Fprintf(b, " (and %d more)", n)
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(b, "\nTo see the full warning notes, run %s without -compact-warnings.\n", p.Names.Product())
}

// message returns a message that represents a group, in a frame if colors are enabled.
func (p *Printer) message(g similar) string {
	m := g.first
	color, label := red, "Error: "
	if m.Severity == Warning {
		color, label = yellow, "Warning: "
	}
	limit, names := p.limit(), p.Names.in(m)
	var b strings.Builder
	head := label + clean(p.relative(names.Text(source.HideCredentials(m.Summary))))
	if p.Width > 0 { // other output is searched for the code
		head = wrap.Lines(head, limit)
	}
	if p.Color {
		head = p.paint(bold+color, label) + p.paint(bold, strings.TrimPrefix(head, label))
	}
	b.WriteString(head + "\n\n")
	p.place(&b, m)
	if m.Detail != "" {
		b.WriteString(wrap.Lines(clean(p.relative(names.Text(source.HideCredentials(m.Detail)))), limit) + "\n")
	}
	p.notes(&b, m.notes(p.Set), names)
	if g.others == 1 {
		fmt.Fprintf(&b, "\n(and one more similar %s elsewhere)\n", m.Severity)
	} else if g.others > 1 {
		fmt.Fprintf(&b, "\n(and %d more similar %ss elsewhere)\n", g.others, m.Severity)
	}
	if g.further == 1 {
		fmt.Fprintf(&b, "\n(and one more %s with this summary and other details)\n", m.Severity)
	} else if g.further > 1 {
		fmt.Fprintf(&b, "\n(and %d more %ss with this summary and other details)\n", g.further, m.Severity)
	}
	if p.Codes {
		if code := m.CodeName(); code != "" {
			fmt.Fprintf(&b, "\nCode: %s\n", code)
		}
	}
	text := strings.TrimRight(b.String(), "\n") + "\n"
	if !p.Color {
		return "\n" + text
	}
	return p.frame(text, color)
}

// relative returns a text with the paths that are shown.
func (p *Printer) relative(text string) string {
	if p.Relative == nil {
		return text
	}
	return p.Relative(text)
}

// limit returns the maximum length of wrapped lines.
func (p *Printer) limit() int {
	width := p.Width
	if width == 0 {
		width = plainWidth
	}
	if p.Color {
		width -= 2 // width of the frame
	}
	return max(width-1, 20)
}

// place writes the object, file and line of the message, and the snippet.
func (p *Printer) place(b *strings.Builder, m *Message) {
	if m.Address != "" {
		fmt.Fprintf(b, "  with %s,\n", clean(m.Address))
	}
	if m.At != nil {
		s := p.parsed.snippet(p.Set, m.At, m.Context, m.Address != "")
		where := ""
		if s != nil && s.context != "" {
			where = ", in " + clean(s.context)
		}
		fmt.Fprintf(b, "  on %s line %d%s:\n", clean(p.relative(m.At.Filename)), m.At.Start.Line, where)
		p.source(b, s)
		p.values(b, m, s != nil && (s.hidden || s.bare))
		p.difference(b, m.Diff)
	}
	if m.Address != "" || m.At != nil {
		b.WriteByte('\n')
	}
}

// source writes the lines of a snippet with line numbers.
func (p *Printer) source(b *strings.Builder, s *snippet) {
	if s == nil {
		b.WriteString("  (source code not available)\n")
		return
	}
	if s.hidden {
		b.WriteString("  (not shown, since it may hold secrets)\n")
		return
	}
	offset := 0
	for i, line := range s.lines {
		start, end := min(max(s.start-offset, 0), len(line)), min(max(s.end-offset, 0), len(line))
		before, mid, after := clean(line[:start]), clean(line[start:end]), clean(line[end:])
		if mid != "" {
			mid = p.paint(underline, mid)
		}
		fmt.Fprintf(b, "%4d: %s%s%s\n", s.first+i, before, mid, after)
		offset += len(line) + 1
	}
}

// values writes the known values in the expression. hidden omits them if the expression itself
// is hidden.
func (p *Printer) values(b *strings.Builder, m *Message, hidden bool) {
	lines := m.Values
	if hidden {
		lines = nil
	}
	if len(lines) == 0 && m.Call == nil {
		return
	}
	fmt.Fprintf(b, "    %s\n", p.paint(gray, "├────────────────"))
	bar := "    " + p.paint(gray, "│") + " "
	if m.Call != nil {
		b.WriteString(bar + "while calling " + p.paint(bold, clean(m.Call.Name)) + m.Call.parameters() + "\n")
	}
	for _, line := range lines {
		name, statement := splitValue(clean(line))
		b.WriteString(bar + p.paint(bold, name) + statement + "\n")
	}
}

// difference writes the differences between two values that should be equal.
func (p *Printer) difference(b *strings.Builder, d *Difference) {
	if d == nil || p.Difference == nil {
		return
	}
	bar := "    " + p.paint(gray, "│") + " "
	fmt.Fprintf(b, "    %s\n%sDiff:\n", p.paint(gray, "├────────────────"), bar)
	for line := range strings.Lines(p.Difference(d)) {
		b.WriteString(bar + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// splitValue splits `var.x["a b"] is 1` before the space that ends the name.
func splitValue(line string) (name, statement string) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted:
			return line[:i], line[i:]
		}
	}
	return line, ""
}

// Limits of notes: a message may have thousands, for example about a long cycle.
const (
	notesWithSource = 12
	notesInAll      = 60
)

// notes writes each note with its position.
func (p *Printer) notes(b *strings.Builder, notes []Note, names Names) {
	for i, n := range notes {
		if i == notesInAll {
			fmt.Fprintf(b, "\n  (and %d more)\n", len(notes)-i)
			return
		}
		text := clean(p.relative(names.Text(n.Text)))
		if n.At == nil {
			b.WriteString("\n" + wrap.Lines(text, p.limit()) + "\n")
			continue
		}
		if i <= notesWithSource {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "  %s, on %s line %d", text, clean(p.relative(n.At.Filename)), n.At.Start.Line)
		if s := p.parsed.snippet(p.Set, n.At, nil, false); s != nil && i < notesWithSource {
			b.WriteString(":\n")
			p.source(b, s)
		} else {
			b.WriteByte('\n')
		}
	}
}

// frame adds the left border of a message.
func (p *Printer) frame(text, color string) string {
	var b strings.Builder
	b.WriteString(p.paint(color, "╷") + "\n")
	rule := p.paint(color, "│") + " "
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString(rule + line + "\n")
	}
	b.WriteString(p.paint(color, "╵") + "\n")
	return b.String()
}

const (
	bold      = "\x1b[1m"
	underline = "\x1b[4m"
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
	gray      = "\x1b[90m"
	reset     = "\x1b[0m"
)

// paint applies a style to each line of a text, since the border is between lines.
func (p *Printer) paint(style, text string) string {
	if !p.Color || text == "" {
		return text
	}
	return style + strings.ReplaceAll(text, "\n", reset+"\n"+style) + reset
}
