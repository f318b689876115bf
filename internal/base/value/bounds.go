package value

import (
	"cmp"
	"errors"

	"github.com/zclconf/go-cty/cty"
)

// Limits of one value. Numbers written by people have a few digits, and strings have some
// kilobytes. A larger value is a mistake or an attack: printing the digits of 1e100000000
// takes minutes and all memory.
const (
	MaxText   = 64 << 20 // of a string, in bytes
	MaxDigits = 10000    // of a number, before or after the decimal point
)

// maxExponent is the power of two that corresponds to MaxDigits.
const maxExponent = MaxDigits * 3322 / 1000

// The errors of Bounded.
var (
	ErrDigits = errors.New("the number has more than 10,000 digits before or behind the point")
	ErrText   = errors.New("the text is longer than 64 MiB")
)

// Bounded returns an error for a number with too many digits or a string that is too
// long. It does not check the elements of collections.
func Bounded(v cty.Value) error {
	if v == cty.NilVal || v.Type() != cty.Number && v.Type() != cty.String {
		return nil
	}
	if v.IsMarked() {
		v, _ = v.Unmark()
	}
	switch {
	case v.IsNull() || !v.IsKnown():
		return nil
	case v.Type() == cty.String:
		if len(v.AsString()) > MaxText {
			return ErrText
		}
		return nil
	}
	if f := v.AsBigFloat(); !f.IsInf() && f.Sign() != 0 {
		if e := f.MantExp(nil); e > maxExponent || e < -maxExponent {
			return ErrDigits
		}
	}
	return nil
}

// BoundedNumbers returns an error if a value contains a number with too many digits, at any depth
// and also as a bound of an unknown number.
func BoundedNumbers(v cty.Value) error {
	return cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		if v.Type() != cty.Number {
			return true, nil
		}
		v, _ = v.Unmark()
		if v.IsNull() || v.IsKnown() {
			return true, Bounded(v)
		}
		r := v.Range()
		low, _ := r.NumberLowerBound()
		high, _ := r.NumberUpperBound()
		return true, cmp.Or(Bounded(low), Bounded(high))
	})
}
