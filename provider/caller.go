package provider

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
)

// A Caller describes the object for which a provider is called, for providers in this process. The
// built-in provider uses it to find the encryption settings of a terraform_remote_state, which depend on
// the address of the data source. Decorators of providers use it to select the calls that they handle.
type Caller struct {
	Config   addr.ProviderConfig // provider configuration that the call uses or creates
	Instance addr.Instance       // zero if the call is not about an instance
}

type callerKey struct{}

// WithCaller returns a context that contains c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the Caller in a context, or the zero value if there is none.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
