package backend

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terrace-iac/terrace/internal/state/store"
)

// heldObject is an Object whose lock another process holds until a certain time.
type heldObject struct {
	Object
	until time.Time
	tries int
}

func (o *heldObject) Lock(context.Context, store.LockInfo) (string, error) {
	if o.tries++; time.Now().Before(o.until) {
		return "", &LockedError{}
	}
	return "1", nil
}

func (o *heldObject) Unlock(context.Context, string) error { return nil }

// The lock is requested until the timeout, and for the last time at its end.
func TestLockTimeout(t *testing.T) {
	for _, c := range []struct {
		held, timeout, waited time.Duration
		locked                bool
	}{
		{time.Hour, 0, 0, false},
		{time.Hour, time.Second, time.Second, false},
		{time.Hour, 3 * time.Second, 3 * time.Second, false},
		{time.Hour, 7 * time.Second, 7 * time.Second, false},
		{2500 * time.Millisecond, 2500 * time.Millisecond, 2500 * time.Millisecond, true},
		{6 * time.Second, 7 * time.Second, 7 * time.Second, true},
		{time.Millisecond, time.Minute, time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			o := &heldObject{until: began.Add(c.held)}
			s := NewStore(o, "here", StoreOptions{}, Services{Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) error {
				time.Sleep(d)
				return ctx.Err()
			}})
			unlock, ds := s.Lock(t.Context(), store.LockInfo{}, c.timeout)
			if waited := time.Since(began); waited != c.waited || ds.HasErrors() == c.locked {
				t.Errorf("-lock-timeout=%s, held for %s: waited %s (%v), want %s", c.timeout, c.held, waited, ds.Err(), c.waited)
			}
			if unlock != nil {
				unlock()
			}
		})
	}
}
