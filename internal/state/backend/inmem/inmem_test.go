package inmem

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

func TestSuite(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
		p := backendtest.Place{Services: backendtest.Services(t), Locks: true, Workspaces: true}
		p.Steal = func(t *testing.T) {
			m := p.Services.Shared.Get("inmem", nil).(*memory)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.object(store.Default).lock = nil
		}
		return p
	})
}

func TestLockID(t *testing.T) {
	p := backendtest.Place{Services: backendtest.Services(t), Config: map[string]cty.Value{"lock_id": cty.StringVal("abc")}}
	st, err := backendtest.Open(t, Kind(), p).Store("", backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ds := st.Lock(t.Context(), store.LockInfo{}, 0); !ds.HasErrors() {
		t.Error("the lock was granted")
	}
	if ds := backend.ForceUnlock(t.Context(), st, "abc"); ds.HasErrors() {
		t.Error(ds.Err())
	}
	unlock, ds := st.Lock(t.Context(), store.LockInfo{}, 0)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	unlock()
}
