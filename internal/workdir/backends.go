package workdir

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/net/registry"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/state/statefile"
)

// connections is the maximum number of concurrent connections to one host.
const connections = 32

// NewBackends returns the backends of a process that was started in the directory. who is
// user@host; locks contain it.
func (f *Directory) NewBackends(who string) *backend.Set {
	type client struct {
		registry *registry.Client
		err      error
	}
	var known parallel.Cache[struct{}, client]
	ask := func() (*registry.Client, error) {
		a := known.Local(struct{}{}, func() (client, bool) {
			cfg, ds := f.Settings()
			if ds.HasErrors() {
				return client{err: ds.Err()}, false
			}
			return client{registry: f.Registry(cfg)}, true
		})
		return a.registry, a.err
	}
	tr := transfer.Transport(f.Env)
	tr.MaxConnsPerHost, tr.MaxIdleConnsPerHost = connections, connections
	answer, unusable := storeTimeout(f.Env.Get(rest.Variable))
	tr.ResponseHeaderTimeout = cmp.Or(answer, 30*time.Second)
	var slow sync.Once // one message is enough for many states
	after := min(f.slowAfter(), 5*time.Second)
	sleep := f.Sleep
	if sleep == nil {
		sleep = pause
	}
	return backend.NewSet(kinds.All(), kinds.Unknown, backend.Services{
		Env: f.Env, Dir: f.Launch, Start: f.Launch, Home: f.Home(), Who: who,
		Now: f.Now, Sleep: sleep, Run: f.Run, Transport: tr, Answer: answer, Unusable: unusable, Version: statefile.Version,
		SlowAfter: after,
		Slow: func(what string) {
			slow.Do(func() {
				f.host().Slow(fmt.Sprintf("Still waiting for %s, which has not answered for %s. Requests that fail are repeated a few times. To stop, interrupt (Ctrl-C).\n", what, after))
			})
		},
		Token: func(ctx context.Context, host string) (string, error) {
			r, err := ask()
			if err != nil {
				return "", err
			}
			return r.Token(ctx, host)
		},
		Service: func(ctx context.Context, host, service string) (*url.URL, error) {
			r, err := ask()
			if err != nil {
				return nil, err
			}
			return r.Service(ctx, host, service, "the service "+service)
		},
		Shared: new(backend.Shared),
	})
}

// storeTimeout parses the maximum time for a response of a backend's service: a duration such as
// "2m", or a number of seconds. It returns 0 for "".
func storeTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d <= 0 {
		return 0, &backend.Error{Answer: fmt.Sprintf("The environment variable %s is %q", rest.Variable, text), Advice: "Give a time such as 2m, or a number of seconds above 0."}
	}
	return d, nil
}

// pause waits for d. If ctx is done first, it returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
