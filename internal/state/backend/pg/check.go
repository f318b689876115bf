package pg

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// Check implements backend.Checker.
func (b *pgBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	rows, err := b.pool.query(ctx, `
		SELECT current_setting('server_version_num')::int >= 100000, current_setting('server_version'),
			coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
			has_database_privilege(current_database(), 'CREATE'),
			current_user, extract(epoch FROM clock_timestamp())::bigint,
			coalesce(inet_server_addr() = inet_client_addr(), true)`)
	if err != nil {
		report(backend.Failed("connection", b.fail("", err)))
		return
	}
	text := func(i int) string { return string(rows[0][i]) }
	report(backend.Finding{What: "credentials", OK: true, Detail: "the user " + text(4)})
	report(backend.Finding{What: "version of the server", OK: text(0) == "t", Detail: text(1) + "; 10 is needed"})
	f := backend.Finding{What: "encryption on the way", OK: true, Detail: "TLS"}
	switch {
	case text(2) == "t":
	case text(6) == "t":
		f.Detail = "the server is on this machine"
	default:
		f.OK, f.Detail = false, "none: set sslmode"
	}
	report(f)
	there, lacking, err := b.lacking(ctx)
	switch {
	case err != nil:
		report(backend.Failed("rights", b.fail("", err)))
	case there:
		f := backend.Finding{What: "rights", OK: len(lacking) == 0, Detail: "on " + b.table, Permission: strings.Join(lacking, "; ")}
		if report(f); f.OK {
			b.checkTable(ctx, report)
		}
	default:
		f := backend.Finding{What: "table " + b.table, OK: !b.skipTable && text(3) == "t", Detail: "it is not there yet and is created when a state is first locked or written"}
		if b.skipTable {
			f.Detail = "it is not there, and skip_table_creation is set"
		} else if !f.OK {
			f.Permission = "CREATE on the database"
		}
		report(f)
	}
	backend.CheckNoVersioning("the table keeps no older states: back up the database", report)
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: "PostgreSQL has none of its own: what it keeps is as safe as its disks; an encryption block seals the state"})
	seconds, err := strconv.ParseInt(text(5), 10, 64)
	backend.CheckClock(clock{b.s.Now().Sub(time.Unix(seconds, 0)), err == nil}, report)
}

// lacking returns the permissions that the user needs and does not have. there reports
// whether the table exists. It reads the catalog, which every user may read.
func (b *pgBackend) lacking(ctx context.Context) (there bool, rights []string, err error) {
	rows, err := b.pool.query(ctx, `
		SELECT has_schema_privilege(n.oid, 'USAGE'),
			has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
			coalesce((SELECT has_sequence_privilege(s.oid, 'USAGE') OR has_sequence_privilege(s.oid, 'UPDATE')
				FROM pg_class s JOIN pg_namespace p ON p.oid = s.relnamespace WHERE p.nspname = 'public' AND s.relname = 'global_states_id_seq' AND s.relkind = 'S'), true)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`, b.schema, b.tableName)
	if err != nil || len(rows) == 0 {
		return false, nil, err
	}
	has := func(i int) bool { return string(rows[0][i]) == "t" }
	if !has(0) {
		rights = append(rights, "USAGE on the schema "+quote(b.schema))
	}
	var verbs []string
	for i, verb := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
		if !has(1 + i) {
			verbs = append(verbs, verb)
		}
	}
	if len(verbs) > 0 {
		rights = append(rights, strings.Join(verbs, ", ")+" on the table "+b.table)
	}
	if !has(5) {
		rights = append(rights, "USAGE on the sequence "+sequence)
	}
	return true, rights, nil
}

// A clock is the time by which this machine's clock is ahead of the server's.
type clock struct {
	ahead time.Duration
	known bool
}

func (c clock) Clock() (time.Duration, bool) { return c.ahead, c.known }

// errProbed rolls back the transaction of a probe.
var errProbed = errors.New("probed")

// checkTable writes a row in a transaction that is rolled back, both with and without the
// condition of writes.
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
