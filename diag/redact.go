package diag

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/terrace-iac/terrace/source"
)

// # Values that no message shows
//
// Unit files take values from the environment and from programs. Such a value becomes part of
// paths, addresses and arguments. These reach messages in many ways: through our own texts, and
// through those of the operating system, of git and of servers. Values are therefore not
// removed where a message is created. The evaluation of unit files adds each value to a
// Redactor, with a text that names its expression and range. Every message passes the Redactor
// before it is shown or logged.

// A Redactor replaces values in messages by texts that name their expressions. It is safe for
// concurrent use. A nil Redactor changes nothing.
type Redactor struct {
	mu     sync.Mutex
	known  map[string]string // the replacement of each value
	values []string          // the keys of known, longest first
	sorted bool
	public []string
	some   atomic.Bool
}

const (
	// minRedacted is the length, in bytes, of the shortest value that is replaced.
	minRedacted = 4
	// minWithin is the length, in bytes, from which a value is also replaced within a word,
	// unless it consists of letters alone: "prod" and "terraform" are parts of many words.
	minWithin = 8
)

// Add replaces a value by a text from now on. For each value the first text counts. Values that
// are shorter than four bytes, booleans and short numbers are ignored: they are not secret, and
// messages contain many of them.
func (r *Redactor) Add(value, shown string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, form := range forms(value) {
		if _, ok := r.known[form]; ok || !redactable(form) {
			continue
		}
		if r.known == nil {
			r.known = map[string]string{}
		}
		r.known[form] = shown
		r.values, r.sorted = append(r.values, form), false
		r.some.Store(true)
	}
}

// Publish marks a text, such as the directory of a unit, as known to all readers of the output.
// Values that occur in it are not replaced.
func (r *Redactor) Publish(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.public = append(r.public, text)
}

// Public reports whether a value occurs in a published text.
func (r *Redactor) Public(value string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isPublic(value)
}

func (r *Redactor) isPublic(value string) bool {
	return slices.ContainsFunc(r.public, func(p string) bool { return strings.Contains(p, value) })
}

// forms returns the forms in which a value appears in messages: unchanged, quoted, and escaped
// in an address. For a value with several lines, each line counts, too.
func forms(value string) []string {
	out := []string{value}
	if lines := strings.Split(value, "\n"); len(lines) > 1 && len(lines) < 1000 {
		for _, l := range lines {
			out = append(out, strings.TrimSpace(l))
		}
	}
	for _, f := range slices.Clone(out) {
		quoted := strconv.Quote(f)
		out = append(out, quoted[1:len(quoted)-1], url.PathEscape(f), url.QueryEscape(f))
	}
	return out
}

func redactable(value string) bool {
	if len(value) < minRedacted || value == "true" || value == "false" || value == "null" {
		return false
	}
	_, err := strconv.ParseFloat(value, 64)
	return err != nil || len(value) >= minWithin
}

// Text returns a text with all values replaced.
func (r *Redactor) Text(s string) string {
	if r == nil || !r.some.Load() || len(s) < minRedacted {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.sorted {
		slices.SortFunc(r.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
		r.sorted = true
	}
	return r.replace(s, r.values)
}

// replace replaces the values in a list, which must be sorted by length, longest first.
// Inserted text is not searched again.
func (r *Redactor) replace(s string, values []string) string {
	for i, v := range values {
		from := 0
		for {
			at := strings.Index(s[from:], v)
			if at < 0 {
				break
			}
			at += from
			if end := at + len(v); within(v) || apart(s, at, end) {
				if r.isPublic(v) {
					break
				}
				return r.replace(s[:at], values[i:]) + r.known[v] + r.replace(s[end:], values[i:])
			}
			from = at + 1
		}
	}
	return s
}

// within reports whether a value is replaced when it is part of a word.
func within(value string) bool {
	return len(value) >= minWithin && strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsLetter(c) })
}

// apart reports whether the text between two positions is a separate word.
func apart(s string, start, end int) bool {
	inWord := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
	}
	return (start == 0 || !inWord(s[start-1])) && (end == len(s) || !inWord(s[end]))
}

// List returns messages with all values replaced, including file names. Messages without such
// values are returned unchanged.
func (r *Redactor) List(ds List) List {
	if r == nil || !r.some.Load() {
		return ds
	}
	var out List
	for i, m := range ds {
		n := r.message(m)
		if n != m && out == nil {
			out = slices.Clone(ds)
		}
		if out != nil {
			out[i] = n
		}
	}
	if out == nil {
		return ds
	}
	return out
}

func (r *Redactor) message(m *Message) *Message {
	n := *m
	n.Summary, n.Detail, n.Address = r.Text(m.Summary), r.Text(m.Detail), r.Text(m.Address)
	n.At, n.Context = r.place(m.At), r.place(m.Context)
	changed := n.Summary != m.Summary || n.Detail != m.Detail || n.Address != m.Address || n.At != m.At || n.Context != m.Context
	for i, v := range m.Values {
		if text := r.Text(v); text != v {
			if &n.Values[0] == &m.Values[0] {
				n.Values = slices.Clone(m.Values)
			}
			n.Values[i], changed = text, true
		}
	}
	for i, note := range m.Notes {
		if text, at := r.Text(note.Text), r.place(note.At); text != note.Text || at != note.At {
			if &n.Notes[0] == &m.Notes[0] {
				n.Notes = slices.Clone(m.Notes)
			}
			n.Notes[i], changed = Note{text, at}, true
		}
	}
	if !changed {
		return m
	}
	return &n
}

// place returns a range whose file name contains no value. It returns at itself if nothing
// changes.
func (r *Redactor) place(at *source.Range) *source.Range {
	if at == nil {
		return nil
	}
	name := r.Text(at.Filename)
	if name == at.Filename {
		return at
	}
	out := *at
	out.Filename = name
	return &out
}
