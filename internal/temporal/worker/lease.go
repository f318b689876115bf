package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
)

// # Leases
//
// The engine gives a unit to another worker if it received no heartbeat for the heartbeat
// timeout. It counts from the last heartbeat it received, which this process sent earlier. No
// other worker has the unit while less than the timeout has passed since this process sent a
// heartbeat that was answered. If the process was suspended or lost the network, the lease is
// over before it writes, and it does not write.
//
// The monotonic clock may stop while the machine sleeps, and the wall clock may be set. The
// larger elapsed time of the two is used.

// A beater sends heartbeats. client.Client implements it.
type beater interface {
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
}

// lease is the right of an attempt to work on its unit. Its methods may be called concurrently.
type lease struct {
	to      beater
	token   []byte
	timeout time.Duration
	now     func() time.Time

	mu    sync.Mutex
	last  time.Time // time at which the last answered heartbeat was sent
	lost  error
	doing string
	notes []note // notes of this attempt and of earlier ones
	early int    // number of notes of earlier attempts that were not reported yet
}

// A note is a message of a journal about an earlier run. Every heartbeat contains the notes, so
// that the next attempt can report them if this one cannot.
type note struct {
	Code, Title, Text, About string
}

func newLease(to beater, token []byte, timeout time.Duration, now func() time.Time) *lease {
	return &lease{to: to, token: token, timeout: timeout, now: now}
}

// errStop means that the run is being stopped.
var errStop = errors.New("the run is to stop")

// renew sends a heartbeat and extends the lease.
func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	doing, notes := l.doing, l.notes
	l.mu.Unlock()
	sent := l.now()
	ctx, cancel := context.WithTimeout(ctx, l.timeout/2)
	defer cancel()
	err := l.to.RecordActivityHeartbeat(ctx, l.token, doing, notes)
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone *serviceerror.NotFound
	var canceled *temporal.CanceledError
	switch {
	case err == nil:
		l.last = sent
	case errors.As(err, &canceled):
		l.last = sent
		return errStop
	case errors.As(err, &gone):
		l.lost = errLost
		return errLost
	}
	return err
}

// keep renews the lease until ended is closed. It calls stop when the run is being stopped, and
// lose when the lease is lost.
func (l *lease) keep(ctx context.Context, ended <-chan struct{}, stop, lose func()) {
	tick := time.NewTicker(min(max(l.timeout/6, 100*time.Millisecond), 2*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		switch err := l.renew(context.WithoutCancel(ctx)); {
		case errors.Is(err, errStop):
			stop()
		case l.held() != nil:
			lose()
			return
		}
	}
}

// held returns an error once another worker may have the unit.
func (l *lease) held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	now := l.now()
	gone := max(now.Sub(l.last), now.Round(0).Sub(l.last.Round(0)))
	if gone >= l.timeout {
		l.lost = fmt.Errorf("the engine was not reached for %s", gone.Round(time.Second))
	}
	return l.lost
}

// note records messages, and returns when the engine has received them.
func (l *lease) note(ds diag.List) error {
	l.mu.Lock()
	for _, m := range ds {
		n := note{m.Code, m.Summary, m.Detail, m.Address}
		if !slices.Contains(l.notes, n) {
			l.notes = append(l.notes[:len(l.notes):len(l.notes)], n)
		}
	}
	l.mu.Unlock()
	if err := l.renew(context.Background()); err != nil && !errors.Is(err, errStop) {
		return fmt.Errorf("what it says did not reach the engine: %w", err)
	}
	return nil
}

// noted returns the messages of earlier attempts, once.
func (l *lease) noted() (ds diag.List) {
	l.mu.Lock()
	defer l.mu.Unlock()
	early := l.notes[:l.early]
	l.early = 0
	for _, n := range early {
		ds = append(ds, &diag.Message{Severity: diag.Warning, Code: n.Code, Summary: n.Title, Detail: n.Text, Address: n.About})
	}
	return ds
}

// tell sets the current step of the turn, which the next heartbeat contains.
func (l *lease) tell(line string) {
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doing = line
}

// claim identifies an attempt in the lock of a state.
type claim struct {
	run, unit     string
	turn, attempt int
}

func claimOf(run string, t remote.Turn, attempt int) claim {
	return claim{run, t.Unit, t.Number, attempt}
}

const claimText = "terrace run %s, turn %d.%d of unit %q"

func (c claim) String() string { return fmt.Sprintf(claimText, c.run, c.turn, c.attempt, c.unit) }

// parseClaim parses the result of String.
func parseClaim(text string) (c claim, ok bool) {
	n, err := fmt.Sscanf(strings.Replace(text, ", turn", " , turn", 1), strings.Replace(claimText, ", turn", " , turn", 1), &c.run, &c.turn, &c.attempt, &c.unit)
	return c, err == nil && n == 4
}

// succeeds reports whether c may take over the lock of other: an earlier attempt at the same unit
// in the same run.
func (c claim) succeeds(other claim) bool {
	return c.run == other.run && c.unit == other.unit && (c.turn > other.turn || c.turn == other.turn && c.attempt > other.attempt)
}

// stateLease returns the lease of the attempt in the form that statemgr uses.
func (c claim) stateLease(l *lease) *statemgr.Lease {
	return &statemgr.Lease{Info: c.String(), Held: l.held, Note: l.note, Noted: l.noted, Succeeds: func(holder store.LockInfo) bool {
		other, ok := parseClaim(holder.Info)
		return ok && c.succeeds(other)
	}}
}
