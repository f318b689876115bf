package azurerm

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

// place returns a place in a container of its own.
func place(t *testing.T, s *servers.AzureServer, container string) backendtest.Place {
	p := backendtest.Place{
		Config: map[string]cty.Value{
			"storage_account_name": cty.StringVal(s.Account), "container_name": cty.StringVal(container), "key": cty.StringVal("team/a b.tfstate"), "access_key": cty.StringVal(s.Key),
		},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Secrets: []string{s.Key},
	}
	p.Services.Transport = s.Transport(t)
	o := open0(t, p, "")
	resp, err := o.b.send(ctx, "PUT", "", url.Values{"restype": {"container"}}, http.Header{}, []byte{})
	if err != nil || resp.Status != http.StatusCreated {
		t.Fatalf("%v %+v", err, resp)
	}
	p.Steal = func(t *testing.T) {
		have, err := o.properties(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Unlock(ctx, holder(have).ID); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Lock(ctx, store.LockInfo{Who: "thief"}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func open0(t *testing.T, p backendtest.Place, workspace string) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

func TestSuite(t *testing.T) { suite(t, servers.Azure(t)) }

// TestSuiteStandIn runs the suite against the stand-in, which needs no other program.
func TestSuiteStandIn(t *testing.T) { suite(t, servers.Blobs(t)) }

func suite(t *testing.T, s *servers.AzureServer) {
	n := 0
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
		n++
		return place(t, s, fmt.Sprintf("states-%d", n))
	})
}

// Names, lease and metadata are those of OpenTofu and Terraform.
func TestLayout(t *testing.T) {
	s := servers.Azure(t)
	p := place(t, s, "layout")
	p.Config["snapshot"] = cty.True
	for workspace, want := range map[string]string{"": "team/a b.tfstate", "dev": "team/a b.tfstateenv:dev"} {
		o := open0(t, p, workspace)
		if o.name != want {
			t.Error(o.name)
		}
		info := store.LockInfo{ID: store.NewID(), Operation: "op"}
		id, err := o.Lock(ctx, info)
		if err != nil || id != info.ID {
			t.Fatalf("%s %v", id, err)
		}
		now, err := o.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		prior := backend.Prior{Version: now.Version, Absent: true}
		for _, text := range []string{"{}\n", "{ }\n"} {
			version, err := o.Write(ctx, []byte(text), prior, id)
			if err != nil {
				t.Fatal(err)
			}
			prior = backend.Prior{Version: version}
		}
		have, err := o.properties(ctx)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := base64.StdEncoding.DecodeString(have.Get(lockMeta))
		if !strings.Contains(string(text), `"Path":"https://acmestates.blob.core.windows.net/layout/team/a%20b.tfstate`) || have.Get("X-Ms-Lease-Duration") != "infinite" || have.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v", text, have)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Error(err)
		}
		if have, _ = o.properties(ctx); have.Get(lockMeta) != "" || have.Get("X-Ms-Lease-Status") != "unlocked" {
			t.Errorf("%v", have)
		}
	}
}

func TestMistakes(t *testing.T) {
	s := servers.Azure(t)
	for want, change := range map[string]func(map[string]cty.Value){
		"no container \"none\"":          func(c map[string]cty.Value) { c["container_name"] = cty.StringVal("none") },
		"Check access_key or sas_token":  func(c map[string]cty.Value) { c["access_key"] = cty.StringVal("cGxhbnRlZA==") },
		"there is no key of the storage": func(c map[string]cty.Value) { delete(c, "access_key") },
	} {
		p := place(t, s, fmt.Sprintf("mistakes-%d", len(want)))
		change(p.Config)
		if _, err := open0(t, p, "").Read(ctx); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), s.Key) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, c := range []map[string]cty.Value{
		{"storage_account_name": cty.StringVal("A")}, {"environment": cty.StringVal("moon")}, {"access_key": cty.StringVal("%")}, {"customer_provided_key": cty.StringVal("short")},
	} {
		cfg := map[string]cty.Value{"storage_account_name": cty.StringVal("acme"), "container_name": cty.StringVal("states"), "key": cty.StringVal("k")}
		for k, v := range c {
			cfg[k] = v
		}
		if _, err := Kind().Open(ctx, backendtest.Config(t, Kind(), cfg), backendtest.Services(t)); err == nil {
			t.Errorf("%v was accepted", c)
		}
	}
}

func TestBeside(t *testing.T) {
	servers.Tofu(t)
	s := servers.Azure(t)
	backendtest.Beside(t, Kind(), place(t, s, "beside"), `
    storage_account_name = "acmestates"
    container_name       = "beside"
    key                  = "team/a b.tfstate"`,
		"ARM_ACCESS_KEY="+s.Key, "HTTPS_PROXY="+s.Proxy, "SSL_CERT_FILE="+s.CAFile)
}

// A lease without a holder remains if a run ended before it wrote its name. It is shown
// with an ID that force-unlock accepts and breaks.
func TestNamelessLease(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *servers.AzureServer{
		"emulator": func(t *testing.T) *servers.AzureServer { return servers.Azure(t) },
		"stand-in": func(t *testing.T) *servers.AzureServer { return servers.Blobs(t) },
	} {
		t.Run(name, func(t *testing.T) {
			o := open0(t, place(t, start(t), "nameless"), "")
			if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, ""); err != nil {
				t.Fatal(err)
			}
			if resp, err := o.lease(ctx, "acquire", http.Header{"X-Ms-Lease-Duration": {"-1"}, "X-Ms-Proposed-Lease-Id": {store.NewID()}}); err != nil || resp.Status != http.StatusCreated {
				t.Fatalf("%v %+v", err, resp)
			}
			_, err := o.Lock(ctx, store.LockInfo{Who: "me"})
			locked, ok := errors.AsType[*backend.LockedError](err)
			if !ok || locked.Holder == nil || locked.Holder.ID != "lease" {
				t.Fatalf("%v", err)
			}
			if err := o.Unlock(ctx, store.NewID()); err == nil {
				t.Error("an ID that is not its own released it")
			}
			if err := o.Unlock(ctx, "lease"); err != nil {
				t.Fatal(err)
			}
			id, err := o.Lock(ctx, store.LockInfo{Who: "me"})
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Unlock(ctx, "lease"); err == nil {
				t.Error("a lease with a name was broken")
			}
			if err := o.Unlock(ctx, id); err != nil {
				t.Error(err)
			}
		})
	}
}

// A state is deleted while its lock is held, and unlocking is no error then. The lock of another
// process is respected.
func TestDeleteLocked(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *servers.AzureServer{
		"emulator": func(t *testing.T) *servers.AzureServer { return servers.Azure(t) },
		"stand-in": func(t *testing.T) *servers.AzureServer { return servers.Blobs(t) },
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t, start(t), "deleted")
			o, other := open0(t, p, ""), open0(t, p, "")
			id, err := o.Lock(ctx, store.LockInfo{Who: "me"})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.b.Delete(ctx, ""); err == nil {
				t.Error("a state that another process has locked was deleted")
			}
			if err := o.b.Delete(ctx, ""); err != nil {
				t.Fatal(err)
			}
			if err := o.Unlock(ctx, id); err != nil {
				t.Error(err)
			}
			if err := o.Unlock(ctx, id); err == nil {
				t.Error("a lock that is not held was released")
			}
			if id, err = o.Lock(ctx, store.LockInfo{Who: "me"}); err != nil {
				t.Fatal(err)
			}
			if err := o.Unlock(ctx, id); err != nil {
				t.Error(err)
			}
		})
	}
}
