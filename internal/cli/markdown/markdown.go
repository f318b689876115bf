// Package markdown writes the result of a command as Markdown, for a comment on a pull request.
//
// Main types: Document, with Message, Cause, Table and Detail. The one rule: text from outside is
// only written as code, so that it cannot become markup, a link or a mention of somebody.
//
// Documents are written in GitHub's dialect, which GitLab and other services also show: tables,
// details elements and code with the language diff.
package markdown

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// DefaultLimit is the size of a document in bytes that GitHub accepts in a comment.
const DefaultLimit = 65536

// MinLimit is the smallest limit of a document in bytes.
const MinLimit = 1024

// A Document is the content of a comment. Equal results give equal documents: it contains neither
// times nor durations, so that a comment can be updated in place.
type Document struct {
	// Mark identifies the comment, such as "plan live". It is written as an HTML comment in the
	// first line, by which a program finds the comment that it updates.
	Mark     string
	Title    string   // the headline; plain words
	Subjects []string // what the title is about, such as directories; written as code after it
	Lines    []string // short paragraphs of plain words below the title
	Messages []Message
	Causes   []Cause
	Table    Table
	Details  []Detail
	// More is a sentence of plain words about where the rest is if the document is cut.
	More string
}

// A Message is an error, a warning or a finding.
type Message struct {
	Error bool
	Title string   // from outside, such as "Error: Invalid count argument"
	Text  string   // the whole message, as printed on a terminal without colors
	Of    []string // the units with the message
	List  bool     // the text is a list, which is shown however many messages precede it
}

// A Cause is a place that sets values, with the values that it changes.
type Cause struct {
	Place string // such as "region.hcl:7"; "" if it is not in the configuration
	What  string // such as "tags.cost"
	Count int    // the number of objects with the change
	Units []string
	Was   string // the text at the place in another revision, if it was another one
}

// A Table has one row for each unit.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// A Column is a column of a table.
type Column struct {
	Name  string // plain words
	Right bool   // numbers, which are aligned on the right
}

// A Cell is the text of a cell: plain words, or with Code a text from outside.
type Cell struct {
	Text string
	Code bool
}

// A Detail is a text that is shown when a reader unfolds it.
type Detail struct {
	Title string // from outside, such as the name of a unit
	Note  string // plain words after the title
	Text  string
	Diff  bool // the text is the changes of a plan, which are colored
}

