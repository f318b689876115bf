package value

import (
	"math/big"
	"strconv"
)

// AppendNumber appends the shortest decimal text without an exponent that parses as f. f
// must be finite. Integers that fit an int64, which are nearly all numbers, have a fast
// path: big.Float compares its 512 bits with their neighbors.
func AppendNumber(b []byte, f *big.Float) []byte {
	if n, accuracy := f.Int64(); accuracy == big.Exact && !(n == 0 && f.Signbit()) {
		return strconv.AppendInt(b, n, 10)
	}
	return f.Append(b, 'f', -1)
}
