package workdir

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/intercept"
	"github.com/terrace-iac/terrace/provider"
)

// recovering returns a factory of providers whose panics become error messages. The embedding program
// keeps running, and the state contains the changes that were applied before the panic.
func recovering(a addr.Provider, f provider.Factory) provider.Factory {
	return func(ctx context.Context) (out provider.Provider, ds diag.List) {
		r := &recovered{addr: a}
		r.Calls = intercept.Calls{Handler: r}
		defer r.caught("Factory", &ds)
		if r.p, ds = f(ctx); ds.HasErrors() {
			return nil, ds
		}
		return r, ds
	}
}

// recovered is a provider that is implemented by the embedding program.
type recovered struct {
	intercept.Calls
	addr addr.Provider
	p    provider.Provider
}

// Handle implements intercept.Handler.
func (r *recovered) Handle(ctx context.Context, c intercept.Call) (ds diag.List) {
	if f, ok := c.(*intercept.CallFunction); ok {
		defer r.failed(c.Method(), &f.Answer.Err)
	} else {
		defer r.caught(c.Method(), &ds)
	}
	return c.Do(ctx, r.p)
}

// Stop implements provider.Provider.
func (r *recovered) Stop(ctx context.Context) (err error) {
	defer r.failed("Stop", &err)
	return r.p.Stop(ctx)
}

// Close implements provider.Provider.
func (r *recovered) Close() (err error) {
	defer r.failed("Close", &err)
	return r.p.Close()
}

// caught is called with defer. It adds an error if the method panics.
func (r *recovered) caught(method string, ds *diag.List) {
	if x := recover(); x != nil {
		more := diag.Errorf(diag.CodeProviderPanic, nil, "Provider panicked", "The method %s of the provider %s panicked: %v. This is a mistake in the provider, which is part of this program.", method, r.addr.Display(), x)
		*ds = append(*ds, more...)
	}
}

// failed is like caught, for methods that return an error.
func (r *recovered) failed(method string, err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("the method %s of the provider %s panicked: %v", method, r.addr.Display(), x)
	}
}

// Ended reports whether the provider has ended. It returns false if the provider cannot report that.
func (r *recovered) Ended() bool {
	e, ok := r.p.(interface{ Ended() bool })
	return ok && e.Ended()
}
