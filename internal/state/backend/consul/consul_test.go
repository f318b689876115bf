package consul

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

func place(t *testing.T, s *servers.ConsulServer) backendtest.Place {
	s.Token = "planted-token"
	return backendtest.Place{
		Config:   map[string]cty.Value{"path": cty.StringVal("team/app"), "address": cty.StringVal(s.Address), "access_token": cty.StringVal("planted-token")},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Steal:   func(*testing.T) { s.Invalidate("team/app/.lock") },
		Secrets: []string{"planted-token"},
	}
}

func TestSuite(t *testing.T) {
	for name, config := range map[string]map[string]cty.Value{"plain": nil, "gzip": {"gzip": cty.True}, "without locks": {"lock": cty.False}} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
				p := place(t, servers.Consul(t))
				for k, v := range config {
					p.Config[k] = v
				}
				if config["lock"] == cty.False {
					p.Locks, p.Steal = false, nil
				}
				return p
			})
		})
	}
}

func open0(t *testing.T, p backendtest.Place, workspace string) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

func TestLayout(t *testing.T) {
	s := servers.Consul(t)
	p := place(t, s)
	o, w := open0(t, p, ""), open0(t, p, "dev")
	for _, o := range []*object{o, w} {
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, ""); err != nil {
			t.Fatal(err)
		}
	}
	id, err := o.Lock(ctx, store.LockInfo{ID: "x", Operation: "op", Who: "me", Version: "1.12.6", Created: time.Unix(0, 1).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Keys(), " "); got != "team/app team/app-env:dev team/app/.lock team/app/.lockinfo" {
		t.Error(got)
	}
	want := `{"ID":"` + id + `","Operation":"op","Info":"consul session: ` + id + `","Who":"me","Version":"1.12.6","Created":"1970-01-01T00:00:00.000000001Z","Path":"team/app"}`
	if got := s.Value("team/app/.lockinfo"); got != want {
		t.Error(got)
	}
	if err := o.Unlock(ctx, id); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Keys(), " "); got != "team/app team/app-env:dev" {
		t.Error(got)
	}
}

