package value

import (
	"math/big"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestAppendNumber(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "1", "-1", "7000", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
		"0.1", "-2.5", "1e-30", "123456789012345678901234567890", "1e400", "-1e400",
	} {
		f := cty.MustParseNumberVal(text).AsBigFloat()
		if got, want := string(AppendNumber([]byte("x"), f)), "x"+f.Text('f', -1); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := string(AppendNumber(nil, new(big.Float).Neg(new(big.Float)))); got != "-0" {
		t.Errorf("negative zero: got %s", got)
	}
}
