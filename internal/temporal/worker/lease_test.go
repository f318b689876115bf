package worker

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A claim in a lock can be parsed again, and only a later attempt at the same unit in the same
// run takes the lock over.
func TestClaim(t *testing.T) {
	run := "r-1"
	first := claimOf(run, remote.Turn{Unit: `live/a "b", turn 3`, Number: 2}, 1)
	if got, ok := parseClaim(first.String()); !ok || got != first {
		t.Fatalf("%q is read as %v, %v", first.String(), got, ok)
	}
	for _, c := range []struct {
		name string
		c    claim
		want bool
	}{
		{"the next attempt", claim{first.run, first.unit, 2, 2}, true},
		{"the next turn", claim{first.run, first.unit, 3, 1}, true},
		{"the same attempt", first, false},
		{"an earlier turn", claim{first.run, first.unit, 1, 9}, false},
		{"another run", claim{"r-2", first.unit, 2, 2}, false},
		{"another unit", claim{first.run, "live/c", 2, 2}, false},
	} {
		if got := c.c.stateLease(&lease{}).Succeeds(store.LockInfo{Info: first.String()}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, text := range []string{"", "somebody's", "terrace run", `terrace run x, turn 1.1 of unit`} {
		if claim(first).stateLease(&lease{}).Succeeds(store.LockInfo{Info: text}) {
			t.Errorf("the lock of %q is taken over", text)
		}
	}
}

// heart is a server that answers heartbeats with an error, and records the content of the last
// one.
type heart struct {
	err     error
	details []any
}

func (h *heart) RecordActivityHeartbeat(_ context.Context, _ []byte, details ...any) error {
	h.details = details
	return h.err
}

// An attempt sends its notes with a heartbeat before it continues. The next attempt reports them
// once, and later attempts receive them too.
func TestNotes(t *testing.T) {
	h := &heart{}
	l := newLease(h, nil, time.Minute, time.Now)
	m := &diag.Message{Severity: diag.Warning, Code: "journal/pending", Summary: "Action may have happened", Detail: "May have happened: a.b (create).", Address: "a.b"}
	if err := l.note(diag.List{m, m}); err != nil {
		t.Fatal(err)
	}
	sent, _ := h.details[1].([]note)
	if len(sent) != 1 || len(l.noted()) != 0 {
		t.Fatalf("sent %v; the attempt itself says %v again", sent, l.noted())
	}
	next := newLease(h, nil, time.Minute, time.Now)
	next.notes, next.early = sent, len(sent)
	if err := next.note(diag.List{{Summary: "more"}}); err != nil {
		t.Fatal(err)
	}
	if got := next.noted(); len(got) != 1 || !reflect.DeepEqual(got[0], m) {
		t.Errorf("the next attempt says %v", got)
	}
	if sent, _ := h.details[1].([]note); len(sent) != 2 || len(next.noted()) != 0 {
		t.Errorf("heartbeats of the next attempt have %v, and it says %v again", sent, next.noted())
	}
	h.err = errors.New("no network")
	if next.note(diag.List{{Summary: "late"}}) == nil {
		t.Error("what the engine does not have counts as noted")
	}
}

// A lease ends when no heartbeat was answered for the timeout, and cannot be renewed then.
func TestLease(t *testing.T) {
	now := time.Unix(1000, 0)
	h := &heart{}
	l := newLease(h, nil, 10*time.Second, func() time.Time { return now })
	if err := l.renew(context.Background()); err != nil || l.held() != nil {
		t.Fatalf("not held after a heartbeat: %v, %v", err, l.held())
	}
	now = now.Add(9 * time.Second)
	if err := l.held(); err != nil {
		t.Errorf("given up early: %v", err)
	}
	h.err = errors.New("no network")
	_ = l.renew(context.Background())
	now = now.Add(time.Second)
	if l.held() == nil {
		t.Error("held though no heartbeat was answered for its whole time")
	}
	h.err = nil
	_ = l.renew(context.Background())
	if l.held() == nil {
		t.Error("a lease that was over began again")
	}
}
