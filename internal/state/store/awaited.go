package store

import (
	"context"
	"fmt"
	"time"
)

// # Awaited requests
//
// A request that is cancelled when a run is interrupted may still have been carried out. If
// that would leave something behind, such as a lock, the run waits for the response and sends
// no further request.

type awaitedKey struct{}

// patience is the maximum time to wait for a response.
const patience = 10 * time.Second

// ErrUnanswered is the error of a request without a response in that time, so that its result
// is unknown.
var ErrUnanswered = fmt.Errorf("its answer was not waited for any longer: %w", context.Canceled)

// Awaited returns a context for such requests.
func Awaited(ctx context.Context) context.Context {
	return context.WithValue(ctx, awaitedKey{}, true)
}

// Request returns the context of one request. If ctx is Awaited, it outlives ctx for a while;
// its cause is ErrUnanswered when that time is over. The caller calls end after it has read the
// response.
func Request(ctx context.Context) (request context.Context, end func()) {
	if ctx.Value(awaitedKey{}) == nil || ctx.Err() != nil {
		return ctx, func() {}
	}
	request, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(patience):
			giveUp(ErrUnanswered)
		case <-request.Done():
		}
	})
	return request, func() {
		stop()
		giveUp(nil)
	}
}
