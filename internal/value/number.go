package value

import (
	"math/big"
	"strconv"
)

// AppendNumber appends the shortest decimal text, without an exponent, that
// reads as f again, which must be finite. Whole numbers that an int64 holds,
// nearly all there are, take a short way: big.Float compares its 512 bits with
// their neighbors for each.
func AppendNumber(b []byte, f *big.Float) []byte {
	if n, accuracy := f.Int64(); accuracy == big.Exact && !(n == 0 && f.Signbit()) {
		return strconv.AppendInt(b, n, 10)
	}
	return f.Append(b, 'f', -1)
}
