// Package doctor examines a configured backend end to end, for users whose state cannot be
// reached, or who have a new store.
//
// Main function: Run. The one rule: the state is not changed; the doctor only writes
// objects next to it, and deletes them.
package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state/statefile"
)

// Run examines the backend and the state of a workspace, and reports each result.
func Run(ctx context.Context, b backend.Backend, workspace string, o backend.StoreOptions, info store.LockInfo, report func(backend.Finding)) {
	d := &examination{Backend: b, o: o, report: report}
	var names []string
	err := d.ask(func() (err error) {
		names, err = b.List(ctx)
		return err
	})
	switch {
	case errors.Is(err, backend.ErrNoWorkspaces):
		report(backend.Finding{What: "workspaces", OK: true, Detail: "this kind of backend keeps one state"})
	case err != nil:
		report(backend.Failed("listing workspaces", err))
	default:
		report(backend.Finding{What: "listing workspaces", OK: true, Detail: fmt.Sprintf("found: %d", len(names))})
	}
	st, err := b.Store(workspace, o)
	if err != nil {
		report(backend.Failed("opening the state", err))
		return
	}
	if !reading(ctx, st, report) {
		return // further checks would fail for the same reason
	}
	d.locking(ctx, st, workspace, info)
	d.conditions(ctx, st)
	d.blobs(ctx, st)
	if c, ok := b.(backend.Checker); ok {
		_ = d.ask(func() error {
			c.Check(ctx, workspace, report)
			return nil
		})
	}
	if o.Sealer != nil {
		report(backend.Finding{What: "encryption by this program", OK: true, Detail: "what is stored is sealed before it is sent"})
	}
}

// An examination contains the parameters of one run.
type examination struct {
	backend.Backend
	o      backend.StoreOptions
	report func(backend.Finding)
}

// ask sends requests to the service, and reports the service if it does not respond soon.
func (d *examination) ask(request func() error) error {
	defer backend.Watch(d.Backend, d.o)()
	return request()
}

// failed returns the finding for messages.
func failed(what string, ds diag.List) backend.Finding {
	f := backend.Finding{What: what, Detail: strings.Join(strings.Fields(ds.Errors()[0].Detail), " ")}
	if b, ok := ds.Errors()[0].Extra.(backend.Blame); ok {
		f.Permission = b.Permission
	}
	return f
}

// reading reads the state, and reports whether to continue.
func reading(ctx context.Context, st store.Store, report func(backend.Finding)) bool {
	s, ds := st.Read(ctx)
	switch {
	case ds.HasErrors():
		f := failed("reading the state", ds)
		report(f)
		return f.Permission != "" // the other checks need other permissions
	case s == nil:
		report(backend.Finding{What: "reading the state", OK: true, Detail: "there is none yet"})
		return true
	}
	var text bytes.Buffer
	if err := statefile.Write(&text, s, false); err != nil {
		report(backend.Finding{What: "reading the state", Detail: diag.Reason(err)})
		return false
	}
	report(backend.Finding{What: "reading the state", OK: true, Detail: fmt.Sprintf("serial %d, %d bytes", s.Serial, text.Len())})
	if p, ok := st.(store.Preparer); ok {
		if ds := p.Prepare(ctx, 0, 0); ds.HasErrors() {
			report(failed("room for the state", ds))
		} else {
			report(backend.Finding{What: "room for the state", OK: true, Detail: "it fits"})
		}
	}
	return true
}

