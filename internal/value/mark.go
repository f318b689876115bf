// Package value holds what cty lacks for us: the marks that travel with a
// value, and merging, redacting and naming of parts of a value.
//
// The marks are [Sensitive], [Ephemeral], [Hidden] and [Deprecation]. The one
// rule to obey: whoever takes a mark off a value puts it back on what was made
// of it, unless a rule of the language says that the mark ends there.
//
// Everything here is pure and may be called concurrently.
package value

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/ctymarks"
)

// mark is the type of the marks without a payload. It is unexported, so that
// those of this package are the only ones.
type mark string

const (
	// Sensitive marks a value that is never printed, logged or reported and
	// that some places of the language refuse.
	Sensitive = mark("sensitive")
	// Ephemeral marks a value that is never stored in a plan or a state.
	Ephemeral = mark("ephemeral")
	// Hidden marks a value that is never printed, logged or reported, but that
	// every place of the language accepts: what a unit reads from a sensitive
	// output of another unit.
	Hidden = mark("hidden")
)

// GoString makes marks readable in test failures.
func (m mark) GoString() string { return "value." + string(m) }

// Deprecation is a mark that travels from a deprecated output to whoever reads
// it. Two of them are the same mark if message and source are equal.
type Deprecation struct {
	// Message is the text that its author wrote; "" if there is none.
	Message string
	// Source names the output, or the part of a resource, as a user would write its address.
	Source string
}

// Sentence tells the user what a value comes from.
func (d Deprecation) Sentence() string {
	s := "This value is derived from " + d.Source + ", which is deprecated"
	if d.Message == "" {
		return s + "."
	}
	return s + " with the following message:\n\n" + d.Message
}

// HasMark tells whether v itself carries the mark m; what is inside of v does
// not count.
func HasMark(v cty.Value, m any) bool { return v.HasMark(m) }

// ContainsMark tells whether v or any value inside of it carries the mark m.
func ContainsMark(v cty.Value, m any) bool {
	return anyInside(v, func(v cty.Value) bool { return v.HasMark(m) })
}

// Marked tells whether v or any value inside of it carries a mark.
func Marked(v cty.Value) bool { return anyInside(v, cty.Value.IsMarked) }

// anyInside tells whether something holds for v or any value inside of it. It is for
// questions about marks: what is in a set has none of its own. cty's own walk keeps the
// path of each value that it looks at.
func anyInside(v cty.Value, holds func(cty.Value) bool) bool {
	if holds(v) {
		return true
	}
	if v.IsMarked() {
		v, _ = v.Unmark()
	}
	if v.IsNull() || !v.IsKnown() {
		return false
	}
	switch ty := v.Type(); {
	case ty.IsObjectType():
		for name := range ty.AttributeTypes() {
			if anyInside(v.GetAttr(name), holds) {
				return true
			}
		}
	case ty.IsListType() || ty.IsTupleType():
		for _, e := range v.AsValueSlice() {
			if anyInside(e, holds) {
				return true
			}
		}
	case ty.IsMapType():
		for _, e := range v.AsValueMap() {
			if anyInside(e, holds) {
				return true
			}
		}
	}
	return false
}

// Secret tells whether v itself must not be shown to the user: it is sensitive
// or hidden. What is inside of v does not count.
func Secret(v cty.Value) bool { return v.HasMark(Sensitive) || v.HasMark(Hidden) }

// ContainsSecret tells whether v or any value inside of it must not be shown.
func ContainsSecret(v cty.Value) bool {
	return anyInside(v, Secret)
}

// WithoutMark returns v without the mark m on v itself. Other marks, and marks
// inside of v, stay.
func WithoutMark(v cty.Value, m any) cty.Value {
	if !v.HasMark(m) {
		return v
	}
	bare, marks := v.Unmark()
	delete(marks, m) // Unmark returns a copy
	return bare.WithMarks(marks)
}

// Deprecations lists the deprecation marks on v and inside of it, each once,
// sorted by source and message.
func Deprecations(v cty.Value) []Deprecation {
	var ds []Deprecation
	for d := range cty.ValueMarksOfTypeDeep[Deprecation](v) {
		ds = append(ds, d)
	}
	slices.SortFunc(ds, func(a, b Deprecation) int {
		if c := strings.Compare(a.Source, b.Source); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.Compact(ds)
}

// WithoutDeprecations returns v without any deprecation mark.
func WithoutDeprecations(v cty.Value) cty.Value {
	if !Marked(v) {
		return v
	}
	bare, err := v.WrangleMarksDeep(func(have any, _ cty.Path) (ctymarks.WrangleAction, error) {
		if _, is := have.(Deprecation); is {
			return ctymarks.WrangleDrop, nil
		}
		return nil, nil
	})
	if err != nil {
		return v // the function above gives no error
	}
	return bare
}

// IsText reports whether a value is a string that is known and not null. A marked one
// must be unmarked before.
func IsText(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.Type() == cty.String }