// A state that does not fit into a transaction is stored in chunks. The chunks of the
// previous state are deleted.
func TestChunks(t *testing.T) {
	s := servers.Consul(t)
	o := open0(t, place(t, s), "")
	random := make([]byte, 900_000)
	rand.Read(random)
	large := []byte(`{"x":"` + hex.EncodeToString(random[:600_000]) + `"}`)
	larger := []byte(`{"x":"` + hex.EncodeToString(random) + `"}`)
	prior := backend.Prior{Absent: true}
	for _, data := range [][]byte{large, larger, []byte("{}\n"), larger} {
		v, err := o.Write(ctx, data, prior, "")
		if err != nil {
			t.Fatal(err)
		}
		prior = backend.Prior{Version: v}
		got, err := open0(t, place(t, s), "").Read(ctx)
		if err != nil || !bytes.Equal(got.Data, data) || got.Version != v {
			t.Errorf("%d bytes: read %d, %v", len(data), len(got.Data), err)
		}
		if want := 1 + (len(data)+chunkSize-1)/chunkSize; len(data) > chunkSize && len(s.Keys()) != want || len(data) < 10 && len(s.Keys()) != 1 {
			t.Errorf("%d bytes: %v", len(data), s.Keys())
		}
	}
	if main := s.Value("team/app"); !strings.HasPrefix(main, `{"chunks":["team/app/tfstate.`) || !strings.Contains(main, `/0","team/app/tfstate.`) || !strings.Contains(main, `"current-hash":"`) {
		t.Error(main)
	}
	// A damaged state is not returned.
	key := s.Keys()[2]
	if err := o.b.put(ctx, key, []byte("other"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Read(ctx); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Error(err)
	}
	if err := o.b.Delete(ctx, "default"); err != nil {
		t.Fatal(err)
	}
	if len(s.Keys()) != 0 {
		t.Errorf("left: %v", s.Keys())
	}
}

// The list of chunks of a state of maximum size fits into one transaction.
func TestLimit(t *testing.T) {
	s := servers.Consul(t)
	p := place(t, s)
	p.Config["path"] = cty.StringVal("team/" + strings.Repeat("long/", 100) + "app")
	o := open0(t, p, "")
	limit, advice := o.Limit(false)
	m := manifest{Hash: strings.Repeat("0", 32)}
	for i := range limit / chunkSize {
		m.Chunks = append(m.Chunks, fmt.Sprintf("%stfstate.%s/%d", o.below(), m.Hash, i))
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, tooLarge, err := o.commit(ctx, text, backend.Prior{Absent: true}, ""); err != nil || tooLarge || limit < 100<<20 || advice == "" {
		t.Errorf("%d bytes of state, %d of a list: %v %v", limit, len(text), tooLarge, err)
	}
	m.Chunks = append(m.Chunks, m.Chunks[:len(m.Chunks)/10]...)
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if _, tooLarge, _ := o.commit(ctx, text, backend.Prior{Unknown: true}, ""); !tooLarge {
		t.Error("a tenth more fits too")
	}
}

// The session is renewed during a run, but not afterwards.
func TestRenewal(t *testing.T) {
	s := servers.Consul(t)
	p := place(t, s)
	p.Services.Sleep = func(ctx context.Context, d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d / 1000):
			return nil
		}
	}
	o := open0(t, p, "")
	c, cancel := context.WithCancel(ctx)
	id, err := o.Lock(c, store.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	cancel() // an interrupt does not release the lock
	renewals := func() (n int) {
		for _, line := range s.Log() {
			if line == "PUT /v1/session/renew/"+id {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(10 * time.Second); renewals() < 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not renewed")
		}
	}
	if err := o.Unlock(ctx, id); err != nil {
		t.Fatal(err)
	}
	n := renewals()
	time.Sleep(50 * time.Millisecond)
	if renewals() != n {
		t.Error("renewed after unlocking")
	}
}

func TestConfiguration(t *testing.T) {
	s := servers.Consul(t)
	services := backendtest.Services(t)
	services.Env = sys.Env{"CONSUL_HTTP_ADDR=http://" + s.Address, "CONSUL_HTTP_TOKEN=planted-token", "CONSUL_NAMESPACE=n"}
	s.Token = "planted-token"
	o := open0(t, backendtest.Place{Services: services, Config: map[string]cty.Value{"path": cty.StringVal("a b"), "datacenter": cty.StringVal("d")}}, "")
	if _, err := o.Read(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.Log()[0]; got != "GET /v1/kv/a%20b?consistent=&dc=d&ns=n" {
		t.Error(got)
	}
	for argument, config := range map[string]map[string]cty.Value{
		"path":      {},
		"address":   {"path": cty.StringVal("x"), "address": cty.StringVal("ftp://x")},
		"scheme":    {"path": cty.StringVal("x"), "scheme": cty.StringVal("ftp")},
		"ca_file":   {"path": cty.StringVal("x"), "ca_file": cty.StringVal("none")},
		"cert_file": {"path": cty.StringVal("x"), "cert_file": cty.StringVal("none")},
	} {
		_, err := Kind().Open(ctx, cty.ObjectVal(all(config)), backendtest.Services(t))
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != argument {
			t.Errorf("%s: %v", argument, err)
		}
	}
	services.Env = nil
	o = open0(t, backendtest.Place{Services: services, Config: map[string]cty.Value{"path": cty.StringVal("x"), "address": cty.StringVal(s.Address)}}, "")
	var e *backend.Error
	if _, err := o.Read(ctx); !errors.As(err, &e) || e.Argument != "access_token" || !strings.Contains(e.Answer, "Permission denied") || !strings.Contains(e.Advice, "CONSUL_HTTP_TOKEN") {
		t.Errorf("%#v", e)
	}
}

func all(set map[string]cty.Value) map[string]cty.Value {
	out := map[string]cty.Value{}
	for name, a := range Kind().Schema.Attributes {
		out[name] = cty.NullVal(a.Type)
	}
	for name, v := range set {
		out[name] = v
	}
	return out
}

func TestBeside(t *testing.T) {
	for _, gzip := range []bool{false, true} {
		t.Run(fmt.Sprintf("gzip %t", gzip), func(t *testing.T) {
			s := servers.Consul(t)
			p := place(t, s)
			p.Config["gzip"] = cty.BoolVal(gzip)
			backendtest.Beside(t, Kind(), p, `
    address      = "`+s.Address+`"
    scheme       = "http"
    path         = "team/app"
    access_token = "planted-token"
    gzip         = `+fmt.Sprint(gzip))
		})
	}
}
