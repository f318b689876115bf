package pg

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxBusy is how many connections a pool uses at the same time, besides those that
// hold locks; maxIdle how many it keeps.
const maxBusy, maxIdle = 8, 4

// A pool keeps connections that hold nothing. Its methods may be called concurrently.
type pool struct {
	config *pgconn.Config
	sleep  func(context.Context, time.Duration) error
	turn   chan struct{}

	mu   sync.Mutex
	idle []*pgconn.PgConn
}

// connect makes a connection, again where the server was busy or not yet there.
func (p *pool) connect(ctx context.Context) (*pgconn.PgConn, error) {
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		c, err := pgconn.ConnectConfig(ctx, p.config.Copy())
		if err == nil || ctx.Err() != nil || wait > 4*time.Second || !hasCode(err, "53300", "57P03") {
			return c, err
		}
		if p.sleep(ctx, wait) != nil {
			return nil, err
		}
	}
}

// query runs one statement that may be repeated, on any connection: where one that
// was idle has died, on a new one.
func (p *pool) query(ctx context.Context, sql string, args ...string) ([][][]byte, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for try := 0; ; try++ {
		c, fresh, err := p.take(ctx)
		if err != nil {
			return nil, err
		}
		rows, err := exec(ctx, c, sql, args...)
		if c.IsClosed() {
			var answered *pgconn.PgError
			if err != nil && ctx.Err() == nil && try < 3 && (!fresh || !errors.As(err, &answered)) {
				continue
			}
			return rows, err
		}
		p.give(c)
		return rows, err
	}
}

func (p *pool) take(ctx context.Context) (c *pgconn.PgConn, fresh bool, err error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if c != nil {
		return c, false, nil
	}
	c, err = p.connect(ctx)
	return c, true, err
}

func (p *pool) give(c *pgconn.PgConn) {
	p.mu.Lock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, c)
		c = nil
	}
	p.mu.Unlock()
	if c != nil {
		end(c)
	}
}

// end closes a connection, and with it what it holds.
func end(c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c.Close(ctx)
}

// exec runs one statement. A context that ends in between closes the connection.
func exec(ctx context.Context, c *pgconn.PgConn, sql string, args ...string) ([][][]byte, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	r := c.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return r.Rows, r.Err
}

// cause is the innermost cause of a failed connection, in one line.
func cause(err error) string {
	for {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op
			break
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
			err = joined.Unwrap()[0]
			continue
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
