package store

import (
	"context"
	"fmt"
	"time"
)

// # Requests whose answers are awaited
//
// A request that is given up when a run is interrupted may have been carried out all the
// same. Where that leaves something behind, such as a lock, its answer is waited for, and
// nothing is asked after it.

type awaitedKey struct{}

// patience is how long an answer is waited for.
const patience = 10 * time.Second

// ErrUnanswered is the error of a request whose answer did not come in that time, so that
// nobody knows what came of it.
var ErrUnanswered = fmt.Errorf("its answer was not waited for any longer: %w", context.Canceled)

// Awaited is a context for such requests.
func Awaited(ctx context.Context) context.Context {
	return context.WithValue(ctx, awaitedKey{}, true)
}

// Request is the context for one request, which outlives the other one for a while if that
// is Awaited and ends meanwhile. Its cause is ErrUnanswered then. end is called when the
// answer was read.
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
