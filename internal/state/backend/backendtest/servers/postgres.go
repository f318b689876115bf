package servers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Postgres starts PostgreSQL and returns the address of an empty database. Its user is
// "postgres" with the password "secret". The server does not run as root.
func Postgres(t testing.TB) string {
	initdb := program(t, "initdb", "on Debian it is in the package postgresql", "/usr/lib/postgresql/*/bin/initdb", "/usr/local/pgsql/bin/initdb")
	as := ordinary(t, "postgres", "nobody")
	dir := folder(t, as)
	data := filepath.Join(dir, "data")
	cmd := exec.Command("/bin/sh", "-c", `echo secret >"$1/pw" && exec "$2" -D "$3" -U postgres --pwfile="$1/pw" -A scram-sha-256 --no-sync --locale=C -E UTF8`, "sh", dir, initdb, data)
	cmd.Dir = "/"
	cmd.SysProcAttr = process(as)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port := freePort(t)
	url := fmt.Sprintf("postgres://postgres:secret@%s/postgres?sslmode=disable", local(port))
	ready := func(ctx context.Context) error {
		c, err := pgconn.Connect(ctx, url)
		if err != nil {
			return err
		}
		return c.Close(ctx)
	}
	run(t, as, syscall.SIGINT, ready, filepath.Join(filepath.Dir(initdb), "postgres"),
		"-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", dir, "-c", "fsync=off")
	return url
}
