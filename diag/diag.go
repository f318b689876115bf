// Package diag holds messages to the user: errors and warnings with a place, a
// detail that says what to do, and notes that point at other places.
//
// Main types: Message and List. The one rule: a function returns its result
// with a List and a usable placeholder, and a Go error becomes a Message in
// exactly one place per boundary.
package diag

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Severity tells errors from warnings.
type Severity uint8

// Error comes first so that the zero Severity is the stricter one.
const (
	Error Severity = iota
	Warning
)

func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// A Message is one thing to tell the user.
type Message struct {
	Code     string // stable, e.g. "config/duplicate-variable"; "" where nobody should rely on it
	Severity Severity
	Summary  string        // a label: no period, no variable parts
	Detail   string        // full sentences: what, why, what to do
	At       *source.Range // the place to blame; nil if there is none
	Context  *source.Range // a wider stretch to show around At; nil means At alone
	Notes    []Note        // other places that matter
	Attr     cty.Path      // for a message about a value: the path inside it
	Address  string        // the object that the message is about, e.g. a resource instance; may be ""
	Values   []string      // lines such as `var.x is "a"` that explain a failed expression
	Call     *Call         // the function call that failed; nil if none did
	Diff     *Difference   // the two sides of an == that did not hold; nil if the message is about no such thing
	Alone    bool          // never to be counted among similar messages, as for check blocks
	Extra    any           // for callers that filter messages, e.g. the module that a deprecation came from
}

// String is a message in one line, with its place, for logs; diag.Printer shows it with the
// lines of its file.
func (m *Message) String() string {
	text := m.Severity.String() + ": " + m.Summary
	if m.Detail != "" {
		text += ": " + m.Detail
	}
	if m.At != nil {
		text = m.At.String() + ": " + text
	}
	return text
}

// Condition is the code of messages that say that a condition of configuration does not
// hold: a validation rule, a pre- or postcondition, or an assertion of a check block.
// Their Extra is a Checked.
const Condition = CodeEvalCondition

// Checked is the address of the object whose condition does not hold, such as "var.size",
// "output.id", "check.health" or that of a resource instance.
type Checked string

// A Note adds a place or a remark to a message, e.g. "overridden here".
type Note struct {
	Text string
	At   *source.Range // nil for a remark without a place
}

// A Difference is two values that were expected to be equal, without marks, and
// which parts of them must not be shown.
type Difference struct {
	Before, After             cty.Value
	BeforeSecret, AfterSecret []cty.Path
}

// List is the messages of one piece of work, in the order they were found.
type List []*Message

// HasErrors reports whether any message is an error.
func (ds List) HasErrors() bool {
	for _, m := range ds {
		if m.Severity == Error {
			return true
		}
	}
	return false
}

// Errors returns the errors alone.
func (ds List) Errors() List { return ds.of(Error) }

// Warnings returns the warnings alone.
func (ds List) Warnings() List { return ds.of(Warning) }

// AsWarnings are the same messages, none of them an error.
func (ds List) AsWarnings() List {
	out := make(List, 0, len(ds))
	for _, m := range ds {
		w := *m
		w.Severity = Warning
		out = append(out, &w)
	}
	return out
}

func (ds List) of(s Severity) List {
	var out List
	for _, m := range ds {
		if m.Severity == s {
			out = append(out, m)
		}
	}
	return out
}

// Once returns each message once: those about a file that several units share are
// found again and again.
func (ds List) Once() List {
	type identity struct {
		severity             Severity
		at, summary, details string
	}
	seen := make(map[identity]bool, len(ds))
	var out List
	for _, m := range ds {
		id := identity{severity: m.Severity, summary: m.Summary, details: m.Detail}
		if m.At != nil {
			id.at = m.At.String()
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, m)
		}
	}
	return out
}

// Errorf makes a list of one error. at may be nil.
func Errorf(code string, at *source.Range, summary, format string, args ...any) List {
	return List{{Code: code, Severity: Error, Summary: summary, Detail: sprintf(format, args), At: at}}
}