// Write writes a document with at most limit bytes; 0 means no limit. It leaves out messages, causes,
// rows and details from the end of each section and then adds how many are left out. The limit must
// be at least MinLimit.
func Write(w io.Writer, d *Document, limit int) error {
	if limit == 0 {
		limit = int(^uint(0) >> 1)
	}
	p := &printer{limit: limit}
	if p.document(d); len(p.left) > 0 {
		p = &printer{limit: limit, shares: true}
		p.document(d)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// noteSize is the number of bytes that are kept free for the notes about what is left out.
const noteSize = 512

type printer struct {
	b      strings.Builder
	limit  int
	shares bool     // each section gets a share of the size, so that the first does not take all of it
	end    int      // the size at which the section ends
	left   []string // what is left out, such as "3 units"
}

// fits reports whether a text fits into the section.
func (p *printer) fits(text string) bool { return p.b.Len()+len(text) <= p.end }

// section writes one of several sections with weights. With shares, its part of the size that remains
// is its weight among those of this and the later sections.
func (p *printer) section(weights []int, write func()) {
	if weights[0] == 0 {
		return
	}
	p.end = p.limit - noteSize
	if p.shares {
		all := 0
		for _, w := range weights {
			all += w
		}
		p.end = p.b.Len() + (p.end-p.b.Len())/all*weights[0]
	}
	write()
}

// weight returns w if a section has any elements.
func weight(n, w int) int {
	if n == 0 {
		return 0
	}
	return w
}

func (p *printer) document(d *Document) {
	head := "<!-- " + strings.ReplaceAll(html.EscapeString(wrap.OneLine(d.Mark)), "--", "- -") + " -->\n## " + d.Title
	for i, s := range d.Subjects {
		if i < 3 {
			head += " " + code(cut(s, 120))
		}
	}
	head += "\n"
	for _, l := range d.Lines {
		head += "\n" + l + "\n"
	}
	p.b.WriteString(head)
	weights := []int{weight(len(d.Messages), 2), weight(len(d.Causes), 1), weight(len(d.Table.Rows), 2), weight(len(d.Details), 3)}
	p.section(weights, func() { p.messages(d.Messages) })
	p.section(weights[1:], func() { p.causes(d.Causes) })
	p.section(weights[2:], func() { p.table(d.Table) })
	p.section(weights[3:], func() { p.details(d.Details) })
	if len(p.left) > 0 {
		note := "\n_Not shown, because the text would be longer than the limit: " + strings.Join(p.left, ", ") + "._"
		if d.More != "" {
			note += " " + d.More
		}
		p.b.WriteString(note + "\n")
	}
}

// mostMessages is the number of messages of each kind that are shown without being unfolded.
const mostMessages = 10

func (p *printer) messages(all []Message) {
	left, short := 0, 0
	for i, m := range all {
		symbol := ":warning:"
		if m.Error {
			symbol = ":x:"
		}
		text := "\n" + symbol + " " + code(cut(m.Title, 300)) + in(m.Of) + "\n"
		if body := strings.TrimSpace(m.Text); body != "" && body != m.Title && (i < mostMessages || m.List) {
			whole := text + "\n" + fenced(body, "")
			if left == 0 && !p.fits(whole) && p.fits(text) {
				short++
			} else {
				text = whole
			}
		}
		if left > 0 || !p.fits(text) {
			left++
			continue
		}
		p.b.WriteString(text)
	}
	p.leave(short, "message text")
	p.leave(left, "message")
}

// in returns the units of a message, a few of them by name.
func in(units []string) string {
	const most = 3
	switch {
	case len(units) == 0:
		return ""
	case len(units) > most:
		return fmt.Sprintf(" in %d units, such as %s", len(units), code(cut(units[0], 120)))
	}
	var names []string
	for _, u := range units {
		names = append(names, code(cut(u, 120)))
	}
	return " in " + strings.Join(names, ", ")
}

// mostCauses is the number of causes that are listed. The others change fewer values.
const mostCauses = 30

func (p *printer) causes(all []Cause) {
	if len(all) == 0 {
		return
	}
	p.line("\n### Causes\n\n")
	left, more := 0, ""
	if n := len(all) - mostCauses; n > 0 {
		all, more = all[:mostCauses], fmt.Sprintf("- and %d more\n", n)
	}
	for _, c := range all {
		text := "- " + code(cut(c.What, 200))
		if c.Count > 1 {
			text += fmt.Sprintf(" of %d objects", c.Count)
		}
		text += in(c.Units)
		if c.Place == "" {
			text += ": not from the configuration"
		} else {
			text += ": " + code(c.Place)
		}
		if c.Was != "" {
			text += " was " + code(cut(c.Was, 200))
		}
		if text += "\n"; left > 0 || !p.fits(text) {
			left++
			continue
		}
		p.b.WriteString(text)
	}
	if left == 0 {
		p.line(more)
	}
	p.leave(left, "cause")
}

func (p *printer) table(t Table) {
	if len(t.Rows) == 0 {
		return
	}
	head, rule := "\n|", "|"
	for _, c := range t.Columns {
		head += " " + c.Name + " |"
		if rule += " ---"; c.Right {
			rule += ":"
		}
		rule += " |"
	}
	p.line(head + "\n" + rule + "\n")
	left := 0
	for _, row := range t.Rows {
		text := "|"
		for _, c := range row {
			cell := c.Text
			if c.Code {
				cell = cellCode(cut(c.Text, 200))
			}
			text += " " + cell + " |"
		}
		if text += "\n"; left > 0 || !p.fits(text) {
			left++
			continue
		}
		p.b.WriteString(text)
	}
	p.leave(left, "row")
}

// shortest is the size in bytes of the smallest part of a detail that is shown.
const shortest = 2048

func (p *printer) details(all []Detail) {
	left := 0
	for _, d := range all {
		if left > 0 {
			left++
			continue
		}
		text := p.detail(d)
		if p.fits(text) {
			p.b.WriteString(text)
			continue
		}
		left++
		room := p.end - p.b.Len() - (len(text) - len(d.Text))
		if room < shortest {
			continue
		}
		part := d.Text[:min(room, len(d.Text))]
		for len(part) > 0 {
			end := strings.LastIndexByte(part[:len(part)-1], '\n')
			if end < 0 {
				break
			}
			part = part[:end+1]
			d.Text = part + "…\n"
			if text = p.detail(d); p.fits(text) { // lines grow when they are written as a diff
				p.b.WriteString(text)
				left--
				p.left = append(p.left, "the end of "+code(cut(d.Title, 120)))
				break
			}
		}
	}
	p.leave(left, "detail")
}

func (p *printer) detail(d Detail) string {
	title := "<code>" + html.EscapeString(cut(wrap.OneLine(d.Title), 200)) + "</code>"
	if d.Note != "" {
		title += ": " + html.EscapeString(d.Note)
	}
	text, language := strings.TrimRight(d.Text, "\n"), ""
	if d.Diff {
		text, language = asDiff(text), "diff"
	}
	return "\n<details><summary>" + title + "</summary>\n\n" + fenced(text, language) + "\n</details>\n"
}

// line writes a text if it fits.
func (p *printer) line(text string) {
	if p.fits(text) {
		p.b.WriteString(text)
	}
}

// leave notes that n things are left out.
func (p *printer) leave(n int, what string) {
	if n > 1 {
		what += "s"
	}
	if n > 0 {
		p.left = append(p.left, fmt.Sprintf("%d %s", n, what))
	}
}

// asDiff moves the symbols of changes to the beginning of lines, where a diff has them. Updated
// and replaced objects get an exclamation mark. Lines of a text that is added or removed as a whole
// are added or removed lines.
func asDiff(text string) string {
	var b strings.Builder
	var in *heredoc
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if in != nil {
			if ended := in.line(&b, line); !ended {
				continue
			}
			in = nil
		}
		body := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(body)]
		symbol, rest, ok := strings.Cut(body, " ")
		switch {
		case ok && (symbol == "+" || symbol == "-"):
			b.WriteString(symbol + indent + rest)
		case ok && symbol == "~":
			b.WriteString("!" + indent + rest)
		case ok && (symbol == "-/+" || symbol == "+/-"):
			b.WriteString("!" + strings.TrimPrefix(indent, "  ") + body)
		case line == "":
		case symbol == "#" && i+1 < len(lines) && above(indent, lines[i+1]):
			b.WriteString(" " + indent + body)
		default:
			b.WriteString(" " + strings.TrimPrefix(indent, "  ") + body)
		}
		in = opened(body, len(indent), symbol)
	}
	return b.String()
}

