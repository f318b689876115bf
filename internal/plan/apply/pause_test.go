package apply

import (
	"testing"
	"time"
)

// Writes of the whole state take at most a twentieth of the time, and short ones happen as often
// as requested.
func TestPauseAfter(t *testing.T) {
	for _, c := range []struct{ every, took, want time.Duration }{
		{20 * time.Second, 300 * time.Millisecond, 20 * time.Second},
		{20 * time.Second, 3 * time.Second, time.Minute},
		{time.Second, 100 * time.Millisecond, 2 * time.Second},
	} {
		if got := pauseAfter(c.every, c.took); got != c.want {
			t.Errorf("after %s, every %s: %s, want %s", c.took, c.every, got, c.want)
		}
	}
}
