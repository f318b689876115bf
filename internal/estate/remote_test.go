package estate_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
)

// A slowStore answers GET, POST, LOCK and UNLOCK requests for many states, each after a delay.
type slowStore struct {
	delay time.Duration

	mu           sync.Mutex
	states, lock map[string]string
	now, most    int // concurrent requests now, and at most
	count        int
}

func (s *slowStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.count++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	switch r.Method {
	case "GET":
		if s.states[r.URL.Path] == "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprint(w, s.states[r.URL.Path])
	case "POST":
		s.states[r.URL.Path] = string(body)
	case "LOCK":
		if s.lock[r.URL.Path] != "" {
			w.WriteHeader(http.StatusLocked)
			fmt.Fprint(w, s.lock[r.URL.Path])
			return
		}
		s.lock[r.URL.Path] = string(body)
	case "UNLOCK":
		s.lock[r.URL.Path] = ""
	}
}

// slowUnits writes n units without dependencies whose states are in a store.
func slowUnits(t testing.TB, n int, remote string) string {
	dir := t.TempDir()
	for i := range n {
		u := filepath.Join(dir, fmt.Sprintf("u%03d", i))
		if err := os.MkdirAll(u, 0o777); err != nil {
			t.Fatal(err)
		}
		unit := ""
		if remote != "" {
			at := fmt.Sprintf("%s/%d", remote, i)
			unit = fmt.Sprintf("remote_state {\n  backend = \"http\"\n  generate = { path = \"backend.tf\", if_exists = \"overwrite\" }\n  config = { address = %q, lock_address = %q, unlock_address = %q }\n}\n", at, at, at)
		}
		for name, text := range map[string]string{"terragrunt.hcl": unit, "main.tf": "resource \"terraform_data\" \"a\" {}\n"} {
			if err := os.WriteFile(filepath.Join(u, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func planUnits(t testing.TB, dir string, transport *http.Transport) time.Duration {
	o := options(dir, "plan")
	services := backendtest.Services(t)
	services.Transport = transport
	o.Host.Backends = backend.NewSet(kinds.All(), kinds.Unknown, services)
	start := time.Now()
	e, ds := estate.Open(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	for _, r := range e.Run(t.Context(), estate.RunOptions{Op: estate.Plan}) {
		if r.Diags.HasErrors() {
			t.Fatal(r.Diags.Err())
		}
	}
	return time.Since(start)
}

// If a store answers in 50 ms, a plan of 200 units with states in it takes at most 2 s longer
// than one with local states, over a limited number of connections.
func TestManyStatesInASlowStore(t *testing.T) {
	const units, connections = 200, 32
	store := &slowStore{delay: 50 * time.Millisecond, states: map[string]string{}, lock: map[string]string{}}
	server := httptest.NewServer(store)
	defer server.Close()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = connections, connections
	defer transport.CloseIdleConnections()
	local := planUnits(t, slowUnits(t, units, ""), transport)
	remote := planUnits(t, slowUnits(t, units, server.URL), transport)
	t.Logf("local %v, remote %v, %d requests, at most %d at once", local, remote, store.count, store.most)
	if store.most > connections {
		t.Errorf("%d requests at once", store.most)
	}
	if store.count > 3*units {
		t.Errorf("%d requests for %d units", store.count, units)
	}
	if remote > local+3*time.Second { // 2 s, with a margin for a busy machine
		t.Errorf("local %v, remote %v", local, remote)
	}
}
