package diag

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

//go:embed codes.txt
var codesText string

// A Code is an entry in the table of message codes.
type Code struct {
	Name      string   `json:"code"`      // such as "config/duplicate-variable"
	Summaries []string `json:"summaries"` // summaries of the messages with the code; * represents variable text
	Text      string   `json:"text"`      // meaning and what to do
}

// Paragraph returns the explanation in lines of at most the given number of columns.
func (c Code) Paragraph(columns int) string { return wrap.Lines(c.Text, columns) }

// A codeTable contains all codes. For messages of the HCL library, which have no code, it finds the
// code by the summary.
type codeTable struct {
	codes    []Code            // sorted by name
	exact    map[string]string // summary of an HCL message to its code
	patterns []codePattern     // patterns for summaries of HCL messages, longest first
}

type codePattern struct {
	parts []string
	code  string
	size  int
}

// codes is parsed on first use: when a message is written as JSON, explained or silenced, which
// is rare.
var codes = sync.OnceValue(func() *codeTable {
	t := &codeTable{exact: map[string]string{}}
	for line := range strings.Lines(codesText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " | ")
		summaries, text, _ := strings.Cut(rest, "| ")
		c := Code{Name: name, Text: text}
		for s := range strings.SplitSeq(summaries, " ;; ") {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			c.Summaries = append(c.Summaries, s)
			if domain, _, _ := strings.Cut(name, "/"); domain != "syntax" && domain != "lang" && domain != "config" {
				continue
			}
			if strings.Contains(s, "*") {
				t.patterns = append(t.patterns, codePattern{strings.Split(s, "*"), name, len(s)})
			} else if t.exact[s] == "" {
				t.exact[s] = name
			}
		}
		t.codes = append(t.codes, c)
	}
	slices.SortStableFunc(t.patterns, func(a, b codePattern) int { return b.size - a.size })
	return t
})

// Codes returns all codes, sorted by name.
func Codes() []Code { return codes().codes }

// FindCode returns the entry of a code.
func FindCode(name string) (c Code, ok bool) {
	all := codes().codes
	i, ok := slices.BinarySearchFunc(all, name, func(c Code, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return Code{}, false
	}
	return all[i], true
}

// CodeName returns the code of the message; "" means that there is none. Messages of the HCL
// library have no code; it is found by the summary.
func (m *Message) CodeName() string {
	if m.Code != "" {
		return m.Code
	}
	t := codes()
	if name := t.exact[m.Summary]; name != "" {
		return name
	}
	for _, p := range t.patterns {
		if p.matches(m.Summary) {
			return p.code
		}
	}
	return ""
}

// CodesOf returns the entries of all codes whose messages can have the summary, sorted by name.
func CodesOf(summary string) []Code {
	var out []Code
	for _, c := range Codes() {
		if slices.ContainsFunc(c.Summaries, func(s string) bool {
			p := codePattern{parts: strings.Split(s, "*")}
			return s == summary || len(p.parts) > 1 && strings.Trim(s, "* ") != "" && p.matches(summary)
		}) {
			out = append(out, c)
		}
	}
	return out
}

func (p *codePattern) matches(s string) bool {
	last := len(p.parts) - 1
	s, ok := strings.CutPrefix(s, p.parts[0])
	if !ok {
		return false
	}
	for _, part := range p.parts[1:last] {
		_, after, found := strings.Cut(s, part)
		if !found {
			return false
		}
		s = after
	}
	return strings.HasSuffix(s, p.parts[last])
}
