package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/source"
)

// A Printer writes messages for people. The zero Printer writes plain text
// without snippets, 78 columns wide. Its methods may be called concurrently, as
// far as the writers allow it.
//
// The form is the one that users of OpenTofu 1.12 know, with notes added.
type Printer struct {
	Set   *source.Set // where snippets are cut from; nil for none
	Color bool        // a frame and colors, as for a terminal
	Width int         // columns of the terminal; 0 if the text goes elsewhere

	CompactWarnings     bool                     // only summaries and places of warnings, if there are no errors
	ConsolidateWarnings bool                     // of warnings with equal summaries only the first, with the number of the others
	ConsolidateErrors   bool                     // the same for errors
	Difference          func(*Difference) string // the text of a difference; nil: differences are not shown
	Codes               bool                     // the last line of a message is its code
	Program             string                   // how the user may call this program, for hints; "" means "terrace"

	parsed parsed
}

const plainWidth = 78

// Print writes all messages, warnings first, so that errors end up nearest to
// the prompt.
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
		b.WriteString(p.message(g.first, g.others))
	}
	return b.Bytes()
}

func (p *Printer) errors(ds List) []byte {
	var b bytes.Buffer
	for _, g := range group(ds.Errors(), p.ConsolidateErrors) {
		b.WriteString(p.message(g.first, g.others))
	}
	return b.Bytes()
}

// Text is one message as Print writes it.
func (p *Printer) Text(m *Message) string { return p.message(m, 0) }

// similar is a run of messages that are shown as one.
type similar struct {
	first  *Message
	others int
}

// group puts messages of equal summaries together, in the order of the first of
// each. Messages without a place stand alone, since "elsewhere" means nothing there.
func group(ds List, consolidate bool) []similar {
	var out []similar
	index := map[string]int{}
	for _, m := range ds {
		if consolidate && m.At != nil && !m.Alone {
			if i, ok := index[m.Summary]; ok {
				out[i].others++
				continue
			}
			index[m.Summary] = len(out)
		}
		out = append(out, similar{first: m})
	}
	return out
}

func (p *Printer) compact(b *bytes.Buffer, groups []similar) {
	fmt.Fprintf(b, "\n%s\n\n", p.paint(bold+yellow, "Warnings:"))
	for _, g := range groups {
		fmt.Fprintf(b, "- %s\n", clean(g.first.Summary))
		if at := g.first.At; at != nil {
			fmt.Fprintf(b, "  on %s line %d", clean(at.Filename), at.Start.Line)
			if g.others > 0 {
				fmt.Fprintf(b, " (and %d more)", g.others)
			}
			b.WriteByte('\n')
		}
	}
	program := p.Program
	if program == "" {
		program = "terrace"
	}
	fmt.Fprintf(b, "\nTo see the full warning notes, run %s without -compact-warnings.\n", program)
}

// message is one message, in a frame if colors are on.
func (p *Printer) message(m *Message, others int) string {
	color, label := red, "Error: "
	if m.Severity == Warning {
		color, label = yellow, "Warning: "
	}
	limit := p.limit()
	var b strings.Builder
	head := label + clean(source.HideCredentials(m.Summary))
	if p.Width > 0 { // elsewhere it is searched for
		head = wrap(head, limit)
	}
	if p.Color {
		head = p.paint(bold+color, label) + p.paint(bold, strings.TrimPrefix(head, label))
	}
	b.WriteString(head + "\n\n")
	p.place(&b, m)
	if m.Detail != "" {
		b.WriteString(wrap(clean(source.HideCredentials(m.Detail)), limit) + "\n")
	}
	p.notes(&b, m.notes(p.Set))
	if others == 1 {
		fmt.Fprintf(&b, "\n(and one more similar %s elsewhere)\n", m.Severity)
	} else if others > 1 {
		fmt.Fprintf(&b, "\n(and %d more similar %ss elsewhere)\n", others, m.Severity)
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

// limit is how long wrapped lines may be.
func (p *Printer) limit() int {
	width := p.Width
	if width == 0 {
		width = plainWidth
	}
	if p.Color {
		width -= 2 // the frame
	}
	return max(width-1, 20)
}

// place writes which object, file and line the message is about, and the snippet.
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
		fmt.Fprintf(b, "  on %s line %d%s:\n", clean(m.At.Filename), m.At.Start.Line, where)
		p.source(b, s)
		p.values(b, m, s != nil && (s.hidden || s.bare))
		p.difference(b, m.Diff)
	}
	if m.Address != "" || m.At != nil {
		b.WriteByte('\n')
	}
}

// source writes the lines of a snippet with their numbers.
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

// values writes what is known of the values in the expression. Those of an expression
// that is not shown itself are not.
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

// difference writes what two values that should be equal differ in.
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

// splitValue parts `var.x["a b"] is 1` before the space that ends the name.
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

// A message may have thousands of notes, as when a long chain is a cycle.
const (
	notesWithSource = 12
	notesInAll      = 60
)

// notes writes each note with its place.
func (p *Printer) notes(b *strings.Builder, notes []Note) {
	for i, n := range notes {
		if i == notesInAll {
			fmt.Fprintf(b, "\n  (and %d more)\n", len(notes)-i)
			return
		}
		text := clean(n.Text)
		if n.At == nil {
			b.WriteString("\n" + wrap(text, p.limit()) + "\n")
			continue
		}
		if i <= notesWithSource {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "  %s, on %s line %d", text, clean(n.At.Filename), n.At.Start.Line)
		if s := p.parsed.snippet(p.Set, n.At, nil, false); s != nil && i < notesWithSource {
			b.WriteString(":\n")
			p.source(b, s)
		} else {
			b.WriteByte('\n')
		}
	}
}

// frame draws the left rule around a message.
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

// paint puts each line of a text into a style, since the frame's rule stands between lines.
func (p *Printer) paint(style, text string) string {
	if !p.Color || text == "" {
		return text
	}
	return style + strings.ReplaceAll(text, "\n", reset+"\n"+style) + reset
}
