package provider

import "context"

// DeferReason is the reason for which a provider defers a call, in the words of the plugin protocol.
type DeferReason string

// The reasons.
const (
	DeferredConfig   DeferReason = "resource_config_unknown" // the configuration of the object is not known yet
	DeferredProvider DeferReason = "provider_config_unknown" // the configuration of the provider is not known yet
	DeferredPrereq   DeferReason = "absent_prereq"           // something that the object needs does not exist yet
)

// A Deferral is the permission to defer one call of Read, Plan, Import or ReadData. The provider sets
// Reason if it defers the call. Then the caller must not use the result.
type Deferral struct{ Reason DeferReason }

type deferralKey struct{}

// WithDeferral returns the context of a call that the provider may defer.
func WithDeferral(ctx context.Context, d *Deferral) context.Context {
	return context.WithValue(ctx, deferralKey{}, d)
}

// DeferralOf returns the Deferral in a context, or nil if the call must not be deferred.
func DeferralOf(ctx context.Context) *Deferral {
	d, _ := ctx.Value(deferralKey{}).(*Deferral)
	return d
}
