package value

import (
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestBounded(t *testing.T) {
	for _, c := range []struct {
		v    cty.Value
		want error
	}{
		{cty.NilVal, nil},
		{cty.DynamicVal, nil},
		{cty.UnknownVal(cty.Number), nil},
		{cty.NullVal(cty.String), nil},
		{cty.Zero, nil},
		{cty.PositiveInfinity, nil},
		{cty.MustParseNumberVal("1e9999"), nil},
		{cty.MustParseNumberVal("-1e-9999"), nil},
		{cty.MustParseNumberVal("1e10002"), ErrDigits},
		{cty.MustParseNumberVal("-1e100000000"), ErrDigits},
		{cty.MustParseNumberVal("1e-100000000").Mark(Sensitive), ErrDigits},
		{cty.StringVal(strings.Repeat("x", MaxText)), nil},
		{cty.StringVal(strings.Repeat("x", MaxText+1)).Mark(Sensitive), ErrText},
	} {
		if got := Bounded(c.v); !errors.Is(got, c.want) {
			t.Errorf("%.50s: %v, want %v", c.v.GoString(), got, c.want)
		}
	}
}
