package cli

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// Serve runs the command line of a job in a system, up to the point where units would run.
// Then it runs the units that the session requests, until the session ends. It returns the
// exit status of the command.
func Serve(ctx context.Context, system *sys.System, s *remote.Session) int {
	c := command.New(ctx, system, Table(), nil)
	c.Enter, c.Serving = enter, s
	handler, ctx, stop := interrupt.Watch(ctx, system, c.Report.Names.Product(), c.Report.Announce)
	defer stop()
	c.Interrupts, c.Report.Context = handler, ctx
	c.Backends = sync.OnceValue(c.OpenBackends)
	return dispatch(c, system.Args[1:])
}

// Store opens the default workspace of a backend. The arguments of the backend are strings.
func Store(ctx context.Context, system *sys.System, kind string, args map[string]string) (store.Store, error) {
	set := command.New(ctx, system, Table(), nil).OpenBackends()
	k, ds := set.Kind(kind)
	if ds.HasErrors() {
		return nil, ds.Err()
	}
	given := map[string]cty.Value{}
	for name, text := range args {
		given[name] = cty.StringVal(text)
	}
	v, err := configure.Value(kind, k.Schema, cty.ObjectVal(given))
	if err != nil {
		return nil, err
	}
	b, ds := set.Open(ctx, backend.Config{Type: kind, Value: v, Dir: system.Dir})
	if ds.HasErrors() {
		return nil, ds.Err()
	}
	return b.Store(store.Default, backend.StoreOptions{})
}
