package backend_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// deaf is an object whose service never answers.
type deaf struct{ backend.Object }

func (deaf) Lock(ctx context.Context, _ store.LockInfo) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// resting is one that waits before it asks again.
type resting struct{ backend.Object }

func (resting) Lock(ctx context.Context, _ store.LockInfo) (string, error) {
	<-store.Pauses(ctx).Done()
	return "", store.Pauses(ctx).Err()
}

// An answer is waited for ten seconds when the run is interrupted, a pause is not.
func TestTryLock(t *testing.T) {
	for name, tt := range map[string]struct {
		o    backend.Object
		want time.Duration
		lost bool
	}{"request": {deaf{}, 10 * time.Second, true}, "pause": {resting{}, 0, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				var at time.Time
				time.AfterFunc(time.Minute, func() {
					at = time.Now()
					interrupt()
				})
				_, lost, err := backend.TryLock(ctx, tt.o, store.LockInfo{})
				if took := time.Since(at); err == nil || lost != tt.lost || took != tt.want {
					t.Errorf("%v after the interrupt: lost %v, %v", took, lost, err)
				}
			})
		})
	}
}
