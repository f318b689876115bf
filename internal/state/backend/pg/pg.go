// Package pg is the backend "pg": state in a table of PostgreSQL, a row a workspace,
// with the locks of the server.
//
// Main types: Kind opens a table, an object is one of its rows. The one rule: a lock
// belongs to the one connection that took it, so that connection is kept, asked
// before each write, and writes; with it the lock is lost.
package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind is the backend "pg".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "pg",
		Reached: []string{"conn_str"},
		Schema: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"conn_str":             cty.String,
			"schema_name":          cty.String,
			"table_name":           cty.String,
			"index_name":           cty.String,
			"skip_schema_creation": cty.Bool,
			"skip_table_creation":  cty.Bool,
			"skip_index_creation":  cty.Bool,
		})},
		Open: open,
	}
}

// A pgBackend is one table of states.
type pgBackend struct {
	s                                backend.Services
	pool                             *pool
	schema, tableName, index         string
	skipSchema, skipTable, skipIndex bool

	table    string // quoted, with its schema
	creation int64  // the lock of who makes a row

	mu   sync.Mutex
	made bool // schema, table and index are there
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &pgBackend{
		s:          s,
		schema:     a.String("schema_name", "terraform_remote_state", "PG_SCHEMA_NAME"),
		tableName:  a.String("table_name", "states", "PG_TABLE_NAME"),
		index:      a.String("index_name", "states_by_name", "PG_INDEX_NAME"),
		skipSchema: a.Bool("skip_schema_creation", false, "PG_SKIP_SCHEMA_CREATION"),
		skipTable:  a.Bool("skip_table_creation", false, "PG_SKIP_TABLE_CREATION"),
		skipIndex:  a.Bool("skip_index_creation", false, "PG_SKIP_INDEX_CREATION"),
	}
	for name, v := range map[string]string{"schema_name": b.schema, "table_name": b.tableName, "index_name": b.index} {
		if v == "" || strings.ContainsRune(v, 0) {
			a.Fail(name, "The %q is empty or no name", name)
		}
	}
	b.table = quote(b.schema) + "." + quote(b.tableName)
	h := fnv.New32()
	h.Write([]byte(b.schema + "\x00" + b.tableName))
	b.creation = -int64(h.Sum32())

	connStr := withEnv(a.String("conn_str", "", "PG_CONN_STR"), s.Env)
	config, err := pgconn.ParseConfig(connStr)
	if err != nil { // its text may show parts of passwords
		a.Fail("conn_str", "The %q, together with the PG variables of the environment, is neither an address like postgres://user:password@host:5432/database nor a list like \"host=localhost user=me\", or one of the files that it names cannot be read", "conn_str")
		return nil, a.Err()
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "terrace"
	}
	if config.ConnectTimeout == 0 && !strings.Contains(connStr, "connect_timeout") { // the driver would wait for ever
		config.ConnectTimeout = cmp.Or(s.Answer, connectTimeout)
	}
	b.pool = s.Shared.Get("pg "+connStr, func() any {
		return &pool{config: config, sleep: s.Sleep, turn: make(chan struct{}, maxBusy)}
	}).(*pool)
	return b, nil
}

// connectTimeout is how long a server may take until there is a connection, where nobody says
// it.
const connectTimeout = 20 * time.Second

