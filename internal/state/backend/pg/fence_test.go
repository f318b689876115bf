package pg

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// hanger is a server that accepts connections and closes them at the first statement.
func hanger(t *testing.T) (address string, statements *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	statements = &atomic.Int32{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				b := pgproto3.NewBackend(c, c)
				if _, err := b.ReceiveStartupMessage(); err != nil {
					return
				}
				b.Send(&pgproto3.AuthenticationOk{})
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				if b.Flush() != nil {
					return
				}
				if m, err := b.Receive(); err == nil {
					if _, bye := m.(*pgproto3.Terminate); !bye {
						statements.Add(1)
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String(), statements
}

// A request that is repeated after a lost connection is not sent if another process may
// have taken over the state.
func TestFence(t *testing.T) {
	address, statements := hanger(t)
	config, err := pgconn.ParseConfig("postgres://u:p@" + address + "/d?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	over, asked := errors.New("the time is over"), 0
	p := &pool{config: config, sleep: func(context.Context, time.Duration) error { return nil }, turn: make(chan struct{}, 1)}
	fenced := store.WithFence(t.Context(), func() error {
		if asked++; asked > 1 {
			return over
		}
		return nil
	})
	if _, err := p.query(fenced, "INSERT INTO t VALUES (1)"); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
	if n := statements.Load(); n != 1 {
		t.Errorf("%d statements were sent, want 1", n)
	}
	if _, err := p.query(t.Context(), "INSERT INTO t VALUES (1)"); err == nil || statements.Load() < 3 {
		t.Errorf("without a fence: %v, %d statements", err, statements.Load())
	}
}
