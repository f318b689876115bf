package pg

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// An object is the row of one workspace. Its version is xmin, the transaction that last
// wrote the row.
type object struct {
	b    *pgBackend
	name string

	mu   sync.Mutex // held while the lock's connection is in use
	held *held      // nil without a lock
}

// A held is a connection that holds the lock.
type held struct {
	conn   *pgconn.PgConn
	number int64
	info   store.LockInfo
}

// exec runs a statement on the connection that holds the lock. If a context ended, the
// library would close the connection, and release the lock. So the statement gets a time
// limit of its own. The text of each statement contains the lock's info, because the server
// shows that text to other users.
func (h *held) exec(ctx context.Context, sql string, args ...string) ([][][]byte, error) {
	ctx, cancel := h.within(ctx, 0)
	defer cancel()
	return exec(ctx, h.conn, comment(h.info)+sql, args...)
}

// within returns the context for a statement that sends size bytes.
func (h *held) within(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Minute+time.Duration(size)*10*time.Microsecond)
}

// comment returns the info as an SQL comment. Comments in SQL are nested.
func comment(info store.LockInfo) string {
	return "/*" + strings.ReplaceAll(string(info.JSON()), "*", `\u002a`) + "*/ "
}

// Read implements backend.Object.
func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	row, found, err := o.b.pool.fetch(ctx, take, "SELECT data, xmin::text FROM "+o.b.table+" WHERE name = $1", o.name)
	if missing(err) || err == nil && !found {
		return "", take(bytes.NewReader(nil))
	}
	if err != nil {
		return "", o.b.fail("Failed to read the state", err)
	}
	return string(row[0]), nil
}

// Write implements backend.Object.
func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed.
func (o *object) Send(ctx context.Context, t *backend.Text, prior backend.Prior, lock string) (string, error) {
	const summary = "Failed to write the state"
	if err := ctx.Err(); err != nil {
		return "", err
	}
	table := o.b.table
	sql := "INSERT INTO " + table + " AS old (name, data) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET data = EXCLUDED.data"
	var args []string // arguments after the name and the text
	switch {
	case prior.Unknown:
	case prior.Version != "":
		sql = "UPDATE " + table + " SET data = $2 WHERE name = $1 AND xmin::text = $3"
		args = append(args, prior.Version)
	default:
		sql += " WHERE old.data IS NULL OR old.data = ''"
	}
	sql += " RETURNING xmin::text"
	if lock != "" {
		return o.writeLocked(ctx, lock, sql, t, args)
	}
	if err := o.b.make(ctx); err != nil {
		return "", err
	}
	// Not repeated: a second attempt may fail because the first succeeded.
	c, err := o.b.pool.connect(ctx)
	if err != nil {
		return "", o.b.fail(summary, err)
	}
	if err := store.Fenced(ctx); err != nil {
		o.b.pool.give(c)
		return "", err
	}
	rows, err := execText(ctx, c, sql, t, o.name, args...)
	switch {
	case err == nil && len(rows) > 0:
		o.b.pool.give(c)
		return string(rows[0][0]), nil
	case err == nil:
		o.b.pool.give(c)
		return "", backend.ErrChanged
	}
	end(c)
	if ctx.Err() == nil {
		if version, ok := o.holds(ctx, t); ok {
			return version, nil
		}
	}
	return "", o.b.fail(summary, err)
}

// holds reports whether the row has this text, and returns its version.
func (o *object) holds(ctx context.Context, t *backend.Text) (version string, ok bool) {
	h := sha256.New()
	version, err := o.Fetch(ctx, backend.Hash(h))
	return version, err == nil && [sha256.Size]byte(h.Sum(nil)) == t.SHA256()
}

// writeLocked writes on the connection that holds the lock.
func (o *object) writeLocked(ctx context.Context, lock, sql string, t *backend.Text, args []string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.held
	if h == nil || h.info.ID != lock {
		return "", backend.ErrLockLost
	}
	// A connection pooler may have given the session to another client.
	rows, err := h.exec(ctx, `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid() AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = $1`, strconv.FormatInt(h.number, 10))
	if err != nil || len(rows) == 0 {
		return "", o.lost(err)
	}
	own, cancel := h.within(ctx, t.Size())
	defer cancel()
	if err := store.Fenced(ctx); err != nil {
		return "", err
	}
	rows, err = execText(own, h.conn, comment(h.info)+sql, t, o.name, args...)
	switch {
	case err == nil && len(rows) > 0:
		return string(rows[0][0]), nil
	case err == nil:
		return "", backend.ErrChanged
	case !h.conn.IsClosed():
		return "", o.b.fail("Failed to write the state", err)
	}
	// The connection broke during the write: it is unknown whether the write succeeded.
	if version, ok := o.holds(ctx, t); ok {
		return version, nil
	}
	return "", o.lost(err)
}

// lost returns the error of a lost lock.
func (o *object) lost(err error) error {
	e := &backend.Error{Argument: "conn_str", Answer: "the session that held the lock is not there any more", Advice: "The server or something in between has closed the connection; a pooler must give each client a session of its own.", Err: backend.ErrLockLost}
	if err != nil {
		e.Answer += ": " + cause(err)
	}
	return e
}