// locking takes the lock and checks that a second run cannot take it meanwhile.
func (d *examination) locking(ctx context.Context, st store.Store, workspace string, info store.LockInfo) {
	b, o, report := d.Backend, d.o, d.report
	released := "" // the ID of a lock that the service granted and released
	if s, ok := st.(*backend.Store); ok {
		var id string
		err := d.ask(func() (err error) {
			id, err = s.Object().Lock(store.Awaited(ctx), withID(info))
			return err
		})
		var locked *backend.LockedError
		switch {
		case errors.Is(err, backend.ErrNoLocks):
			f := backend.Finding{What: "locking", Detail: "this configuration has no lock: two runs at once can write over each other"}
			if l, ok := b.(backend.Lockless); ok {
				f.Detail = l.WhyNoLocks() + ": two runs at once can write over each other"
			}
			report(f)
			return
		case errors.As(err, &locked):
			report(backend.Finding{What: "locking", OK: true, Skipped: true, Detail: "the state is locked by " + backend.Describe(locked.Holder)})
			return
		case err == nil:
			err = d.ask(func() error { return s.Object().Unlock(context.WithoutCancel(ctx), id) })
		}
		if err != nil {
			report(backend.Failed("locking", err))
			return
		}
		released = id
	}
	unlock, ds := st.Lock(ctx, info, 0)
	switch {
	case store.IsLocked(ds) && released != "":
		report(backend.Finding{What: "locking", Detail: "the service granted and released a lock, and then reported that the state is locked: either another run took the lock in between, or the service does not release locks. Run this command again"})
		return
	case store.IsLocked(ds):
		report(backend.Finding{What: "locking", OK: true, Skipped: true, Detail: "the state is locked"})
		return
	case ds.HasErrors():
		report(failed("locking", ds))
		return
	}
	other, err := b.Store(workspace, o)
	if err != nil {
		report(backend.Failed("locking", err))
	} else {
		second, ds := other.Lock(ctx, withID(info), 0)
		switch {
		case store.IsLocked(ds):
			report(backend.Finding{What: "locking", OK: true, Detail: "a second run is kept out"})
		case ds.HasErrors():
			report(failed("locking", ds))
		default:
			report(backend.Finding{What: "locking", Detail: "the lock was granted twice: the store does not provide what locks need"})
			if more := second(); more.HasErrors() {
				report(failed("unlocking", more))
			}
		}
	}
	if ds := unlock(); ds.HasErrors() {
		report(failed("unlocking", ds))
	} else {
		report(backend.Finding{What: "unlocking", OK: true, Detail: "the lock is free again"})
	}
}

func withID(info store.LockInfo) store.LockInfo {
	info.ID = store.NewID()
	return info
}

// conditions checks, with an object next to the state, whether the service honours
// conditional writes.
func (d *examination) conditions(ctx context.Context, st store.Store) {
	const what = "conditional writes"
	report := d.report
	s, ok := st.(*backend.Store)
	if !ok {
		return
	}
	p, ok := s.Object().(backend.Prober)
	if !ok {
		return // the kind reports its alternative
	}
	probe, remove := p.Probe()
	write := func(text string, prior backend.Prior) (version string, err error) {
		err = d.ask(func() error {
			version, err = probe.Write(ctx, []byte(text), prior, "")
			return err
		})
		return version, err
	}
	defer func() {
		if err := d.ask(func() error { return remove(context.WithoutCancel(ctx)) }); err != nil {
			report(backend.Failed("deleting beside the state", err))
		}
	}()
	version, err := write("{}\n", backend.Prior{Absent: true})
	if err != nil {
		report(backend.Failed(what, err))
		return
	}
	for _, stale := range []backend.Prior{{Absent: true}, {Version: version}} {
		if stale.Version != "" {
			if _, err := write("{ }\n", stale); err != nil {
				report(backend.Failed(what, err))
				return
			}
		}
		switch _, err := write("[]\n", stale); {
		case err == nil:
			report(backend.Finding{What: what, Detail: "the service ignores them: two runs at once can write over each other where a lock is lost"})
			return
		case !errors.Is(err, backend.ErrChanged):
			report(backend.Failed(what, err))
			return
		}
	}
	report(backend.Finding{What: what, OK: true, Detail: "the service keeps them"})
}

// blobs writes, reads, lists and deletes an object next to the state.
func (d *examination) blobs(ctx context.Context, st store.Store) {
	const what = "room for a journal"
	report := d.report
	b := backend.BlobsOf(st)
	if b == nil {
		report(backend.Finding{What: what, OK: true, Detail: "none: -journal=store cannot be used with this kind"})
		return
	}
	name, text := "doctor/"+store.NewID(), []byte("probe")
	err := d.ask(func() error { return b.PutBlob(ctx, name, text) })
	if err == nil {
		err = d.ask(func() error {
			got, err := b.GetBlob(ctx, name)
			if err == nil && !bytes.Equal(got, text) {
				err = errors.New("what was written was not read back")
			}
			return err
		})
	}
	// Deleting needs its own permission, so it is checked even if other requests failed.
	removed := d.ask(func() error { return b.DeleteBlob(context.WithoutCancel(ctx), name) })
	if removed != nil {
		report(backend.Failed("deleting beside the state", removed))
	}
	if err != nil {
		report(backend.Failed(what, err))
	}
	if err != nil || removed != nil {
		return
	}
	report(backend.Finding{What: what, OK: true, Detail: "objects beside the state can be written, read and deleted"})
}
