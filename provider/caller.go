package provider

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
)

// A Caller is what a call of a provider is about, for providers in this process: what
// encrypts the state that a terraform_remote_state reads is configured by the address of
// the data source, and decorators of providers choose by it what they answer themselves.
type Caller struct {
	Config   addr.ProviderConfig // the configuration that the call uses, or that is made
	Instance addr.Instance       // zero where no instance is meant
}

type callerKey struct{}

// WithCaller returns a context for a call.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns what a call is about; the zero value if that is not known.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