// Lock takes an advisory lock with the number of the row. If there is no row yet, it takes
// the lock for creating rows, which other processes check too.
func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	const summary = "Error acquiring the state lock"
	if err := o.b.make(ctx); err != nil {
		return "", err
	}
	info.Path = ""
	conn, err := o.b.pool.connect(ctx)
	if err != nil {
		return "", o.b.fail(summary, err)
	}
	h := &held{conn: conn, number: o.b.creation, info: info}
	creation := strconv.FormatInt(o.b.creation, 10)
	rows, err := h.exec(ctx, "SELECT id, pg_try_advisory_lock(id), pg_try_advisory_lock($2) FROM "+o.b.table+" WHERE name = $1", o.name, creation)
	ok := false
	switch {
	case err != nil:
	case len(rows) == 0:
		if rows, err = h.exec(ctx, "SELECT pg_try_advisory_lock($1)", creation); err == nil {
			ok = string(rows[0][0]) == "t"
		}
		if ok { // another process may have created the row in between, and released its lock
			again, e := h.exec(ctx, "SELECT 1 FROM "+o.b.table+" WHERE name = $1", o.name)
			if err = e; err == nil && len(again) > 0 {
				end(conn)
				return "", &backend.LockedError{Reason: "the workspace was made by somebody else just now", Again: true}
			}
		}
	default:
		h.number, err = strconv.ParseInt(string(rows[0][0]), 10, 64)
		ok = string(rows[0][1]) == "t" && string(rows[0][2]) == "t"
		if err == nil && ok {
			_, err = h.exec(ctx, "SELECT pg_advisory_unlock($1)", creation)
		}
	}
	if err != nil {
		end(conn)
		return "", o.b.fail(summary, err)
	}
	if !ok {
		end(conn)
		holders, err := o.holders(ctx)
		if err != nil {
			return "", err
		}
		if len(holders) == 0 {
			return "", &backend.LockedError{Reason: "the state was locked a moment ago", Holder: &store.LockInfo{ID: "0"}, Again: true}
		}
		return "", &backend.LockedError{Holder: &holders[0].info}
	}
	o.mu.Lock()
	o.held = h
	o.mu.Unlock()
	return info.ID, nil
}

// A holder is a session that holds the lock.
type holder struct {
	pid  string
	info store.LockInfo
}

// holders returns the sessions that hold the lock. For a session of Terrace it returns the
// lock's info. For other sessions, and without permission to read the info, it returns the
// server's data about the session.
func (o *object) holders(ctx context.Context) ([]holder, error) {
	rows, err := o.b.pool.query(ctx, `
		SELECT DISTINCT a.pid, coalesce(a.usename, ''), coalesce(a.client_hostname, host(a.client_addr), 'localhost'), coalesce(a.application_name, ''), extract(epoch FROM a.backend_start)::bigint, coalesce(a.query, '')
		FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND ((l.classid::bigint << 32 | l.objid::bigint) = $1
			OR (l.classid::bigint << 32 | l.objid::bigint) IN (SELECT id FROM `+o.b.table+` WHERE name = $2))`,
		strconv.FormatInt(o.b.creation, 10), o.name)
	if err != nil {
		return nil, o.b.fail("Failed to find out who holds the lock", err)
	}
	var out []holder
	for _, r := range rows {
		h := holder{pid: string(r[0])}
		if text, ok := strings.CutPrefix(string(r[5]), "/*"); ok {
			text, _, _ = strings.Cut(text, "*/")
			h.info, _ = store.ParseLockInfo([]byte(text))
		}
		if h.info.ID == "" {
			since, _ := strconv.ParseInt(string(r[4]), 10, 64)
			h.info = store.LockInfo{ID: h.pid, Who: string(r[1]) + "@" + string(r[2]), Created: time.Unix(since, 0).UTC(), Info: fmt.Sprintf("session %s of the server", h.pid)}
			if len(r[3]) > 0 {
				h.info.Info += ", application " + string(r[3])
			}
		}
		out = append(out, h)
	}
	return out, nil
}

// Unlock ends the session that holds the lock, even of another process, because its lock
// cannot be released in another way.
func (o *object) Unlock(ctx context.Context, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.held; h != nil && h.info.ID == id {
		o.held = nil
		rows, err := h.exec(ctx, "SELECT pg_advisory_unlock($1)", strconv.FormatInt(h.number, 10))
		end(h.conn)
		if err != nil || string(rows[0][0]) != "t" {
			return o.lost(err)
		}
		return nil
	}
	holders, err := o.holders(ctx)
	if missing(err) || err == nil && len(holders) == 0 {
		return backend.NotHeld(id)
	}
	if err != nil {
		return err
	}
	for _, h := range holders {
		if h.info.ID != id && h.pid != id {
			continue
		}
		rows, err := o.b.pool.query(ctx, "SELECT pg_terminate_backend($1)", h.pid)
		if err != nil {
			return o.b.fail("", err)
		}
		if string(rows[0][0]) != "t" {
			return nil // the session has ended by itself
		}
		for range 50 { // ending a session takes some time
			now, err := o.holders(ctx)
			if err != nil {
				return err
			}
			if !contains(now, h.pid) {
				return nil
			}
			if err := o.b.s.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
		return &backend.Error{Answer: "the session " + h.pid + " that holds the lock was asked to end and has not"}
	}
	return backend.WrongID(id, holders[0].info.ID)
}

func contains(hs []holder, pid string) bool {
	for _, h := range hs {
		if h.pid == pid {
			return true
		}
	}
	return false
}
