package backend

import (
	"strings"
	"testing"
	"time"
)

type clock struct {
	ahead time.Duration
	known bool
}

func (c clock) Clock() (time.Duration, bool) { return c.ahead, c.known }

func TestCheckClock(t *testing.T) {
	for _, tc := range []struct {
		clock
		ok   bool
		want string
	}{
		{clock{20 * time.Second, true}, true, "agrees"},
		{clock{time.Hour, true}, false, "1h0m0s ahead of"},
		{clock{-90 * time.Second, true}, false, "1m30s behind"},
		{clock{}, true, "does not say"},
	} {
		var got []Finding
		CheckClock(tc.clock, func(f Finding) { got = append(got, f) })
		if len(got) != 1 || got[0].OK != tc.ok || !strings.Contains(got[0].Detail, tc.want) {
			t.Errorf("%+v: %+v", tc.clock, got)
		}
	}
}
