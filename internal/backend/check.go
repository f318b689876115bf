package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// CheckObject is the part of a Checker that all kinds on a service have: the state
// can be read, and a lock that is held keeps a second one out. open opens the state
// anew, as another process would. The state is not touched; a lock of somebody else
// stays.
func CheckObject(ctx context.Context, open func() Object, s Services, report func(Finding)) {
	p, err := open().Read(ctx)
	switch {
	case err != nil:
		report(Finding{What: "reading the state", Detail: diag.Reason(err)})
	case p.Data == nil:
		report(Finding{What: "reading the state", OK: true, Detail: "there is none yet"})
	default:
		report(Finding{What: "reading the state", OK: true, Detail: fmt.Sprintf("%d bytes", len(p.Data))})
	}
	const what = "lock"
	info := store.LockInfo{ID: store.NewID(), Operation: "check", Who: s.Who, Version: s.Version, Created: s.Now().UTC()}
	first, second := open(), open()
	id, err := first.Lock(ctx, info)
	var locked *LockedError
	switch {
	case errors.Is(err, ErrNoLocks):
		return // the kind says what it thinks of that
	case errors.As(err, &locked):
		report(Finding{What: what, OK: true, Detail: "held by " + Describe(locked.Holder) + ", so it was not tried"})
		return
	case err != nil:
		report(Finding{What: what, Detail: diag.Reason(err)})
		return
	}
	info.ID = store.NewID()
	got, err := second.Lock(ctx, info)
	switch {
	case err == nil:
		report(Finding{What: what, Detail: "two runs can hold it at the same time: the service does not do what the locks need"})
		second.Unlock(context.WithoutCancel(ctx), got)
	case errors.As(err, &locked):
		report(Finding{What: what, OK: true, Detail: "a second run is kept out"})
	default:
		report(Finding{What: what, Detail: diag.Reason(err)})
	}
	if err := first.Unlock(context.WithoutCancel(ctx), id); err != nil {
		report(Finding{What: "releasing the lock", Detail: diag.Reason(err)})
	}
}

// CheckClock is the part of a Checker about the clock of this machine, which is ahead of
// the service's by what ahead says, where it is known. Signatures and tokens are refused
// where the two differ by minutes.
func CheckClock(service interface {
	Clock() (ahead time.Duration, known bool)
}, report func(Finding)) {
	ahead, known := service.Clock()
	f := Finding{What: "clock", OK: true, Detail: "that of this machine agrees with the service's"}
	switch {
	case !known:
		f.Detail = "the service does not say what time it has"
	case ahead > time.Minute:
		f.OK, f.Detail = false, fmt.Sprintf("that of this machine is %s ahead of the service's: signatures, tokens and the times in locks are wrong", ahead.Round(time.Second))
	case ahead < -time.Minute:
		f.OK, f.Detail = false, fmt.Sprintf("that of this machine is %s behind the service's: signatures, tokens and the times in locks are wrong", ahead.Abs().Round(time.Second))
	}
	report(f)
}
