package store

import "context"

// # Fences
//
// A write is one or several requests to a service, and one that fails is sent again after a
// pause. Whoever may lose the state to another process in the middle of that asks before
// each of them: a process that was stopped in such a pause would write after its time.

type fenceKey struct{}

// WithFence is a context for writes that may be sent as long as held is no error.
func WithFence(ctx context.Context, held func() error) context.Context {
	return context.WithValue(ctx, fenceKey{}, held)
}

// Fenced is an error if nothing may be written with the context any more.
func Fenced(ctx context.Context) error {
	if held, ok := ctx.Value(fenceKey{}).(func() error); ok {
		return held()
	}
	return nil
}
