package remote_test

import (
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/report"
)

// If the clock of a worker is an hour off, only the duration of its turn is used.
func TestResultOfOtherClock(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, off := range []time.Duration{0, time.Hour, -time.Hour} {
		r := remote.Result{Started: at.Add(off - 3*time.Second), Ended: at.Add(off)}
		into := report.Result{Started: at.Add(-5 * time.Second)}
		r.Fill(&into, at)
		if !into.Ended.Equal(at) || into.Ended.Sub(into.Started) != 3*time.Second {
			t.Errorf("off by %s: from %s to %s", off, into.Started, into.Ended)
		}
	}
}
