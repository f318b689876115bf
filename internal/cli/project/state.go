package project

import (
	"context"
	"strconv"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Begin opens the backend, locks and reads the state, and returns an operation on it. The
// caller has not selected providers yet. If the open state is nil, nothing is locked.
func (p *Project) Begin(ctx context.Context, f flag.State, what string) (*workdir.Operation, *workdir.OpenState, diag.List) {
	at, ds := p.Backend(ctx)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	locked, more := p.Locked(ctx, at, f, what)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, nil, ds
	}
	held, more := workdir.Take(ctx, locked, func() { p.Host.Waiting(nil) })
	if ds = append(ds, more...); held == nil {
		return nil, nil, ds
	}
	op := p.Operation()
	op.State = held
	return op, held, ds
}

// Locked returns the options for locking and reading the state of the project. what is the
// operation named in the lock.
func (p *Project) Locked(ctx context.Context, b *workdir.OpenedBackend, f flag.State, what string) (statemgr.Options, diag.List) {
	l := workdir.Lock{Off: !f.On, Timeout: f.Timeout, Operation: what, Who: p.Who(), Run: p.Mark(), Now: p.Now()}
	return p.Loaded.Locked(ctx, b, f.StateFiles, f.Journal, l)
}

// PersistEvery returns the interval at which an apply writes the whole state, from
// TF_STATE_PERSIST_INTERVAL. 0 means the default.
func PersistEvery(c *command.Call) (time.Duration, diag.List) {
	text := c.Env.Get("TF_STATE_PERSIST_INTERVAL")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 20 {
		return 0, diag.Errorf(diag.CodeCLIPersistInterval, nil, "Invalid TF_STATE_PERSIST_INTERVAL", "The environment variable TF_STATE_PERSIST_INTERVAL must be a whole number of seconds, 20 at least, not %q.", text)
	}
	return time.Duration(n) * time.Second, nil
}
