// Package pg is the backend "pg": state in a PostgreSQL table with one row per workspace,
// and the server's locks.
//
// Main types: Kind opens a table, an object is one of its rows. The one rule: a lock
// belongs to the connection that took it. So that connection is kept open, checked before
// each write, and used for writing. If it is lost, the lock is lost.
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

// Kind returns the backend "pg".
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
	creation int64  // the lock for creating a row

	mu   sync.Mutex
	made bool // schema, table and index exist
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
	if err != nil { // the error may contain parts of passwords
		a.Fail("conn_str", "The %q, together with the PG variables of the environment, is neither an address like postgres://user:password@host:5432/database nor a list like \"host=localhost user=me\", or one of the files that it names cannot be read", "conn_str")
		return nil, a.Err()
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "terrace"
	}
	if config.ConnectTimeout == 0 && !strings.Contains(connStr, "connect_timeout") { // the driver would wait without a limit
		config.ConnectTimeout = cmp.Or(s.Answer, connectTimeout)
	}
	b.pool = s.Shared.Get("pg "+connStr, func() any {
		return &pool{config: config, sleep: s.Sleep, turn: make(chan struct{}, maxBusy)}
	}).(*pool)
	return b, nil
}

// connectTimeout is the default time limit for connecting to a server.
const connectTimeout = 20 * time.Second

// settings are environment variables with the names that they have in a connection string.
// The connection string has precedence.
var settings = []struct{ env, name string }{
	{"PGHOST", "host"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
	{"PGPASSFILE", "passfile"}, {"PGAPPNAME", "application_name"}, {"PGCONNECT_TIMEOUT", "connect_timeout"},
	{"PGSSLMODE", "sslmode"}, {"PGSSLKEY", "sslkey"}, {"PGSSLCERT", "sslcert"}, {"PGSSLROOTCERT", "sslrootcert"},
	{"PGSSLPASSWORD", "sslpassword"}, {"PGTARGETSESSIONATTRS", "target_session_attrs"},
	{"PGSERVICE", "service"}, {"PGSERVICEFILE", "servicefile"}, {"PGTZ", "timezone"}, {"PGOPTIONS", "options"},
}

// withEnv adds values from the environment that are not in the connection string. Without
// sslmode, unencrypted connections are refused, as in OpenTofu and Terraform. A service
// file may contain sslmode, so with one there is no such default.
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
	return b.String() + connStr // the last value is used
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

// make creates the schema, table and index, unless they are known to exist. Readers do not
// call it.
func (b *pgBackend) make(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made {
		return nil
	}
	var err error
	for range 5 {
		// If two processes create the same object, one fails, and finds the object at the
		// next attempt.
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
		// One sequence for all tables, because its numbers identify locks of the whole
		// database.
		todo = append(todo, "CREATE SEQUENCE IF NOT EXISTS public.global_states_id_seq AS bigint",
			"CREATE TABLE IF NOT EXISTS "+b.table+" (id bigint NOT NULL DEFAULT nextval('public.global_states_id_seq') PRIMARY KEY, name text UNIQUE, data text)")
	}
	if !b.skipIndex {
		todo = append(todo, "CREATE UNIQUE INDEX IF NOT EXISTS "+quote(b.index)+" ON "+b.table+" (name)")
	}
	if len(todo) == 0 {
		return nil
	}
	// A user of the table need not have permission to create existing objects.
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

// missing reports whether the table or its schema does not exist.
func missing(err error) bool { return hasCode(err, "42P01", "3F000") }

// sequence assigns the numbers of rows.
const sequence = "public.global_states_id_seq"

// right returns the missing permission, if the server's message names the object.
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

// fail returns the error for a response of the server. Errors of the driver may contain the
// connection string, so only the innermost cause is reported.
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
		case strings.Contains(cause(err), "refused TLS"): // the driver's only indication
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
