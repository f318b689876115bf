package httpstore

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
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

func place(t *testing.T, s *servers.HTTPServer) backendtest.Place {
	return backendtest.Place{
		Config: map[string]cty.Value{
			"address":        cty.StringVal(s.URL + "/state"),
			"lock_address":   cty.StringVal(s.URL + "/lock"),
			"unlock_address": cty.StringVal(s.URL + "/lock"),
			"username":       cty.StringVal("u"),
			"password":       cty.StringVal("planted-password"),
		},
		Services: backendtest.Services(t),
		Locks:    true,
		Steal:    func(*testing.T) { s.SetLock(`{"ID":"other"}`) },
		Secrets:  []string{"planted-password"},
	}
}

func TestSuite(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
		p := place(t, servers.HTTP(t))
		return p
	})
	t.Run("without locks", func(t *testing.T) {
		backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
			p := place(t, servers.HTTP(t))
			p.Locks, p.Steal = false, nil
			delete(p.Config, "lock_address")
			delete(p.Config, "unlock_address")
			return p
		})
	})
}

func object0(t *testing.T, p backendtest.Place) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store("", backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

// The requests equal those that other programs expect, byte for byte.
func TestRequests(t *testing.T) {
	s := servers.HTTP(t)
	p := place(t, s)
	p.Config["address"] = cty.StringVal(s.URL + "/state?team=a%2Fb")
	p.Config["headers"] = cty.MapVal(map[string]cty.Value{"X-Team": cty.StringVal("a")})
	var head http.Header
	s.Before = func(_ http.ResponseWriter, r *http.Request) bool { head = r.Header.Clone(); return false }
	o := object0(t, p)
	info := store.LockInfo{ID: "6f2c1d3e-0000-4000-8000-000000000000", Operation: "OperationTypeApply", Who: "me@here", Version: "1.12.6", Created: time.Date(2026, 11, 22, 14, 16, 41, 440965307, time.UTC), Path: "p"}
	id, err := o.Lock(ctx, info)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, id); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Content-Md5": "ioBVTJHZ/KisuC8CPeAvEQ==", "X-Team": "a", "Authorization": "Basic dTpwbGFudGVkLXBhc3N3b3Jk", "User-Agent": "Go-http-client/1.1"} {
		if got := head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if err := o.Unlock(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := o.Unlock(ctx, "other"); err == nil {
		t.Error("released twice")
	}
	want := []string{
		`LOCK /lock {"ID":"6f2c1d3e-0000-4000-8000-000000000000","Operation":"OperationTypeApply","Info":"","Who":"me@here","Version":"1.12.6","Created":"2026-11-22T14:16:41.440965307Z","Path":""}`,
		`POST /state?ID=6f2c1d3e-0000-4000-8000-000000000000&team=a%2Fb ` + "{}\n",
		`UNLOCK /lock {"ID":"6f2c1d3e-0000-4000-8000-000000000000","Operation":"OperationTypeApply","Info":"","Who":"me@here","Version":"1.12.6","Created":"2026-11-22T14:16:41.440965307Z","Path":""}`,
		`UNLOCK /lock {"ID":"other","Operation":"","Info":"","Who":"","Version":"","Created":"0001-01-01T00:00:00Z","Path":""}`,
	}
	if got := strings.Join(s.Log(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("asked:\n%s", got)
	}
}

// Arguments have precedence over the environment.
func TestEnvironment(t *testing.T) {
	s := servers.HTTP(t)
	p := backendtest.Place{Services: backendtest.Services(t)}
	p.Services.Env = sys.Env{"TF_HTTP_ADDRESS=" + s.URL + "/state", "TF_HTTP_LOCK_ADDRESS=" + s.URL + "/lock", "TF_HTTP_UNLOCK_ADDRESS=" + s.URL + "/lock", "TF_HTTP_UPDATE_METHOD=PUT", "TF_HTTP_LOCK_METHOD=GET"}
	p.Config = map[string]cty.Value{"lock_method": cty.StringVal("LOCK")}
	o := object0(t, p)
	id, err := o.Lock(ctx, store.LockInfo{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, id); err != nil {
		t.Fatal(err)
	}
	if got := s.Log()[1]; got != "PUT /state?ID=1 {}\n" {
		t.Error(got)
	}
}

func TestBadConfiguration(t *testing.T) {
	headers := func(name, value string) cty.Value {
		return cty.MapVal(map[string]cty.Value{name: cty.StringVal(value)})
	}
	for _, c := range []struct {
		argument string
		config   map[string]cty.Value
	}{
		{"address", nil},
		{"address", map[string]cty.Value{"address": cty.StringVal("ftp://x/y")}},
		{"lock_address", map[string]cty.Value{"lock_address": cty.StringVal("http://x/y")}},
		{"unlock_address", map[string]cty.Value{"unlock_address": cty.StringVal("http://x/y")}},
		{"lock_method", map[string]cty.Value{"lock_method": cty.StringVal("A B")}},
		{"retry_max", map[string]cty.Value{"retry_max": cty.NumberFloatVal(1.5)}},
		{"client_ca_certificate_pem", map[string]cty.Value{"client_ca_certificate_pem": cty.StringVal("x")}},
		{"client_certificate_pem", map[string]cty.Value{"client_private_key_pem": cty.StringVal("x")}},
		{"headers", map[string]cty.Value{"headers": headers("a b", "x")}},
		{"headers", map[string]cty.Value{"headers": headers("a", " ")}},
		{"headers", map[string]cty.Value{"headers": headers("a", "ä")}},
		{"headers", map[string]cty.Value{"headers": headers("content-type", "x")}},
		{"headers", map[string]cty.Value{"headers": headers("authorization", "x"), "username": cty.StringVal("x")}},
	} {
		if c.config != nil && c.config["address"] == cty.NilVal {
			c.config["address"] = cty.StringVal("http://x/y")
		}
		_, err := Kind().Open(ctx, backendtest.Config(t, Kind(), c.config), backendtest.Services(t))
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != c.argument {
			t.Errorf("%v: %v", c.config, err)
		}
	}
}

// Each error names the argument and advice, in one line.
func TestAnswers(t *testing.T) {
	for status, argument := range map[int]string{401: "username", 403: "username", 405: "", 418: "address", 500: "address"} {
		s := servers.HTTP(t)
		p := place(t, s)
		s.Before = func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(status)
			w.Write([]byte("the first line\nthe second\n"))
			return true
		}
		_, err := object0(t, p).Read(ctx)
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != argument || !strings.Contains(e.Answer, "the first line") || strings.Contains(err.Error(), "second") {
			t.Errorf("%d: %#v", status, e)
		}
	}
	s := servers.HTTP(t)
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")
		w.Write([]byte("{}"))
		return true
	}
	if _, err := object0(t, place(t, s)).Read(ctx); err == nil {
		t.Error("a state with another checksum was read")
	}
}

// A request whose response is lost is repeated, and a lock that it took is ours.
func TestLostAnswers(t *testing.T) {
	s := servers.HTTP(t)
	var n atomic.Int32
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if n.Add(1) > 1 {
			return false
		}
		s.Answer(discard{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	}
	o := object0(t, place(t, s))
	id, err := o.Lock(ctx, store.LockInfo{ID: "1", Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := object0(t, place(t, s)).Lock(ctx, store.LockInfo{ID: "2"}); err == nil {
		t.Error("locked twice")
	}
	if err := o.Unlock(ctx, id); err != nil {
		t.Error(err)
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func TestBeside(t *testing.T) {
	s := servers.HTTP(t)
	backendtest.Beside(t, Kind(), place(t, s), `
    address        = "`+s.URL+`/state"
    lock_address   = "`+s.URL+`/lock"
    unlock_address = "`+s.URL+`/lock"`)
}
