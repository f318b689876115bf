package pg

import (
	"crypto/sha256"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend"
)

// A large value is read while it arrives, and the connection can be used afterwards, even
// if reading failed.
func TestLargeValues(t *testing.T) {
	s := start(t)
	o := open0(t, s.place(t), "")
	text := strings.Repeat("0123456789abcdef", 2<<20) // 32 MiB
	if _, err := o.Write(ctx, []byte(text), backend.Prior{Absent: true}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Fetch(ctx, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }); err != nil {
		t.Fatal(err) // connected
	}
	var before, after runtime.MemStats
	h := sha256.New()
	runtime.ReadMemStats(&before)
	version, err := o.Fetch(ctx, backend.Hash(h))
	runtime.ReadMemStats(&after)
	if err != nil || version == "" || [sha256.Size]byte(h.Sum(nil)) != sha256.Sum256([]byte(text)) {
		t.Errorf("%q %v", version, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("reading %d bytes allocates %d", len(text), n)
	}

	pid := func() string {
		rows, err := o.b.pool.query(ctx, "SELECT pg_backend_pid()")
		if err != nil {
			t.Fatal(err)
		}
		return string(rows[0][0])
	}
	was, wrong := pid(), errors.New("wrong")
	if _, err := o.Fetch(ctx, func(r io.Reader) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("what was read is not wanted: %v", err)
	}
	if _, err := o.Read(ctx); err != nil {
		t.Error(err)
	}
	if now := pid(); now != was {
		t.Errorf("the connection %s is not used again, but %s", was, now)
	}

	// If the connection breaks, the value is read again on another connection.
	calls := 0
	version2, err := o.Fetch(ctx, func(r io.Reader) error {
		calls++
		h.Reset()
		if _, err := io.CopyN(h, r, 5); err != nil {
			return err
		}
		if calls == 1 {
			s.ask(t, "SELECT pg_terminate_backend($1)", was)
		}
		_, err := io.Copy(h, r)
		return err
	})
	if calls != 2 || err != nil || version2 != version || [sha256.Size]byte(h.Sum(nil)) != sha256.Sum256([]byte(text)) {
		t.Errorf("%d calls, %q %v", calls, version2, err)
	}
}
