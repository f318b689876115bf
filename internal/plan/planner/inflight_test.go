package planner_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A task that waits for another object does not block provider calls. With chains of resources
// and with instances of one resource, the maximum number of calls is in flight.
func TestCallsInFlight(t *testing.T) {
	const chains = 10
	var text strings.Builder
	for c := range chains {
		for i := range chains {
			name := `"first"`
			if i > 0 {
				name = fmt.Sprintf("x_thing.c%d_%d.id", c, i-1)
			}
			fmt.Fprintf(&text, "resource \"x_thing\" \"c%d_%d\" {\n  name = %s\n}\n", c, i, name)
		}
	}
	const counted = "resource \"x_thing\" \"a\" {\n  count = 30\n}\noutput \"all\" {\n  value = x_thing.a[*].id\n}\n"
	for name, text := range map[string]string{"chains": text.String(), "count": counted} {
		t.Run(name, func(t *testing.T) {
			m := newMeeting(t)
			providers := plantest.New()
			providers.Managed["x_thing"].Plan = func(r provider.PlanRequest) (provider.PlanResponse, diag.List) {
				m.attend()
				attrs := r.Proposed.AsValueMap()
				attrs["id"] = cty.UnknownVal(cty.String)
				return provider.PlanResponse{Planned: cty.ObjectVal(attrs)}, nil
			}
			m.plan(providers, text, nil)
		})
	}
}

// Instances of one resource that are not in the configuration are read concurrently, too.
func TestOrphansInFlight(t *testing.T) {
	d := state.New().Edit()
	for i := range 30 {
		d.Apply(state.Change{
			Object:   addr.Object{Instance: addr.Instance{Resource: addr.Resource{Type: "x_thing", Name: "gone"}, Key: addr.Int(i)}},
			Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")}, New: &state.Object{JSON: []byte(`{"id":"i"}`)},
		})
	}
	m := newMeeting(t)
	providers := plantest.New()
	providers.Managed["x_thing"].Read = func(r provider.ReadRequest) (provider.ReadResponse, diag.List) {
		m.attend()
		return provider.ReadResponse{State: r.Prior}, nil
	}
	m.plan(providers, "provider \"x\" {}\n", d.Freeze())
}

// A meeting waits until a number of calls are in flight at the same time.
type meeting struct {
	t         *testing.T
	mu        sync.Mutex
	now, most int
	full      chan struct{}
	open      func()
}

// attendants is the maximum number of calls in flight.
const attendants = 5

func newMeeting(t *testing.T) *meeting {
	m := &meeting{t: t, full: make(chan struct{})}
	m.open = sync.OnceFunc(func() { close(m.full) })
	return m
}

// attend is called by each call: the first ones wait for one another.
func (m *meeting) attend() {
	m.mu.Lock()
	m.now++
	if m.most = max(m.most, m.now); m.now == attendants {
		m.open()
	}
	m.mu.Unlock()
	select {
	case <-m.full:
	case <-time.After(time.Minute):
		m.t.Error("the calls that may be in flight never were")
		m.open()
	}
	m.mu.Lock()
	m.now--
	m.mu.Unlock()
}

// plan makes a plan and checks that the maximum was reached.
func (m *meeting) plan(providers plantest.Providers, text string, s *state.State) {
	m.t.Helper()
	_, ds := planner.Make(context.Background(), planner.Input{
		Eval: eval.Options{Tree: plantest.Tree(m.t, text), Workspace: "default"}, State: s,
		Providers: resourceclient.Options{Providers: providers, Parallelism: attendants},
	})
	if ds.HasErrors() {
		m.t.Fatal(ds.Err())
	}
	if m.most != attendants {
		m.t.Errorf("%d calls at a time, want %d", m.most, attendants)
	}
}
