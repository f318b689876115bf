// Package diag defines messages to the user: errors and warnings with a source range, details
// with advice, and notes that refer to other positions.
//
// Main types: Message and List. The one rule: a function returns its result with a List and a
// usable placeholder, and at each boundary there is exactly one place that converts a Go error
// to a Message.
package diag

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Severity distinguishes errors from warnings.
type Severity uint8

// Error is the zero value, because it is stricter.
const (
	Error Severity = iota
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// A Message is one error or warning.
type Message struct {
	Code     string // stable, such as "config/duplicate-variable"; "" if programs should not depend on it
	Severity Severity
	Summary  string        // a noun phrase without a full stop or variable parts
	Detail   string        // full sentences: what, why, what to do
	At       *source.Range // the source range to which the message refers; nil if there is none
	Context  *source.Range // a larger range to show around At; nil means At only
	Notes    []Note        // related positions
	Attr     cty.Path      // for a message about a value: the path in the value
	Address  string        // the object to which the message refers, such as a resource instance; may be ""
	Values   []string      // lines such as `var.x is "a"` that explain a failed expression
	Call     *Call         // the failed function call; nil if there is none
	Diff     *Difference   // the two sides of a failed ==; nil if there is none
	Alone    bool          // must not be consolidated with similar messages, as for check blocks
	Extra    any           // data for callers that filter messages, such as the module that contains a deprecated object
}

// String returns the message in one line with its source range, for logs. Printer also shows
// the source lines.
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

// Condition is the code of messages that a condition in configuration failed: a validation
// rule, a precondition or postcondition, or an assertion of a check block. Their Extra is a
// Checked.
const Condition = CodeEvalCondition

// Checked is the address of the object whose condition failed, such as "var.size", "output.id",
// "check.health" or a resource instance.
type Checked string

// A Note adds a position or a remark to a message, such as "overridden here".
type Note struct {
	Text string
	At   *source.Range // nil for a remark without a position
}

// A Difference contains two values that should be equal, without marks, and the paths that must
// not be shown.
type Difference struct {
	Before, After             cty.Value
	BeforeSecret, AfterSecret []cty.Path
}

// List contains the messages of one operation in the order in which they were found.
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

// Errors returns only the errors.
func (ds List) Errors() List { return ds.of(Error) }

// Warnings returns only the warnings.
func (ds List) Warnings() List { return ds.of(Warning) }

// AsWarnings returns copies of the messages in which errors are warnings.
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

// Once removes duplicates: several units that share a file report the same messages.
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

// Errorf returns a list with one error. at may be nil.
func Errorf(code string, at *source.Range, summary, format string, args ...any) List {
	return List{{Code: code, Severity: Error, Summary: summary, Detail: sprintf(format, args), At: at}}
}

// Warnf returns a list with one warning. at may be nil.
func Warnf(code string, at *source.Range, summary, format string, args ...any) List {
	return List{{Code: code, Severity: Warning, Summary: summary, Detail: sprintf(format, args), At: at}}
}

func sprintf(format string, args []any) string {
	if len(args) == 0 {
		return source.HideCredentials(format)
	}
	var named []string // other texts in the message, such as file names
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

// Note adds a note to every message and returns the list.
func (ds List) Note(at *source.Range, format string, args ...any) List {
	for _, m := range ds {
		m.Notes = append(m.Notes, Note{Text: sprintf(format, args), At: at})
	}
	return ds
}

// notes returns the notes of the message, and the remarks of the file set about its position,
// such as what an override replaced there. It adds no remark to a position that already has a
// note.
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

// Under sets the source range of messages that have none, and returns the list.
func (ds List) Under(at *source.Range) List {
	for _, m := range ds {
		if m.At == nil {
			m.At = at
		}
	}
	return ds
}

// Rename returns copies of the messages in which every range has the file name that name returns
// for its own.
func (ds List) Rename(name func(string) string) List {
	move := func(at *source.Range) *source.Range {
		if at == nil || at.Filename == "" {
			return at
		}
		to := *at
		to.Filename = name(at.Filename)
		return &to
	}
	out := make(List, 0, len(ds))
	for _, m := range ds {
		to := *m
		to.At, to.Context = move(m.At), move(m.Context)
		to.Notes = slices.Clone(m.Notes)
		for i := range to.Notes {
			to.Notes[i].At = move(to.Notes[i].At)
		}
		out = append(out, &to)
	}
	return out
}

// About sets the address of messages that have none, and returns the list.
func (ds List) About(address string) List {
	for _, m := range ds {
		if m.Address == "" {
			m.Address = address
		}
	}
	return ds
}

// Err returns the list as a Go error, or nil if it contains no errors.
func (ds List) Err() error {
	if !ds.HasErrors() {
		return nil
	}
	return listError(ds)
}

type listError List

// Error returns the text of the first error and the number of others.
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
		m.Values = explainValues(d, false)
		m.Call = failedCall(d)
		out = append(out, m)
	}
	return out
}

// Sort sorts messages by file, position, severity and text, so that the order does not depend
// on timing. Messages without a source range come last.
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
