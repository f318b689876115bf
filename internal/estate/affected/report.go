// Package affected compares two revisions of a directory or an estate by the values of their
// configuration. It reads no state and calls no provider.
//
// Main types: Report, the result, and Side, one revision of one directory. The one rule:
// everything in a Report may be shown, since explanations remove secrets.
package affected

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/outline"
)

// FormatVersion is the version of the JSON form of a Report.
const FormatVersion = "1.0"

// The actions of units and objects.
const (
	Added     = outline.Added
	Removed   = outline.Removed
	Moved     = outline.Moved
	Changed   = outline.Changed
	MayChange = outline.MayChange
)

// A Report is the result of a comparison.
type Report struct {
	FormatVersion string   `json:"format_version"`
	Base          string   `json:"base"`
	Head          string   `json:"head"`
	Units         []*Unit  `json:"units"`  // the units that differ, sorted by name; "." is the directory itself
	Causes        []*Cause `json:"causes"` // the changed lines, sorted by position
	// NotCompared contains the units and directories that have errors and were not compared, sorted; "." also
	// means all units.
	NotCompared []string `json:"not_compared,omitempty"`
	// Diagnostics contains the errors of what was not compared, and the warnings about both revisions.
	Diagnostics []*diag.Object `json:"diagnostics,omitempty"`
}

// A Unit is a unit, or the compared directory, that differs.
type Unit struct {
	Name    string         `json:"name"`
	Was     string         `json:"previous_name,omitempty"` // of a moved unit
	Action  outline.Action `json:"action"`
	Objects []*Object      `json:"objects"` // empty if the unit was added or removed, or moved without other changes
}

// An Object is a part of a unit or of its module that differs.
type Object struct {
	Address string         `json:"address"`
	Was     string         `json:"previous_address,omitempty"`
	Kind    outline.Kind   `json:"kind"`
	Action  outline.Action `json:"action"`
	Changes []*Change      `json:"changes,omitempty"` // sorted by path
	Cause   *int           `json:"cause,omitempty"`   // index in Report.Causes of an object that was added, removed or moved

	cause *Cause
}

// A Change is an argument that differs.
type Change struct {
	Path      string          `json:"path"`
	Action    outline.Action  `json:"action"`
	Before    json.RawMessage `json:"before,omitempty"` // omitted if it is not set, not known or sensitive
	After     json.RawMessage `json:"after,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"`
	Reasons   []string        `json:"reasons,omitempty"` // why it may change
	Cause     *int            `json:"cause,omitempty"`   // index in Report.Causes

	before, after string // the values as text; "" if they are not shown
	cause         *Cause
	// reads contains the outputs of other units on which a value depends whose own definition is
	// equal in both revisions: one of them causes the difference.
	reads []explanation.UnitOutput
}

// A Cause is a place at which the configurations differ.
type Cause struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Removed bool   `json:"removed,omitempty"` // the line is only in the base
	Before  string `json:"before,omitempty"`  // the text that sets the value, without secrets
	After   string `json:"after,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Author  string `json:"author,omitempty"`
	Date    string `json:"date,omitempty"`
}

// Text returns the value before and after as text. Both are "" if they are not shown.
func (c *Change) Text() (before, after string) { return c.before, c.after }

// Finish sorts the units, and collects and numbers the causes.
func (r *Report) Finish() {
	r.FormatVersion = FormatVersion
	slices.SortFunc(r.Units, func(a, b *Unit) int { return cmp.Compare(a.Name, b.Name) })
	one := map[Cause]*Cause{}
	note := func(c **Cause) {
		if *c == nil {
			return
		}
		if first := one[**c]; first != nil {
			*c = first
			return
		}
		one[**c] = *c
		r.Causes = append(r.Causes, *c)
	}
	r.each(note)
	slices.SortStableFunc(r.Causes, func(a, b *Cause) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Before, b.Before), strings.Compare(a.After, b.After))
	})
	number := map[*Cause]int{}
	for i, c := range r.Causes {
		number[c] = i
	}
	numbers := make([]int, len(r.Causes))
	for i := range numbers {
		numbers[i] = i
	}
	set := func(to **int, c *Cause) {
		if c != nil {
			*to = &numbers[number[c]]
		}
	}
	for _, u := range r.Units {
		if u.Objects == nil {
			u.Objects = []*Object{}
		}
		for _, o := range u.Objects {
			set(&o.Cause, o.cause)
			for _, c := range o.Changes {
				set(&c.Cause, c.cause)
			}
		}
	}
	if r.Units == nil {
		r.Units = []*Unit{}
	}
	if r.Causes == nil {
		r.Causes = []*Cause{}
	}
}

// each calls f for every cause.
func (r *Report) each(f func(**Cause)) {
	for _, u := range r.Units {
		for _, o := range u.Objects {
			f(&o.cause)
			for _, c := range o.Changes {
				f(&c.cause)
			}
		}
	}
}

// Action returns the action of a unit with the given objects.
func Action(objects []*Object) outline.Action {
	for _, o := range objects {
		if o.Action != MayChange {
			return Changed
		}
	}
	return MayChange
}
