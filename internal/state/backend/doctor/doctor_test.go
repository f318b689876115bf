package doctor_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// memory is a backend with one state, and with faults that the doctor must find.
type memory struct {
	object
	sameLock bool // every run gets the lock
}

func (m *memory) List(context.Context) ([]string, error) { return []string{store.Default, "dev"}, nil }

func (m *memory) Delete(context.Context, string) error { return errors.New("not to be called") }

func (m *memory) Store(_ string, o backend.StoreOptions) (store.Store, error) {
	if m.sameLock {
		other := m.object
		other.lock = new(string)
		return backend.NewStore(&other, "memory", o, backend.Services{Now: time.Now}), nil
	}
	return backend.NewStore(&m.object, "memory", o, backend.Services{Now: time.Now}), nil
}

// An object stores everything in data: the state under the name "".
type object struct {
	data  map[string]string
	name  string
	lock  *string
	loose bool // conditions of writes are ignored
	stuck bool // nothing is deleted
	kept  bool // locks are never released
}

func (o *object) Read(context.Context) (backend.Payload, error) {
	return backend.Payload{Data: []byte(o.data[o.name]), Version: o.data[o.name]}, nil
}

func (o *object) Write(_ context.Context, data []byte, prior backend.Prior, _ string) (string, error) {
	now, there := o.data[o.name]
	if !o.loose && (prior.Absent && there || prior.Version != "" && prior.Version != now) {
		return "", backend.ErrChanged
	}
	o.data[o.name] = string(data)
	return string(data), nil
}

func (o *object) Lock(_ context.Context, info store.LockInfo) (string, error) {
	if o.lock == nil {
		return "", backend.ErrNoLocks
	}
	if *o.lock != "" {
		return "", &backend.LockedError{Holder: &store.LockInfo{ID: *o.lock, Who: "other@there"}}
	}
	*o.lock = info.ID
	return info.ID, nil
}

func (o *object) Unlock(context.Context, string) error {
	if !o.kept {
		*o.lock = ""
	}
	return nil
}

func (o *object) Probe() (backend.Object, func(context.Context) error) {
	probe := *o
	probe.name = "probe"
	return &probe, func(ctx context.Context) error { return o.DeleteBlob(ctx, "probe") }
}

func (o *object) PutBlob(_ context.Context, name string, data []byte) error {
	o.data[name] = string(data)
	return nil
}

func (o *object) GetBlob(_ context.Context, name string) ([]byte, error) {
	return []byte(o.data[name]), nil
}

func (o *object) ListBlobs(context.Context, string) ([]string, error) { return nil, nil }

func (o *object) DeleteBlob(_ context.Context, name string) error {
	if o.stuck {
		return &backend.Error{Answer: "no", Permission: "memory:Delete"}
	}
	delete(o.data, name)
	return nil
}

func healthy() *memory {
	text := `{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l","outputs":{},"resources":[]}`
	return &memory{object: object{data: map[string]string{"": text}, lock: new(string)}}
}

// examine returns the findings by name.
func examine(t *testing.T, m *memory) map[string]backend.Finding {
	t.Helper()
	out := map[string]backend.Finding{}
	doctor.Run(t.Context(), m, store.Default, backend.StoreOptions{}, store.LockInfo{ID: "mine", Operation: "doctor"}, func(f backend.Finding) { out[f.What] = f })
	return out
}

func wrong(found map[string]backend.Finding) []string {
	var out []string
	for what, f := range found {
		if !f.OK {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// A correct store gets no complaint and is not changed.
func TestHealthy(t *testing.T) {
	m := healthy()
	before := maps.Clone(m.data)
	found := examine(t, m)
	if bad := wrong(found); len(bad) > 0 {
		t.Errorf("%v: %v", bad, found)
	}
	for _, what := range []string{"listing workspaces", "reading the state", "locking", "unlocking", "conditional writes", "room for a journal"} {
		if _, ok := found[what]; !ok {
			t.Errorf("nothing is said of %s", what)
		}
	}
	if d := found["reading the state"].Detail; !strings.HasPrefix(d, "serial 7, ") {
		t.Error(d)
	}
	if !maps.Equal(before, m.data) || *m.lock != "" {
		t.Errorf("the store was changed: %v, the lock is %q", m.data, *m.lock)
	}
}

// A lock that the service reports as released and still has is a fault; one of another run is
// none, and the check is skipped.
func TestKeptLock(t *testing.T) {
	m := healthy()
	m.kept = true
	if f := examine(t, m)["locking"]; f.OK || f.Skipped || !strings.Contains(f.Detail, "granted and released") {
		t.Errorf("a lock that is not released: %+v", f)
	}
	m = healthy()
	*m.lock = "another"
	if f := examine(t, m)["locking"]; !f.OK || !f.Skipped || f.Detail != "the state is locked by other@there" {
		t.Errorf("a lock of another run: %+v", f)
	}
}

// The doctor finds each fault, and continues with the other checks.
func TestFaults(t *testing.T) {
	for want, spoil := range map[string]func(*memory){
		"locking":                   func(m *memory) { m.lock = nil },
		"conditional writes":        func(m *memory) { m.loose = true },
		"deleting beside the state": func(m *memory) { m.stuck = true },
	} {
		m := healthy()
		spoil(m)
		found := examine(t, m)
		if bad := wrong(found); !slices.Equal(bad, []string{want}) {
			t.Errorf("%s: %v", want, found)
		}
		if m.stuck && found[want].Permission != "memory:Delete" {
			t.Errorf("the permission is %q", found[want].Permission)
		}
	}
	m := healthy()
	m.sameLock = true
	if f := examine(t, m)["locking"]; f.OK || !strings.Contains(f.Detail, "granted twice") {
		t.Errorf("%+v", f)
	}
}

// A lock of another run is not touched.
func TestLocked(t *testing.T) {
	m := healthy()
	*m.lock = "theirs"
	if f := examine(t, m)["locking"]; !f.OK || !strings.Contains(f.Detail, "other@there") || *m.lock != "theirs" {
		t.Errorf("%+v, the lock is %q", f, *m.lock)
	}
}