// above reports whether a comment with an indent is about the attribute in the next line, with whose
// name it is aligned.
func above(indent, next string) bool {
	body, ok := strings.CutPrefix(next, indent)
	return ok && len(indent) > 4 && (strings.HasPrefix(body, "+ ") || strings.HasPrefix(body, "- ") || strings.HasPrefix(body, "~ "))
}

// heredoc is a text of several lines in a plan. Its lines can begin with the symbols of changes.
type heredoc struct {
	column int    // of the symbol of the attribute
	all    string // symbol of every line; "" if lines have symbols of their own
}

// opened returns the text that begins in a line, or nil.
func opened(body string, indent int, symbol string) *heredoc {
	_, rest, ok := strings.Cut(body, "<<-EOT")
	if rest = strings.TrimSpace(rest); !ok || rest != "" && !strings.HasPrefix(rest, "#") {
		return nil
	}
	switch symbol {
	case "+", "-":
		return &heredoc{indent, symbol}
	case "~":
		return &heredoc{indent, ""}
	}
	return &heredoc{indent - 2, ""}
}

// line writes a line of the text. It reports whether the line is the end, which it does not write.
func (h *heredoc) line(b *strings.Builder, line string) bool {
	at := h.column + 4 // the column of symbols
	if strings.HasPrefix(strings.TrimLeft(line, " "), "EOT") && len(line)-len(strings.TrimLeft(line, " ")) == h.column+2 {
		return true
	}
	if len(line) < at+2 {
		b.WriteString(line)
		return false
	}
	symbol := line[at : at+1]
	if symbol != "+" && symbol != "-" {
		symbol = cmp.Or(h.all, " ")
	}
	b.WriteString(symbol + line[:at] + line[at+2:])
	return false
}

// fenced returns a text as a block of code, with a fence that does not occur in it.
func fenced(text, language string) string {
	text = wrap.Visible(text)
	fence := strings.Repeat("`", max(3, longest(text, '`')+1))
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// code returns a text as code within a line.
func code(text string) string {
	text = wrap.OneLine(text)
	if text == "" {
		return ""
	}
	fence, pad := strings.Repeat("`", longest(text, '`')+1), ""
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		pad = " "
	}
	return fence + pad + text + pad + fence
}

// cellCode returns a text as code in a cell of a table, in which a backslash before a bar keeps the bar
// from ending the cell. A text with a backslash of its own there is written as HTML.
func cellCode(text string) string {
	if text = wrap.OneLine(text); !strings.Contains(text, `\|`) {
		return strings.ReplaceAll(code(text), "|", `\|`)
	}
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == ' ') {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return "<code>" + b.String() + "</code>"
}

// longest returns the length of the longest run of a byte in a text.
func longest(text string, of byte) int {
	most, n := 0, 0
	for i := range len(text) {
		if text[i] != of {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}

// cut returns at most n characters of a text.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if r := []rune(text); len(r) > n {
		return string(r[:n]) + "…"
	}
	return text
}
