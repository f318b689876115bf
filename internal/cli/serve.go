package cli

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/measure"
	"github.com/terrace-iac/terrace/internal/cli/run"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// Serve opens the estate of a job in a system, and runs the units that the session requests,
// until the session ends. The paths in q are those of this machine. Serve parses no command line:
// q contains all options. It returns the exit status of the command.
func Serve(ctx context.Context, system *sys.System, s *remote.Session, q request.Request) int {
	c := command.New(ctx, system, Table(), nil)
	c.Enter, c.Serving = enter, s
	handler, ctx, stop := interrupt.Watch(ctx, system, c.Report.Names.Product(), c.Report.Announce)
	defer stop()
	c.Interrupts, c.Report.Context = handler, ctx
	c.Backends = sync.OnceValue(c.OpenBackends)
	run.View(c, q.View)
	c.Report.Open()
	c.WorkIn(q.Dir)
	cmd, _, found := c.Table.Find([]string{q.Command})
	if !found || run.OverOf(q.Command) == nil {
		return c.Fail(diag.Errorf(diag.CodeRemoteNotBegun, nil, "Distributed run not begun", "The command of the run, %q, is none that workers can run.", q.Command))
	}
	c.Command = cmd
	f := &unitflags.Flags{Units: q.Units}
	if err := f.TakeMachine(c.Env); err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	if _, err := withoutPrograms(c, nil); err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	return measure.Requested(c, f, func(ctx context.Context) int { return run.Serve(ctx, c, f, q) })
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
