package hclnative_test

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// A column in code points is larger than that of a range after characters that consist of several.
func TestCodePoints(t *testing.T) {
	t.Parallel()
	const line = "a\u0308e\U0001F469\u200D\U0001F467x\n"
	for column, want := range map[int]int{1: 1, 2: 3, 3: 4, 4: 7, 5: 8, 6: 9} {
		if got := hclnative.CodePoints([]byte(line), column); got != want {
			t.Errorf("column %d is %d, want %d", column, got, want)
		}
	}
}
