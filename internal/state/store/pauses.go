package store

import "context"

// # Requests that are waited for
//
// Some requests are waited for when the run is interrupted: what they ask for may be done
// all the same. What lies between them, such as the pause before one is sent again, is not.

type runKey struct{}

// Awaited is a context for requests that go on when a run is interrupted, whose context run
// is.
func Awaited(ctx, run context.Context) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// Pauses is the context for what lies between requests: that of the run, if the requests
// are Awaited, else the same one.
func Pauses(ctx context.Context) context.Context {
	if run, ok := ctx.Value(runKey{}).(context.Context); ok {
		return run
	}
	return ctx
}