// Warnf makes a list of one warning. at may be nil.
func Warnf(code string, at *source.Range, summary, format string, args ...any) List {
	return List{{Code: code, Severity: Warning, Summary: summary, Detail: sprintf(format, args), At: at}}
}

func sprintf(format string, args []any) string {
	if len(args) == 0 {
		return source.HideCredentials(format)
	}
	var named []string // what the message names beside its errors
	failed := false
	for _, a := range args {
		if _, ok := a.(error); ok {
			failed = true
		} else {
			named = append(named, fmt.Sprint(a))
		}
	}
	if failed {
		args = slices.Clone(args)
		for i, a := range args {
			if err, ok := a.(error); ok {
				args[i] = Reason(err, named...)
			}
		}
	}
	return source.HideCredentials(fmt.Sprintf(format, args...))
}

// Note adds a note to every message of the list and returns it.
func (ds List) Note(at *source.Range, format string, args ...any) List {
	for _, m := range ds {
		m.Notes = append(m.Notes, Note{Text: sprintf(format, args), At: at})
	}
	return ds
}

// notes are those of the message, and what the files' set has to say of the
// place to blame: what an override replaced there. A place that has a note
// already gets no other.
func (m *Message) notes(set *source.Set) []Note {
	if m.At == nil {
		return m.Notes
	}
	out := m.Notes
	for _, r := range set.Remarks(*m.At) {
		same := func(n Note) bool {
			return n.At != nil && n.At.Filename == r.At.Filename && n.At.Start.Line == r.At.Start.Line
		}
		if !slices.ContainsFunc(out, same) {
			out = append(out[:len(out):len(out)], Note{Text: r.Text, At: &r.At})
		}
	}
	return out
}

// Under sets the place of the messages that have none, and returns the list.
func (ds List) Under(at *source.Range) List {
	for _, m := range ds {
		if m.At == nil {
			m.At = at
		}
	}
	return ds
}

// About sets the address of the messages that have none, and returns the list.
func (ds List) About(address string) List {
	for _, m := range ds {
		if m.Address == "" {
			m.Address = address
		}
	}
	return ds
}

// Err returns the list as a Go error, or nil if it holds no errors.
func (ds List) Err() error {
	if !ds.HasErrors() {
		return nil
	}
	return listError(ds)
}

type listError List

func (e listError) Error() string {
	errs := List(e).Errors()
	m := errs[0]
	text := m.Summary
	if m.Detail != "" {
		text += ": " + m.Detail
	}
	if m.At != nil {
		text = m.At.String() + ": " + text
	}
	if n := len(errs) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more errors)", n)
	}
	return text
}

// FromHCL converts messages of the HCL library.
func FromHCL(in hcl.Diagnostics) List {
	if len(in) == 0 {
		return nil
	}
	out := make(List, 0, len(in))
	for _, d := range in {
		m := &Message{Summary: d.Summary, Detail: source.HideCredentials(d.Detail), At: d.Subject, Context: d.Context, Extra: d.Extra}
		if d.Severity == hcl.DiagWarning {
			m.Severity = Warning
		}
		if d.Summary == duplicateKey && secretKey(d) {
			m.Detail = "Two different items produced the same key in this 'for' expression, which is not shown since it is sensitive. If duplicates are expected, use the ellipsis (...) after the value expression to group them by key."
		}
		m.Values = explainValues(d)
		m.Call = failedCall(d)
		out = append(out, m)
	}
	return out
}

// Sort orders messages by file, position, severity and text, so that a report
// does not depend on timing. Messages without a place come last.
func (ds List) Sort() List {
	slices.SortStableFunc(ds, func(a, b *Message) int {
		switch {
		case a.At == nil && b.At == nil:
			return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Summary, b.Summary), cmp.Compare(a.Detail, b.Detail))
		case a.At == nil:
			return 1
		case b.At == nil:
			return -1
		}
		return cmp.Or(
			cmp.Compare(a.At.Filename, b.At.Filename),
			cmp.Compare(a.At.Start.Byte, b.At.Start.Byte),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Address, b.Address),
			cmp.Compare(a.Summary, b.Summary),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
	return ds
}
