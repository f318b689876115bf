package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// maxBusy is the maximum number of connections in use, besides those that hold locks.
// maxIdle is the maximum number of idle connections.
const maxBusy, maxIdle = 8, 4

// A pool keeps connections without locks. Its methods may be called concurrently.
type pool struct {
	config *pgconn.Config
	sleep  func(context.Context, time.Duration) error
	turn   chan struct{}

	mu   sync.Mutex
	idle []*pgconn.PgConn
}

// tapName is the name under which a connection stores its tap.
const tapName = "terrace.tap"

func tapOf(c *pgconn.PgConn) *tap { return c.CustomData()[tapName].(*tap) }

// connect opens a connection. It retries if the server is busy or not ready.
func (p *pool) connect(ctx context.Context) (*pgconn.PgConn, error) {
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		t, config := &tap{}, p.config.Copy()
		config.BuildFrontend = t.frontend
		c, err := pgconn.ConnectConfig(ctx, config)
		if err == nil {
			c.CustomData()[tapName] = t
		}
		if err == nil || ctx.Err() != nil || wait > 4*time.Second || !hasCode(err, "53300", "57P03") {
			return c, err
		}
		if p.sleep(ctx, wait) != nil {
			return nil, err
		}
	}
}

// query runs one repeatable statement on any connection.
func (p *pool) query(ctx context.Context, sql string, args ...string) (rows [][][]byte, err error) {
	err = p.on(ctx, func(c *pgconn.PgConn) (err error) {
		rows, err = exec(ctx, c, sql, args...)
		return err
	})
	return rows, err
}

// fetch runs one repeatable statement that returns at most one row. It passes the first
// value to take, in each attempt. row contains the other values.
func (p *pool) fetch(ctx context.Context, take func(io.Reader) error, sql string, args ...string) (row [][]byte, found bool, err error) {
	err = p.on(ctx, func(c *pgconn.PgConn) (err error) {
		row, found, err = fetch(ctx, c, take, sql, args...)
		return err
	})
	return row, found, err
}

// on calls do with any connection. If that was idle and is broken, it calls do again with a
// new one, so do must be repeatable.
func (p *pool) on(ctx context.Context, do func(c *pgconn.PgConn) error) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for try := 0; ; try++ {
		if err := store.Fenced(ctx); err != nil {
			return err
		}
		c, fresh, err := p.take(ctx)
		if err != nil {
			return err
		}
		err = do(c)
		if c.IsClosed() {
			var answered *pgconn.PgError
			if err != nil && ctx.Err() == nil && try < 3 && (!fresh || !errors.As(err, &answered)) {
				continue
			}
			return err
		}
		p.give(c)
		return err
	}
}

// rolledBack runs statements in a transaction that is rolled back, and returns the error of
// f.
func (p *pool) rolledBack(ctx context.Context, f func(exec func(sql string, args ...string) ([][][]byte, error)) error) error {
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer end(c) // also ends the transaction
	if _, err := exec(ctx, c, "BEGIN"); err != nil {
		return err
	}
	return f(func(sql string, args ...string) ([][][]byte, error) { return exec(ctx, c, sql, args...) })
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

// end closes a connection and releases its locks.
func end(c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c.Close(ctx)
}

// exec runs one statement. If the context ends meanwhile, the connection is closed.
func exec(ctx context.Context, c *pgconn.PgConn, sql string, args ...string) ([][][]byte, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	r := c.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return r.Rows, r.Err
}

// foreign reports whether the server at the address does not use the PostgreSQL protocol. A
// PostgreSQL server answers the request for TLS with one letter. err is the error of the
// connection; some errors already show that text was read as a message length.
// https://www.postgresql.org/docs/current/protocol-message-formats.html
func (p *pool) foreign(err error) bool {
	var text *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &text) {
		return true
	}
	if errors.Is(err, context.Canceled) { // after an interrupt no further request is sent
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	network, address := pgconn.NetworkAddress(p.config.Host, p.config.Port)
	c, err := p.config.DialFunc(ctx, network, address)
	if err != nil {
		return false
	}
	defer c.Close()
	until, _ := ctx.Deadline()
	if err := c.SetDeadline(until); err != nil {
		return false
	}
	if _, err := c.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
		return false
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the server may have answered and closed the connection already
	}
	answer := make([]byte, 1)
	n, _ := c.Read(answer) // reading nothing means that there was no answer
	return n == 1 && !strings.ContainsAny(string(answer), "SNE")
}

// cause returns the innermost cause of a failed connection, in one line.
func cause(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.Name + ": " + dns.Err
	}
	at := ""
	for {
		if op, ok := err.(*net.OpError); ok && op.Addr != nil {
			at = op.Addr.String() + ": "
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
	line, _, _ := strings.Cut(at+diag.Reason(err), "\n")
	return line
}
