package etcdv3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

var ctx = context.Background()

// A server is etcd, shared by many tests. Each test has its own prefix.
type server struct {
	url   string
	admin *clientv3.Client
	n     atomic.Int32
}

func start(t *testing.T) *server {
	s := &server{url: servers.Etcd(t)}
	var err error
	if s.admin, err = clientv3.New(clientv3.Config{Endpoints: []string{s.url}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.admin.Close() })
	return s
}

// keys returns the keys below a prefix, without the prefix, with the IDs of their leases.
func (s *server) keys(t *testing.T, prefix string) map[string]int64 {
	t.Helper()
	resp, err := s.admin.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, kv := range resp.Kvs {
		out[strings.TrimPrefix(string(kv.Key), prefix)] = kv.Lease
	}
	return out
}

func (s *server) place(t *testing.T) backendtest.Place {
	prefix := fmt.Sprintf("team/%d/", s.n.Add(1))
	p := backendtest.Place{
		Config:   map[string]cty.Value{"endpoints": cty.ListVal([]cty.Value{cty.StringVal(s.url)}), "prefix": cty.StringVal(prefix)},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true, Small: true,
		Steal: func(t *testing.T) {
			for key, lease := range s.keys(t, prefix) {
				if strings.Contains(key, ".lock/") {
					if _, err := s.admin.Revoke(ctx, clientv3.LeaseID(lease)); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
	}
	t.Cleanup(func() {
		cfg := backendtest.Open(t, Kind(), p).(*etcdBackend).c
		if cfg.client != nil {
			cfg.client.Close()
		}
	})
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

func TestServer(t *testing.T) {
	s := start(t)
	t.Run("suite", func(t *testing.T) { backendtest.Run(t, Kind(), s.place) })
	t.Run("suite without locks", func(t *testing.T) {
		backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
			p := s.place(t)
			p.Locks, p.Steal, p.Config["lock"] = false, nil, cty.False
			return p
		})
	})
	t.Run("layout", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "dev")
		c, cancel := context.WithCancel(ctx)
		id, err := o.Lock(c, store.LockInfo{ID: "x", Operation: "op", Created: time.Unix(0, 1).UTC()})
		if err != nil || id != "x" {
			t.Fatal(id, err)
		}
		cancel() // an interrupt does not release the lock
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
			t.Fatal(err)
		}
		keys := s.keys(t, p.Config["prefix"].AsString())
		lease := keys["dev.lockinfo"]
		if lease == 0 || len(keys) != 3 || keys[fmt.Sprintf("dev.lock/%x", lease)] != lease || keys["dev"] != 0 {
			t.Errorf("%v", keys)
		}
		ttl, err := s.admin.TimeToLive(ctx, clientv3.LeaseID(lease))
		if err != nil || ttl.GrantedTTL != leaseTTL {
			t.Errorf("%v %v", ttl, err)
		}
		// A lock can also be identified by the ID of its lease.
		if err := open0(t, p, "dev").Unlock(ctx, fmt.Sprintf("%x", lease)); err != nil {
			t.Error(err)
		}
		if keys := s.keys(t, p.Config["prefix"].AsString()); len(keys) != 1 {
			t.Errorf("%v", keys)
		}
		if err := o.Unlock(ctx, id); !errors.Is(err, backend.ErrLockLost) {
			t.Error(err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		p := s.place(t)
		o := open0(t, p, "")
		random := make([]byte, 2_000_000)
		rand.Read(random)
		var e *backend.Error
		if _, err := o.Write(ctx, random, backend.Prior{Absent: true}, ""); !errors.As(err, &e) || e.Argument != "max_request_bytes" {
			t.Errorf("%v", err)
		}
		if most, advice := o.Limit(false); most > 1572864 || most < 1500000 || advice == "" {
			t.Errorf("%d %s", most, advice)
		}
		most, _ := o.Limit(false)
		if _, err := o.Write(ctx, random[:most], backend.Prior{Absent: true}, ""); err != nil {
			t.Error(err)
		}
		if err := o.PutBlob(ctx, "a", random); err != nil {
			t.Fatal(err)
		}
		if got, err := o.GetBlob(ctx, "a"); err != nil || !bytes.Equal(got, random) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("users", func(t *testing.T) {
		p := s.place(t)
		for _, err := range []error{
			second(s.admin.UserAdd(ctx, "root", "root-secret")), second(s.admin.RoleAdd(ctx, "root")), second(s.admin.UserGrantRole(ctx, "root", "root")),
			second(s.admin.UserAdd(ctx, "little", "planted")), second(s.admin.RoleAdd(ctx, "little")), second(s.admin.UserGrantRole(ctx, "little", "little")),
			second(s.admin.AuthEnable(ctx)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		p.Services.Env = sys.Env{"ETCDV3_USERNAME=little", "ETCDV3_PASSWORD=planted"}
		var e *backend.Error
		if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "prefix" || !strings.Contains(e.Advice, "readwrite") || !strings.Contains(e.Permission, "readwrite") {
			t.Errorf("%#v", e)
		}
		p.Config["password"] = cty.StringVal("planted-wrong")
		if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "username" || strings.Contains(err.Error(), "planted") {
			t.Errorf("%#v", e)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestBadConfiguration(t *testing.T) {
	endpoints := cty.ListVal([]cty.Value{cty.StringVal("127.0.0.1:1")})
	for argument, config := range map[string]map[string]cty.Value{
		"endpoints":         {"endpoints": cty.ListValEmpty(cty.String)},
		"max_request_bytes": {"endpoints": endpoints, "max_request_bytes": cty.NumberIntVal(-1)},
		"cacert_path":       {"endpoints": endpoints, "cacert_path": cty.StringVal("none")},
		"key_path":          {"endpoints": endpoints, "key_path": cty.StringVal("none")},
	} {
		_, err := Kind().Open(ctx, backendtest.Config(t, Kind(), config), backendtest.Services(t))
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != argument {
			t.Errorf("%s: %v", argument, err)
		}
	}
}
