package store

import "context"

// # Fences
//
// A write consists of one or more requests to a service, and a failed request is repeated after
// a pause. A process that may lose the state to another process checks before each request that
// it still has the state. A process that was suspended during such a pause would otherwise
// write too late.

type fenceKey struct{}

// WithFence returns a context for writes, which may be sent as long as held returns nil.
func WithFence(ctx context.Context, held func() error) context.Context {
	return context.WithValue(ctx, fenceKey{}, held)
}

// Fenced returns an error if nothing more may be written with ctx.
func Fenced(ctx context.Context) error {
	if held, ok := ctx.Value(fenceKey{}).(func() error); ok {
		return held()
	}
	return nil
}
