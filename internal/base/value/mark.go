// Package value adds to cty: the marks of values, deep merge, redaction, paths, and a fast
// codec.
//
// The marks are [Sensitive], [Ephemeral], [Hidden] and [Deprecation]. The one rule: code
// that removes a mark from a value adds it to the result, unless the language defines that
// the mark ends there.
//
// All functions are pure and may be called concurrently.
package value

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/ctymarks"
)

// mark is the type of the marks without a payload. It is unexported, so that no other
// package defines one.
type mark string

const (
	// Sensitive marks a value that is never printed, logged or reported. Some arguments
	// refuse it.
	Sensitive = mark("sensitive")
	// Ephemeral marks a value that is never stored in a plan or a state.
	Ephemeral = mark("ephemeral")
	// Hidden marks a value that is never printed, logged or reported, but that every
	// argument accepts: a value that a unit reads from a sensitive output of another unit.
	Hidden = mark("hidden")
)

// GoString makes marks readable in test failures.
func (m mark) GoString() string { return "value." + string(m) }

// Deprecation marks a value that comes from a deprecated output. Two Deprecations are the
// same mark if message and source are equal.
type Deprecation struct {
	// Message is the text of the output's author, or "".
	Message string
	// Source is the address of the output or of the part of a resource.
	Source string
}

// Sentence returns a sentence for the user that names the deprecated source.
func (d Deprecation) Sentence() string {
	s := "This value is derived from " + d.Source + ", which is deprecated"
	if d.Message == "" {
		return s + "."
	}
	return s + " with the following message:\n\n" + d.Message
}

// HasMark reports whether v itself has the mark m. Values inside v are ignored.
func HasMark(v cty.Value, m any) bool { return v.HasMark(m) }

// ContainsMark reports whether v or any value inside it has the mark m.
func ContainsMark(v cty.Value, m any) bool {
	return anyInside(v, func(v cty.Value) bool { return v.HasMark(m) })
}

// Marked reports whether v or any value inside it has a mark.
func Marked(v cty.Value) bool { return anyInside(v, cty.Value.IsMarked) }

// AnyMark reports whether is is true for a mark of v or of any value inside it.
func AnyMark(v cty.Value, is func(mark any) bool) bool {
	return anyInside(v, func(v cty.Value) bool {
		if !v.IsMarked() {
			return false
		}
		for m := range v.Marks() {
			if is(m) {
				return true
			}
		}
		return false
	})
}

// anyInside reports whether holds is true for v or any value inside it. It does not visit
// the elements of sets, which have no marks of their own. cty's own walk is slower,
// because it builds the path of each value.
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

// Secret reports whether v itself is sensitive or hidden and must not be shown. Values
// inside v are ignored.
func Secret(v cty.Value) bool { return v.HasMark(Sensitive) || v.HasMark(Hidden) }

// ContainsSecret reports whether v or any value inside it must not be shown.
func ContainsSecret(v cty.Value) bool {
	return anyInside(v, Secret)
}

// WithoutMark returns v without the mark m on v itself. It keeps other marks, and marks
// inside v.
func WithoutMark(v cty.Value, m any) cty.Value {
	if !v.HasMark(m) {
		return v
	}
	bare, marks := v.Unmark()
	delete(marks, m) // Unmark returns a copy
	return bare.WithMarks(marks)
}

// Deprecations returns the deprecation marks on v and inside it, without duplicates,
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
	is := func(mark any) bool { _, ok := mark.(Deprecation); return ok }
	if !AnyMark(v, is) {
		return v
	}
	bare, err := v.WrangleMarksDeep(func(have any, _ cty.Path) (ctymarks.WrangleAction, error) {
		if is(have) {
			return ctymarks.WrangleDrop, nil
		}
		return nil, nil
	})
	if err != nil {
		return v // the function above gives no error
	}
	return bare
}

// IsText reports whether a value is a known string that is not null. The value must not
// be marked.
func IsText(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.Type() == cty.String }
