package pg

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

// A server is PostgreSQL, shared by many tests. Each test has its own schema.
type server struct {
	url   string
	admin *pgconn.PgConn
	n     atomic.Int32
}

func start(t *testing.T) *server {
	s := &server{url: servers.Postgres(t)}
	var err error
	if s.admin, err = pgconn.Connect(ctx, s.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(s.admin) })
	return s
}

func (s *server) ask(t *testing.T, sql string, args ...string) string {
	t.Helper()
	rows, err := exec(ctx, s.admin, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		var cells []string
		for _, c := range r {
			cells = append(cells, string(c))
		}
		out = append(out, strings.Join(cells, " "))
	}
	return strings.Join(out, "\n")
}

func (s *server) place(t *testing.T) backendtest.Place {
	schema := fmt.Sprintf("s%d", s.n.Add(1))
	p := backendtest.Place{
		Config:   map[string]cty.Value{"conn_str": cty.StringVal(s.url), "schema_name": cty.StringVal(schema)},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Secrets: []string{"secret"},
		Steal: func(t *testing.T) {
			h := fnv.New32()
			h.Write([]byte(schema + "\x00states"))
			s.ask(t, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) IN ($1, (SELECT id FROM `+schema+`.states WHERE name = 'default'))`, fmt.Sprint(-int64(h.Sum32())))
		},
	}
	return p
}

func TestSuite(t *testing.T) {
	s := start(t)
	backendtest.Run(t, Kind(), s.place)
}

func open0(t *testing.T, p backendtest.Place, workspace string) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

func TestServer(t *testing.T) {
	s := start(t)
	t.Run("reading creates nothing", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "")
		if got, err := o.Read(ctx); err != nil || got.Data != nil {
			t.Errorf("%v %v", got, err)
		}
		if got := s.ask(t, "SELECT count(*) FROM information_schema.schemata WHERE schema_name = $1", o.b.schema); got != "0" {
			t.Error("there is a schema")
		}
	})
	t.Run("init creates schema and table", func(t *testing.T) {
		p := s.place(t)
		b := backendtest.Open(t, Kind(), p).(*pgBackend)
		if err := b.Initialize(ctx); err != nil {
			t.Fatal(err)
		}
		if got := s.ask(t, "SELECT count(*) FROM "+b.table); got != "0" {
			t.Errorf("%q rows", got)
		}
		if err := backendtest.Open(t, Kind(), p).(*pgBackend).Initialize(ctx); err != nil { // exists already
			t.Error(err)
		}
	})
	t.Run("layout", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "w")
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, ""); err != nil {
			t.Fatal(err)
		}
		if got := s.ask(t, "SELECT name, data, id > 0 FROM "+o.b.table); got != "w {}\n t" {
			t.Errorf("%q", got)
		}
		if got := s.ask(t, "SELECT indexname FROM pg_indexes WHERE schemaname = $1 ORDER BY 1", o.b.schema); got != "states_by_name\nstates_name_key\nstates_pkey" {
			t.Error(got)
		}
		if got := s.ask(t, "SELECT column_name, data_type, column_default FROM information_schema.columns WHERE table_schema = $1 ORDER BY ordinal_position", o.b.schema); got != "id bigint nextval('global_states_id_seq'::regclass)\nname text \ndata text " {
			t.Error(got)
		}
	})
	t.Run("numbers of locks", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "")
		id, err := o.Lock(ctx, store.LockInfo{ID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		locks := "SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1"
		if got := s.ask(t, locks); got != fmt.Sprint(o.b.creation) {
			t.Errorf("without a row: %s, want %d", got, o.b.creation)
		}
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
			t.Fatal(err)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Fatal(err)
		}
		if id, err = o.Lock(ctx, store.LockInfo{ID: "2"}); err != nil {
			t.Fatal(err)
		}
		if got, want := s.ask(t, locks), s.ask(t, "SELECT id FROM "+o.b.table); got != want {
			t.Errorf("with a row: %s, want %s", got, want)
		}
		// Another state has a lock of its own.
		other := open0(t, p, "other")
		if id, err := other.Lock(ctx, store.LockInfo{ID: "3"}); err != nil {
			t.Error(err)
		} else if err := other.Unlock(ctx, id); err != nil {
			t.Error(err)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Fatal(err)
		}
		if got := s.ask(t, locks); got != "" {
			t.Errorf("after unlocking: %s", got)
		}
	})
	t.Run("an interrupt keeps the lock", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "")
		c, cancel := context.WithCancel(ctx)
		id, err := o.Lock(c, store.LockInfo{ID: "1", Info: "a */ DROP TABLE x; /* b"})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := o.Write(c, []byte("{}"), backend.Prior{Unknown: true}, id); err == nil {
			t.Error("written though the context has ended")
		}
		if _, err := o.Write(ctx, []byte("{}"), backend.Prior{Unknown: true}, id); err != nil {
			t.Error(err)
		}
		var locked *backend.LockedError
		if _, err := open0(t, p, "").Lock(ctx, store.LockInfo{ID: "2"}); !errors.As(err, &locked) || locked.Holder == nil || locked.Holder.Info != "a */ DROP TABLE x; /* b" {
			t.Errorf("%v", err)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Error(err)
		}
	})
	t.Run("a user that may only use the table", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "")
		if err := o.b.make(ctx); err != nil {
			t.Fatal(err)
		}
		s.ask(t, "CREATE ROLE little LOGIN PASSWORD 'small-secret'")
		u, _ := url.Parse(s.url)
		u.User = url.UserPassword("little", "small-secret")
		p.Config["conn_str"] = cty.StringVal(u.String())
		little := open0(t, p, "")
		_, err := little.Write(ctx, []byte("{}"), backend.Prior{Unknown: true}, "")
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != "schema_name" || !strings.Contains(e.Advice, "USAGE") {
			t.Errorf("%#v", e)
		}
		s.ask(t, "GRANT USAGE ON SCHEMA "+o.b.schema+" TO little")
		s.ask(t, "GRANT ALL ON "+o.b.table+" TO little")
		s.ask(t, "GRANT USAGE ON public.global_states_id_seq TO little")
		if _, err := little.Write(ctx, []byte("{}"), backend.Prior{Unknown: true}, ""); err != nil {
			t.Error(err)
		}
		// The lock info in a session of another user is not shown, but the name of that
		// user is.
		id, err := o.Lock(ctx, store.LockInfo{ID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		var locked *backend.LockedError
		if _, err := little.Lock(ctx, store.LockInfo{ID: "2"}); !errors.As(err, &locked) || locked.Holder == nil || !strings.HasPrefix(locked.Holder.Who, "postgres@") || locked.Holder.ID == "" {
			t.Errorf("%v", err)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Error(err)
		}
	})
	t.Run("beside OpenTofu", func(t *testing.T) {
		p := s.place(t)
		p.Anonymous = true // OpenTofu stores no lock info, and shows its own
		backendtest.Beside(t, Kind(), p, `
    conn_str    = "`+s.url+`"
    schema_name = "`+p.Config["schema_name"].AsString()+`"`)
	})
	t.Run("failures", func(t *testing.T) {
		u, _ := url.Parse(s.url)
		wrong := *u
		wrong.User = url.UserPassword("postgres", "planted")
		none := *u
		none.Path = "/none"
		gone := *u
		gone.Host = "127.0.0.1:1"
		for conn, want := range map[string]string{
			wrong.String(): "password authentication failed",
			none.String():  `database "none" does not exist`,
			gone.String():  "connection refused",
			"postgres://u:planted@127.0.0.1:5/x?sslmode=never": "",
			"postgres://u:plan%zzted@h/":                       "",
		} {
			p := backendtest.Place{Services: backendtest.Services(t), Config: map[string]cty.Value{"conn_str": cty.StringVal(conn)}}
			b, err := Kind().Open(ctx, backendtest.Config(t, Kind(), p.Config), p.Services)
			if err == nil {
				_, err = b.List(ctx)
			}
			var e *backend.Error
			if !errors.As(err, &e) || e.Argument != "conn_str" || !strings.Contains(e.Answer, want) || strings.Contains(err.Error(), "plan") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", conn, err)
			}
		}
	})
	t.Run("a server that starts anew", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "")
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, ""); err != nil {
			t.Fatal(err)
		}
		s.ask(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		time.Sleep(100 * time.Millisecond)
		if got, err := o.Read(ctx); err != nil || string(got.Data) != "{}\n" {
			t.Errorf("%v %v", got, err)
		}
	})
}

// An error of the connection is reported in one line, with the argument, advice, and the
// missing permission.
func TestMessages(t *testing.T) {
	s := start(t)
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.ask(t, `CREATE ROLE little LOGIN PASSWORD 'planted-little'`)
	made := s.place(t)
	made.Config["schema_name"] = cty.StringVal("made")
	st, err := backendtest.Open(t, Kind(), made).Store("", backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ds := st.Write(ctx, storetest.Sample(1)); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	with := func(change func(u *url.URL)) string {
		other := *u
		change(&other)
		return other.String()
	}
	for name, tc := range map[string]struct{ connection, argument, want, permission string }{
		"password":   {with(func(u *url.URL) { u.User = url.UserPassword("postgres", "planted-wrong") }), "conn_str", "Check user and password", ""},
		"user":       {with(func(u *url.URL) { u.User = url.UserPassword("nobody", "planted-wrong") }), "conn_str", "Check user and password", ""},
		"database":   {with(func(u *url.URL) { u.Path = "/none" }), "conn_str", "Create the database", ""},
		"permission": {with(func(u *url.URL) { u.User = url.UserPassword("little", "planted-little") }), "schema_name", "USAGE on the schema", `USAGE on the schema "made"`},
		"no TLS":     {with(func(u *url.URL) { u.RawQuery = "sslmode=require" }), "conn_str", "the server has no TLS", ""},
		"nobody":     {with(func(u *url.URL) { u.Host = "127.0.0.1:1" }), "conn_str", "connection refused", ""},
		"web site": {with(func(u *url.URL) {
			u.Host, u.RawQuery = web.Listener.Addr().String(), "sslmode=disable&connect_timeout=1"
		}), "conn_str", "does not speak the protocol of PostgreSQL", ""},
		"no name": {with(func(u *url.URL) { u.Host = "no-such-host.invalid" }), "conn_str", "The name is not known", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.place(t)
			p.Config["conn_str"], p.Config["schema_name"] = cty.StringVal(tc.connection), cty.StringVal("made")
			_, err := open0(t, p, "").Read(ctx)
			e, ok := errors.AsType[*backend.Error](err)
			if !ok || e.Argument != tc.argument || !strings.Contains(e.Error(), tc.want) || !strings.Contains(e.Permission, tc.permission) || e.Advice == "" || strings.Contains(e.Error(), "planted") || strings.Contains(e.Error(), "\n") {
				t.Errorf("%#v", e)
			}
			t.Log(e)
		})
	}
	t.Run("who may read alone", func(t *testing.T) {
		s.ask(t, `GRANT USAGE ON SCHEMA made TO little`)
		s.ask(t, `GRANT SELECT ON made.states TO little`)
		p := s.place(t)
		p.Config["conn_str"], p.Config["schema_name"] = cty.StringVal(with(func(u *url.URL) { u.User = url.UserPassword("little", "planted-little") })), cty.StringVal("made")
		needs := func() string {
			t.Helper()
			var out []string
			doctor.Run(ctx, backendtest.Open(t, Kind(), p), store.Default, backend.StoreOptions{}, store.LockInfo{}, func(f backend.Finding) {
				if !f.OK {
					out = append(out, f.What+": "+f.Permission)
				}
			})
			return strings.Join(out, "\n")
		}
		for _, step := range []struct{ grant, want string }{
			{`REVOKE USAGE ON SEQUENCE public.global_states_id_seq FROM little`, `room for a journal: CREATE on the schema "made"
rights: INSERT, UPDATE, DELETE on the table "made"."states"; USAGE on the sequence public.global_states_id_seq`},
			{`GRANT INSERT, UPDATE, DELETE ON made.states TO little`, `room for a journal: CREATE on the schema "made"
rights: USAGE on the sequence public.global_states_id_seq`},
			{`GRANT USAGE ON SEQUENCE public.global_states_id_seq TO little`, `room for a journal: CREATE on the schema "made"`},
			{`GRANT CREATE ON SCHEMA made TO little`, ""},
		} {
			s.ask(t, step.grant)
			if got := needs(); got != step.want {
				t.Errorf("after %s:\n%s\nwant\n%s", step.grant, got, step.want)
			}
		}
	})
}

func TestEnvironment(t *testing.T) {
	env := sys.Env{"PGHOST=h", "PGUSER=it's", "PGPASSWORD=p", "PGSSLMODE=disable"}
	for in, want := range map[string]string{
		"":                      `host='h' user='it\'s' password='p' sslmode='disable' `,
		"user=me":               `host='h' user='it\'s' password='p' sslmode='disable' user=me`,
		"postgres://x:y@z/d":    "postgres://x:y@z/d?sslmode=disable",
		"postgres:///d?user=me": "postgres:///d?host=h&password=p&sslmode=disable&user=me",
		"postgresql://z?a=b":    "postgresql://z?a=b&password=p&sslmode=disable&user=it%27s",
	} {
		if got := withEnv(in, env); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if _, err := pgconn.ParseConfig(withEnv(in, env)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	for in, plain := range map[string]bool{"host=h": false, "postgres://h": false, "postgres://h?sslmode=prefer": true, "sslmode=disable host=h": true} {
		c, err := pgconn.ParseConfig(withEnv(in, nil))
		if err != nil {
			t.Fatal(err)
		}
		got := c.TLSConfig == nil
		for _, f := range c.Fallbacks {
			got = got || f.TLSConfig == nil
		}
		if got != plain {
			t.Errorf("%s: connections in the clear: %v, want %v", in, got, plain)
		}
	}
}

// A server that does not respond is waited for as long as configured, and never without a
// limit.
func TestConnectTimeout(t *testing.T) {
	for connection, want := range map[string]time.Duration{
		"postgres://u@h/d":                   connectTimeout,
		"host=h user=u":                      connectTimeout,
		"postgres://u@h/d?connect_timeout=3": 3 * time.Second,
		"host=h connect_timeout=0":           0, // configured by the user
	} {
		p := backendtest.Place{Services: backendtest.Services(t), Config: map[string]cty.Value{"conn_str": cty.StringVal(connection)}}
		if got := backendtest.Open(t, Kind(), p).(*pgBackend).pool.config.ConnectTimeout; got != want {
			t.Errorf("%s: %s, not %s", connection, got, want)
		}
	}
}