// settings are the variables of the environment that stand behind a connection string,
// by the names that they have in it.
var settings = []struct{ env, name string }{
	{"PGHOST", "host"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
	{"PGPASSFILE", "passfile"}, {"PGAPPNAME", "application_name"}, {"PGCONNECT_TIMEOUT", "connect_timeout"},
	{"PGSSLMODE", "sslmode"}, {"PGSSLKEY", "sslkey"}, {"PGSSLCERT", "sslcert"}, {"PGSSLROOTCERT", "sslrootcert"},
	{"PGSSLPASSWORD", "sslpassword"}, {"PGTARGETSESSIONATTRS", "target_session_attrs"},
	{"PGSERVICE", "service"}, {"PGSERVICEFILE", "servicefile"}, {"PGTZ", "timezone"}, {"PGOPTIONS", "options"},
}

// withEnv adds what the environment says to a connection string that does not say it.
// Without a word on sslmode, connections that are not encrypted are refused, as the
// peers do it; a service file is not known here and has its own word.
func withEnv(connStr string, env sys.Env) string {
	if env.Get("PGSSLMODE") == "" && env.Get("PGSERVICE") == "" && !strings.Contains(connStr, "service=") {
		env = env.With("PGSSLMODE=require")
	}
	if strings.HasPrefix(connStr, "postgres://") || strings.HasPrefix(connStr, "postgresql://") {
		u, err := url.Parse(connStr)
		if err != nil {
			return connStr
		}
		q := u.Query()
		_, password := u.User.Password()
		said := map[string]bool{"host": u.Hostname() != "", "port": u.Port() != "", "dbname": strings.Trim(u.Path, "/") != "" || q.Has("database"), "user": u.User.Username() != "", "password": password}
		for _, s := range settings {
			if v := env.Get(s.env); v != "" && !said[s.name] && !q.Has(s.name) {
				q.Set(s.name, v)
			}
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	var b strings.Builder
	for _, s := range settings {
		if v := env.Get(s.env); v != "" {
			fmt.Fprintf(&b, "%s='%s' ", s.name, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v))
		}
	}
	return b.String() + connStr // the last one counts
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (b *pgBackend) List(ctx context.Context) ([]string, error) {
	rows, err := b.pool.query(ctx, "SELECT name FROM "+b.table+" WHERE name <> 'default'")
	if err != nil && !missing(err) {
		return nil, b.fail("Failed to list workspaces", err)
	}
	names := []string{store.Default}
	for _, r := range rows {
		names = append(names, string(r[0]))
	}
	slices.Sort(names[1:])
	return names, nil
}

func (b *pgBackend) Delete(ctx context.Context, workspace string) error {
	_, err := b.pool.query(ctx, "DELETE FROM "+b.table+" WHERE name = $1", workspace)
	if err != nil && !missing(err) {
		return b.fail("Failed to delete the state", err)
	}
	if _, err := b.pool.query(ctx, "DELETE FROM "+b.blobs()+" WHERE workspace = $1", workspace); err != nil && !missing(err) {
		return b.fail("Failed to delete what is beside the state", err)
	}
	return nil
}

func (b *pgBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	return backend.NewStore(&object{b: b, name: workspace}, fmt.Sprintf("pg:%s.%s/%s", b.schema, b.tableName, workspace), o, b.s), nil
}

// Initialize implements backend.Initializer.
func (b *pgBackend) Initialize(ctx context.Context) error { return b.make(ctx) }

// make creates what states live in, unless that is known to be there. Who only reads
// does not come here.
func (b *pgBackend) make(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made {
		return nil
	}
	var err error
	for range 5 {
		// Of two that create the same at the same time one fails, and finds it the next time.
		if err = b.create(ctx); !hasCode(err, "23505", "42P06", "42P07", "42710", "XX000") {
			break
		}
	}
	if err != nil {
		return b.fail("Failed to prepare the table of states", err)
	}
	b.made = true
	return nil
}

func (b *pgBackend) create(ctx context.Context) error {
	if !b.skipSchema {
		rows, err := b.pool.query(ctx, "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1", b.schema)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			if _, err := b.pool.query(ctx, "CREATE SCHEMA IF NOT EXISTS "+quote(b.schema)); err != nil {
				return err
			}
		}
	}
	var todo []string
	if !b.skipTable {
		// One sequence for all tables, since its numbers are the locks of a database.
		todo = append(todo, "CREATE SEQUENCE IF NOT EXISTS public.global_states_id_seq AS bigint",
			"CREATE TABLE IF NOT EXISTS "+b.table+" (id bigint NOT NULL DEFAULT nextval('public.global_states_id_seq') PRIMARY KEY, name text UNIQUE, data text)")
	}
	if !b.skipIndex {
		todo = append(todo, "CREATE UNIQUE INDEX IF NOT EXISTS "+quote(b.index)+" ON "+b.table+" (name)")
	}
	if len(todo) == 0 {
		return nil
	}
	// Who may only use the table need not be allowed to create what is there.
	rows, err := b.pool.query(ctx, "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL", b.table, quote(b.schema)+"."+quote(b.index))
	if err != nil {
		return err
	}
	if string(rows[0][0]) == "t" {
		return nil
	}
	for _, sql := range todo {
		if _, err := b.pool.query(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func hasCode(err error, codes ...string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// missing reports whether the table or its schema is not there.
func missing(err error) bool { return hasCode(err, "42P01", "3F000") }

// sequence gives the rows their numbers.
const sequence = "public.global_states_id_seq"

// right is the right that is missing where the server says on what it was denied.
func (b *pgBackend) right(summary, message string) string {
	on, _ := strings.CutPrefix(message, "permission denied for ")
	kind, name, _ := strings.Cut(on, " ")
	switch {
	case kind == "sequence":
		return "USAGE on the sequence " + sequence
	case kind == "database":
		return "CREATE on the database"
	case kind == "schema" && name != b.schema:
		return "CREATE on the schema " + name
	case kind == "schema" && summary == besideFailed:
		return "CREATE on the schema " + quote(b.schema)
	case kind == "schema":
		return "USAGE on the schema " + quote(b.schema)
	case quote(b.schema)+"."+quote(name) == b.blobs():
		return "SELECT, INSERT, UPDATE and DELETE on the table " + b.blobs()
	}
	return "SELECT, INSERT, UPDATE and DELETE on the table " + b.table
}

// fail makes the error of what the server answered. What the driver says of a
// connection may show the connection string, so only its innermost cause is reported.
func (b *pgBackend) fail(summary string, err error) error {
	out := &backend.Error{Summary: summary, Argument: "conn_str", Err: err}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		out.Answer = "no connection to the server: " + cause(err)
		out.Advice = rest.Reach(err, "sslrootcert of conn_str, or PGSSLROOTCERT,", "Check host, port, sslmode and the network in conn_str, PG_CONN_STR or the PG variables.")
		switch {
		case b.pool.foreign(err):
			out.Answer = "what answers there does not speak the protocol of PostgreSQL"
			out.Advice = "Check host and port in conn_str, PG_CONN_STR or the PG variables, and whether a proxy or a portal stands in between."
		case errors.Is(err, context.DeadlineExceeded):
			out.Answer = fmt.Sprintf("no connection to the server within %s: it took too long", b.pool.config.ConnectTimeout)
			out.Advice += " A server that takes longer is waited for with connect_timeout, in seconds, in conn_str, or with PGCONNECT_TIMEOUT, which go before that variable."
		case strings.Contains(cause(err), "refused TLS"): // the driver has no other sign of it
			out.Answer = "the server has no TLS"
			out.Advice = "Switch TLS on at the server (ssl = on), or, where nobody else can listen, set sslmode=disable in conn_str or PGSSLMODE."
		}
		return out
	}
	out.Answer = fmt.Sprintf("the server answered: %s (%s)", strings.ReplaceAll(e.Message, "\n", " "), e.Code)
	switch {
	case strings.HasPrefix(e.Code, "28"):
		out.Advice = "Check user and password in conn_str, PG_CONN_STR, PGUSER and PGPASSWORD."
	case e.Code == "3D000":
		out.Advice = "Create the database, or name another one."
	case e.Code == "53300":
		out.Advice = "Too many connections are open; raise max_connections of the server or run fewer things at the same time."
	case e.Code == "42501":
		out.Argument = "schema_name"
		out.Permission = b.right(summary, e.Message)
		out.Advice = fmt.Sprintf("The user needs %s. For all of this backend: USAGE on the schema %s; SELECT, INSERT, UPDATE and DELETE on the table %s; USAGE on the sequence %s; CREATE on the schema, once, for a journal in the store; and CREATE on the database and on the schema public unless all this was made before.", out.Permission, quote(b.schema), b.table, sequence)
	case missing(err):
		out.Argument = "table_name"
		out.Advice = fmt.Sprintf("The table %s is missing: create it, or leave out skip_schema_creation and skip_table_creation.", b.table)
	default:
		out.Advice = "The log of the server says more."
	}
	return out
}
