package kinds_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// The doctor reports a service that does not respond for each request, not only the first.
func TestDoctorWaits(t *testing.T) {
	var k backend.Kind
	for _, one := range kinds.All() {
		if one.Name == "http" {
			k = one
		}
	}
	for _, slow := range []string{"GET", "LOCK", "UNLOCK"} {
		t.Run(slow, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == slow {
					time.Sleep(300 * time.Millisecond)
				}
				if r.Method == "GET" {
					w.WriteHeader(http.StatusNoContent)
				}
			}))
			defer s.Close()
			p := backendtest.Place{Services: backendtest.Services(t), Config: map[string]cty.Value{}}
			for _, name := range []string{"address", "lock_address", "unlock_address"} {
				p.Config[name] = cty.StringVal(s.URL)
			}
			var mu sync.Mutex
			var told []string
			p.Services.SlowAfter, p.Services.Slow = 100*time.Millisecond, func(what string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, what)
			}
			doctor.Run(t.Context(), backendtest.Open(t, k, p), store.Default, backend.StoreOptions{}, store.LockInfo{}, func(backend.Finding) {})
			mu.Lock()
			defer mu.Unlock()
			if len(told) == 0 || !strings.Contains(told[0], s.URL) {
				t.Errorf("told: %q", told)
			}
		})
	}
}
