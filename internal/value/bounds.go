package value

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
)

// What one value may be at most. The numbers that people write have a few digits and their
// texts some kilobytes; one that goes beyond this is a mistake, or meant to fill the memory
// of the machine, which writing out the digits of 1e100000000 does for minutes.
const (
	MaxText   = 64 << 20 // bytes of a text
	MaxDigits = 10000    // of a number, before or behind the point
)

// maxExponent is MaxDigits as a power of two.
const maxExponent = MaxDigits * 3322 / 1000

// The errors of Bounded.
var (
	ErrDigits = errors.New("the number has more than 10,000 digits before or behind the point")
	ErrText   = errors.New("the text is longer than 64 MiB")
)

// Bounded returns an error for a number that has too many digits, and for a text that is
// too long. What is in a collection is not looked at.
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
