package pg

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// Check implements backend.Checker.
func (b *pgBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	rows, err := b.pool.query(ctx, `
		SELECT current_setting('server_version_num')::int >= 100000, current_setting('server_version'),
			coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
			to_regclass($1) IS NOT NULL,
			has_database_privilege(current_database(), 'CREATE'),
			current_user, extract(epoch FROM clock_timestamp())::bigint,
			coalesce(inet_server_addr() = inet_client_addr(), true)`, b.table)
	if err != nil {
		report(backend.Failed("connection", b.fail("", err)))
		return
	}
	text := func(i int) string { return string(rows[0][i]) }
	report(backend.Finding{What: "credentials", OK: true, Detail: "the user " + text(5)})
	report(backend.Finding{What: "version of the server", OK: text(0) == "t", Detail: text(1) + "; 10 is needed"})
	f := backend.Finding{What: "encryption on the way", OK: true, Detail: "TLS"}
	switch {
	case text(2) == "t":
	case text(7) == "t":
		f.Detail = "the server is on this machine"
	default:
		f.OK, f.Detail = false, "none: set sslmode"
	}
	report(f)
	if text(3) == "t" {
		b.checkTable(ctx, report)
	} else {
		f := backend.Finding{What: "table " + b.table, OK: !b.skipTable && text(4) == "t", Detail: "it is not there yet and is created when a state is first locked or written"}
		if b.skipTable {
			f.Detail = "it is not there, and skip_table_creation is set"
		} else if !f.OK {
			f.Permission = "CREATE on the database"
		}
		report(f)
	}
	backend.CheckNoVersioning("the table keeps no older states: back up the database", report)
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: "PostgreSQL has none of its own: what it keeps is as safe as its disks; an encryption block seals the state"})
	seconds, err := strconv.ParseInt(text(6), 10, 64)
	backend.CheckClock(clock{b.s.Now().Sub(time.Unix(seconds, 0)), err == nil}, report)
}

// A clock is how far this machine's is ahead of the server's.
type clock struct {
	ahead time.Duration
	known bool
}

func (c clock) Clock() (time.Duration, bool) { return c.ahead, c.known }

// errProbed ends the transaction of a probe, so that nothing of it is left.
var errProbed = errors.New("probed")

// checkTable writes a row in a transaction that is rolled back, with the condition of
// writes of states and without.
func (b *pgBackend) checkTable(ctx context.Context, report func(backend.Finding)) {
	const what = "conditional writes"
	name := "doctor/" + store.NewID()
	kept := false
	err := b.pool.rolledBack(ctx, func(exec func(sql string, args ...string) ([][][]byte, error)) error {
		rows, err := exec("INSERT INTO "+b.table+" (name, data) VALUES ($1, '{}') RETURNING xmin::text", name)
		if err != nil {
			return err
		}
		for version, want := range map[string]int{string(rows[0][0]) + "0": 0, string(rows[0][0]): 1} {
			got, err := exec("UPDATE "+b.table+" SET data = '[]' WHERE name = $1 AND xmin::text = $2 RETURNING 1", name, version)
			if err != nil {
				return err
			}
			if kept = len(got) == want; !kept {
				return errProbed
			}
		}
		if _, err = exec("DELETE FROM "+b.table+" WHERE name = $1", name); err != nil {
			return err
		}
		return errProbed
	})
	switch {
	case !errors.Is(err, errProbed):
		report(backend.Failed(what, b.fail("", err)))
	case kept:
		report(backend.Finding{What: what, OK: true, Detail: "the server keeps them"})
	default:
		report(backend.Finding{What: what, Detail: "the server does not keep them (xmin): it is none that works as PostgreSQL does"})
	}
}
