// Package backendtest contains the tests that every kind of backend must pass: the rules of
// package backend for Backend and Object, and those of package storetest for stores.
//
// Main types: Place, one empty place of a kind, and Run. The one rule: a kind's own tests
// only test its requests, and this package tests the rest.
package backendtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"github.com/zclconf/go-cty/cty"
)

// A Place is one empty location for states, for one test.
type Place struct {
	// Config contains the arguments and blocks that are set.
	Config map[string]cty.Value
	// Services is the result of Services of this package, possibly modified.
	Services backend.Services

	Locks      bool // the store supports locks
	Anonymous  bool // a lock does not contain its holder
	Workspaces bool // the store supports workspaces
	Small      bool // some megabytes exceed the maximum size
	// Unconditional means that the service ignores the conditions of writes, though it
	// should not.
	Unconditional bool
	// Steal takes the lock of the default workspace from its holder, as an operator of the
	// service could. nil means that the lock cannot be lost or taken.
	Steal func(t *testing.T)
	// Secrets are strings in the configuration that messages must not contain.
	Secrets []string
}

// Services returns services for tests: a real clock, waits that take a tenth of the time,
// no programs, and the default transport without a proxy.
func Services(t testing.TB) backend.Services {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	t.Cleanup(transport.CloseIdleConnections)
	return backend.Services{
		Dir: t.TempDir(), Home: t.TempDir(), Who: "me@here", Version: "1.12.6", Now: time.Now,
		Sleep: func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d / 10):
				return nil
			}
		},
		Run:       sys.NoChildren,
		Transport: transport,
		Token:     func(context.Context, string) (string, error) { return "", nil },
		Shared:    new(backend.Shared),
	}
}

// Config returns a configuration of a kind. Arguments that are not set are null.
func Config(t *testing.T, k backend.Kind, set map[string]cty.Value) cty.Value {
	t.Helper()
	all := map[string]cty.Value{}
	for name := range k.Schema.Attributes {
		all[name] = cty.NullVal(cty.DynamicPseudoType)
	}
	for name, v := range set {
		all[name] = v
	}
	v, err := k.Schema.Coerce(cty.ObjectVal(all))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Open opens a place.
func Open(t *testing.T, k backend.Kind, p Place) backend.Backend {
	t.Helper()
	b, err := k.Open(context.Background(), Config(t, k, p.Config), p.Services)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Run runs the tests. place returns a new place for each test.
func Run(t *testing.T, k backend.Kind, place func(t *testing.T) Place) {
	t.Run("schema", func(t *testing.T) {
		if err := k.Schema.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Place { return storePlace(t, k, place(t)) })
	})
	for name, test := range map[string]func(*testing.T, *fixture){
		"workspaces are listed in order":              listed,
		"looking creates nothing":                     untouched,
		"a deleted workspace is gone":                 deleted,
		"bytes are kept":                              bytesKept,
		"a version that is not the present one":       stale,
		"absent is compared":                          absent,
		"one of many first writes wins":               firstWrites,
		"a lock names its holder":                     lockNamed,
		"a lock is released by its ID from elsewhere": forceUnlocked,
		"an ID that does not hold the lock":           wrongID,
		"one of many gets the lock":                   manyLocks,
		"a lost lock keeps from writing":              lostLock,
		"an interrupt leaves no lock":                 interruptedLock,
		"a foreign write is noticed":                  foreignWrite,
		"waiting is told once":                        waiting,
		"objects beside the state":                    blobs,
		"a check changes nothing":                     checked,
		"a context that has ended":                    ended,
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t)
			test(t, &fixture{Place: p, k: k, b: Open(t, k, p)})
		})
	}
}

func storePlace(t *testing.T, k backend.Kind, p Place) storetest.Place {
	out := storetest.Place{
		Locks: p.Locks, Anonymous: p.Anonymous, Small: p.Small,
		Open: func(workspace string) store.Store {
			st, err := Open(t, k, p).Store(workspace, backend.StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return st
		},
	}
	if p.Workspaces {
		out.Workspaces = backend.Workspaces{Backend: Open(t, k, p), Lock: &store.LockInfo{}}
	}
	return out
}

// A fixture is an opened place.
type fixture struct {
	Place
	k backend.Kind
	b backend.Backend
}

var ctx = context.Background()

// store opens the state of a workspace with a newly opened backend, as another run would.
func (f *fixture) store(t *testing.T, workspace string) store.Store {
	t.Helper()
	st, err := Open(t, f.k, f.Place).Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// object returns the object of a workspace. It skips the test if the kind does not use
// backend.Store.
func (f *fixture) object(t *testing.T, workspace string) backend.Object {
	t.Helper()
	st, ok := f.store(t, workspace).(*backend.Store)
	if !ok {
		t.Skip("a store of its own")
	}
	return st.Object()
}

// clean reports a test failure if an error contains one of the Secrets.
func (f *fixture) clean(t *testing.T, err error) {
	t.Helper()
	for _, secret := range f.Secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("a message holds a secret: %v", err)
		}
	}
}

func fatal(t *testing.T, ds diag.List) {
	t.Helper()
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, f *fixture) {
	if !f.Workspaces {
		if _, err := f.b.List(ctx); !errors.Is(err, backend.ErrNoWorkspaces) {
			t.Errorf("List without workspaces: %v", err)
		}
		return
	}
	for i, name := range []string{"zebra", "a-1", "m", "default"} {
		fatal(t, f.store(t, name).Write(ctx, storetest.Sample(i)))
		got, err := f.b.List(ctx)
		if err != nil || !slices.Contains(got, name) || got[0] != "default" || !slices.IsSorted(got[1:]) {
			t.Errorf("after %s: %v %v", name, got, err)
		}
	}
	for i, name := range []string{"zebra", "a-1", "m", "default"} {
		if st, ds := f.store(t, name).Read(ctx); ds.HasErrors() || st == nil || st.Serial != uint64(i)+1 {
			t.Errorf("%s: %v %v", name, st, ds.Err())
		}
	}
}

func untouched(t *testing.T, f *fixture) {
	for _, name := range []string{"default", "other"} {
		if name != "default" && !f.Workspaces {
			continue
		}
		if st, ds := f.store(t, name).Read(ctx); st != nil || ds.HasErrors() {
			t.Errorf("%s: %v %v", name, st, ds.Err())
		}
	}
	if got, err := f.b.List(ctx); err == nil && len(got) != 1 || err != nil && f.Workspaces {
		t.Errorf("reading made workspaces: %v %v", got, err)
	}
}

func deleted(t *testing.T, f *fixture) {
	if !f.Workspaces {
		t.Skip("no workspaces")
	}
	fatal(t, f.store(t, "w").Write(ctx, storetest.Sample(1)))
	if err := f.b.Delete(ctx, "w"); err != nil {
		t.Fatal(err)
	}
	if got, err := f.b.List(ctx); err != nil || slices.Contains(got, "w") {
		t.Errorf("%v %v", got, err)
	}
	if st, ds := f.store(t, "w").Read(ctx); st != nil || ds.HasErrors() {
		t.Errorf("%v %v", st, ds.Err())
	}
}

func bytesKept(t *testing.T, f *fixture) {
	o := f.object(t, "")
	if p, err := o.Read(ctx); err != nil || len(p.Data) != 0 {
		t.Fatalf("at first: %q %v", p.Data, err)
	}
	for _, want := range []string{"{}\n", "{\"a\":\"\\u00e4\xc3\xa4\"}\n", "{\"long\":\"" + strings.Repeat("0123456789", 2000) + "\"}\n", "{}\n"} {
		if _, err := o.Write(ctx, []byte(want), backend.Prior{Unknown: true}, ""); err != nil {
			t.Fatal(err)
		}
		if p, err := f.object(t, "").Read(ctx); err != nil || string(p.Data) != want {
			t.Errorf("wrote %d bytes, read %d: %v", len(want), len(p.Data), err)
		}
	}
}

// versioned writes twice and returns the versions. It skips the test if there are none.
func versioned(t *testing.T, o backend.Object) (first, second string) {
	t.Helper()
	first, err := o.Write(ctx, []byte("{\"n\":1}\n"), backend.Prior{Absent: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	if first == "" {
		t.Skip("this kind of store has no versions")
	}
	second, err = o.Write(ctx, []byte("{\"n\":2}\n"), backend.Prior{Version: first}, "")
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Error("two contents have one version")
	}
	if p, err := o.Read(ctx); err != nil || p.Version != second {
		t.Errorf("read version %q, written %q: %v", p.Version, second, err)
	}
	return first, second
}

func stale(t *testing.T, f *fixture) {
	o := f.object(t, "")
	first, _ := versioned(t, o)
	if _, err := o.Write(ctx, []byte("{\"n\":3}\n"), backend.Prior{Version: first}, ""); !errors.Is(err, backend.ErrChanged) {
		t.Errorf("written over another content: %v", err)
	} else {
		f.clean(t, err)
	}
	if p, _ := o.Read(ctx); string(p.Data) != "{\"n\":2}\n" {
		t.Errorf("the content is %q", p.Data)
	}
}

func absent(t *testing.T, f *fixture) {
	o := f.object(t, "")
	versioned(t, o)
	if _, err := o.Write(ctx, []byte("{\"n\":3}\n"), backend.Prior{Absent: true}, ""); !errors.Is(err, backend.ErrChanged) {
		t.Errorf("written over a content that was not there: %v", err)
	}
}

func firstWrites(t *testing.T, f *fixture) {
	probe := f.object(t, "")
	versioned(t, probe) // skips the test without versions
	p, err := probe.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	objects := make([]backend.Object, 8)
	for i := range objects {
		objects[i] = f.object(t, "")
	}
	var mu sync.Mutex
	var winners []int
	var wg sync.WaitGroup
	for i := range objects {
		wg.Go(func() {
			_, err := objects[i].Write(ctx, fmt.Appendf(nil, "{\"n\":%d}\n", 10+i), backend.Prior{Version: p.Version}, "")
			if err == nil {
				mu.Lock()
				winners = append(winners, i)
				mu.Unlock()
			} else if !errors.Is(err, backend.ErrChanged) {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if len(winners) != 1 {
		t.Fatalf("%d writers replaced one version", len(winners))
	}
	if p, err := probe.Read(ctx); err != nil || string(p.Data) != fmt.Sprintf("{\"n\":%d}\n", 10+winners[0]) {
		t.Errorf("%q %v", p.Data, err)
	}
}

func info(n int) store.LockInfo {
	return store.LockInfo{ID: store.NewID(), Operation: "OperationTypeApply", Who: fmt.Sprintf("run%d@here", n), Version: "1.12.6", Created: time.Date(2026, 11, 22, 14, 16, 41, 440965307, time.UTC)}
}

// mustLock takes the lock. It skips the test without locks.
func (f *fixture) mustLock(t *testing.T, o backend.Object, n int) string {
	t.Helper()
	if !f.Locks {
		t.Skip("this kind of store has no locks")
	}
	id, err := o.Lock(ctx, info(n))
	if err != nil || id == "" {
		t.Fatalf("lock: %q %v", id, err)
	}
	return id
}

func lockNamed(t *testing.T, f *fixture) {
	o := f.object(t, "")
	if !f.Locks {
		if _, err := o.Lock(ctx, info(1)); !errors.Is(err, backend.ErrNoLocks) {
			t.Errorf("a store without locks: %v", err)
		}
		return
	}
	id := f.mustLock(t, o, 1)
	_, err := f.object(t, "").Lock(ctx, info(2))
	var locked *backend.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("locked twice: %v", err)
	}
	f.clean(t, err)
	if h := locked.Holder; !f.Anonymous && (h == nil || h.ID != id || h.Who != "run1@here" || h.Operation != "OperationTypeApply" || !h.Created.Equal(info(1).Created)) {
		t.Errorf("the holder is %+v, the ID %s", h, id)
	}
	if err := o.Unlock(ctx, id); err != nil {
		t.Error(err)
	}
	id = f.mustLock(t, f.object(t, ""), 3)
	if err := f.object(t, "").Unlock(ctx, id); err != nil && !f.Anonymous {
		t.Error(err)
	}
}

func forceUnlocked(t *testing.T, f *fixture) {
	if f.Anonymous {
		t.Skip("the lock belongs to a connection")
	}
	id := f.mustLock(t, f.object(t, ""), 1)
	u, ok := f.store(t, "").(store.Unlocker)
	if !ok {
		t.Fatal("no way to release a lock")
	}
	fatal(t, u.ForceUnlock(ctx, id))
	o := f.object(t, "")
	if err := o.Unlock(ctx, f.mustLock(t, o, 2)); err != nil {
		t.Error(err)
	}
}

func wrongID(t *testing.T, f *fixture) {
	o := f.object(t, "")
	id := f.mustLock(t, o, 1)
	other := f.object(t, "")
	err := other.Unlock(ctx, "6f2c1d3e-0000-4000-8000-000000000000")
	if err == nil && !f.Anonymous {
		t.Error("a lock was released by an ID that is not its own")
	}
	if err != nil {
		f.clean(t, err)
	}
	var locked *backend.LockedError
	if _, err := other.Lock(ctx, info(2)); !errors.As(err, &locked) {
		t.Errorf("the lock is gone: %v", err)
	}
	if err := o.Unlock(ctx, id); err != nil {
		t.Error(err)
	}
}

func manyLocks(t *testing.T, f *fixture) {
	objects := make([]backend.Object, 8)
	for i := range objects {
		objects[i] = f.object(t, "")
	}
	if !f.Locks {
		t.Skip("this kind of store has no locks")
	}
	var mu sync.Mutex
	got := map[int]string{}
	var wg sync.WaitGroup
	for i, o := range objects {
		wg.Go(func() {
			id, err := o.Lock(ctx, info(i))
			var locked *backend.LockedError
			switch {
			case err == nil:
				mu.Lock()
				got[i] = id
				mu.Unlock()
			case !errors.As(err, &locked):
				t.Errorf("run %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if len(got) > 1 {
		t.Fatalf("%d runs have the lock", len(got))
	}
	for i, id := range got {
		if err := objects[i].Unlock(ctx, id); err != nil {
			t.Error(err)
		}
	}
	o := f.object(t, "")
	if err := o.Unlock(ctx, f.mustLock(t, o, 9)); err != nil {
		t.Error(err)
	}
}

// interruptedLock interrupts a run that takes the lock, before each of the service's
// responses in turn.
func interruptedLock(t *testing.T, f *fixture) {
	if !f.Locks {
		t.Skip("this kind of store has no locks")
	}
	for n := 1; ; n++ {
		within, interrupt := context.WithCancel(ctx)
		w := &wire{interrupt: interrupt}
		p := f.Place
		p.Services.Transport = w.under(f.Services.Transport)
		p.Services.Shared = new(backend.Shared)
		st, err := Open(t, f.k, p).Store("", backend.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.left.Store(int32(n))
		unlock, ds := st.Lock(within, info(1), 0)
		over := w.left.Swap(0) > 0 // there were fewer responses
		interrupt()
		if over || !ds.HasErrors() {
			if !over {
				t.Errorf("interrupted at answer %d, and locked", n)
			}
			fatal(t, ds)
			fatal(t, unlock())
		}
		if over && n == 1 {
			t.Skip("it is not asked by HTTP")
		}
		again, ds := f.store(t, "").Lock(ctx, info(2), 0)
		if ds.HasErrors() {
			t.Fatalf("interrupted at answer %d: %v", n, ds.Err())
		}
		if fatal(t, again()); over {
			return
		}
	}
}

// A wire transfers data to a service, and interrupts the client before a response.
type wire struct {
	interrupt func()
	left      atomic.Int32 // number of responses before the interrupt; 0 means never
}

// under returns a clone of t whose connections pass through the wire.
func (w *wire) under(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.ForceAttemptHTTP2, t.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wired{Conn: c, w: w}, nil
	}
	return t
}

type wired struct {
	net.Conn
	w    *wire
	sent atomic.Bool // since the last read
}

func (c *wired) Write(b []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(b)
}

func (c *wired) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sent.Swap(false) && c.w.left.Load() > 0 && c.w.left.Add(-1) == 0 {
		c.w.interrupt()
		time.Sleep(10 * time.Millisecond) // so that the client notices the interrupt before the response
	}
	return n, err
}

func lostLock(t *testing.T, f *fixture) {
	if f.Steal == nil {
		t.Skip("the lock cannot be lost unnoticed, or nobody can take it here")
	}
	st := f.store(t, "")
	fatal(t, st.Write(ctx, storetest.Sample(1)))
	if _, ds := st.Read(ctx); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	unlock, ds := st.Lock(ctx, info(1), 0)
	fatal(t, ds)
	fatal(t, st.Write(ctx, storetest.Sample(2)))
	f.Steal(t)
	ds = st.Write(ctx, storetest.Sample(3))
	if !ds.HasErrors() || ds.Errors()[0].Code != diag.CodeBackendLockLost {
		t.Errorf("written without the lock: %v", ds.Err())
	} else {
		f.clean(t, ds.Err())
	}
	if got, ds := f.store(t, "").Read(ctx); ds.HasErrors() || got == nil || got.Serial != 3 {
		t.Errorf("%v %v", got, ds.Err())
	}
	unlock()
}

func foreignWrite(t *testing.T, f *fixture) {
	o := f.object(t, "")
	ours, theirs := f.store(t, ""), f.store(t, "")
	fatal(t, theirs.Write(ctx, storetest.Sample(1)))
	if _, ds := ours.Read(ctx); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if _, ds := theirs.Read(ctx); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	fatal(t, theirs.Write(ctx, storetest.Sample(4)))
	ds := ours.Write(ctx, storetest.Sample(2))
	if !ds.HasErrors() || ds.Errors()[0].Code != diag.CodeBackendChanged {
		t.Errorf("written over a state that was not read: %v", ds.Err())
	}
	if got, ds := f.store(t, "").Read(ctx); ds.HasErrors() || got == nil || got.Serial != 5 {
		t.Errorf("%v %v", got, ds.Err())
	}
	_ = o
}

func waiting(t *testing.T, f *fixture) {
	if !f.Locks {
		t.Skip("this kind of store has no locks")
	}
	holder := f.store(t, "")
	unlock, ds := holder.Lock(ctx, info(1), 0)
	fatal(t, ds)
	reported := make(chan *store.LockInfo, 10)
	st, err := Open(t, f.k, f.Place).Store("", backend.StoreOptions{Waiting: func(h *store.LockInfo) { reported <- h }})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan diag.List)
	go func() {
		second, ds := st.Lock(ctx, info(2), time.Minute)
		if !ds.HasErrors() {
			ds = second()
		}
		got <- ds
	}()
	h := <-reported
	if !f.Anonymous && (h == nil || h.Who != "run1@here") {
		t.Errorf("the holder is %+v", h)
	}
	fatal(t, unlock())
	fatal(t, <-got)
	if len(reported) > 0 {
		t.Error("told more than once")
	}
}

func blobs(t *testing.T, f *fixture) {
	b, ok := f.object(t, "").(backend.Blobs)
	if !ok {
		t.Skip("nothing but the state")
	}
	if _, err := b.GetBlob(ctx, "journal/none"); !errors.Is(err, backend.ErrNoBlob) {
		t.Errorf("what is not there: %v", err)
	}
	if err := b.DeleteBlob(ctx, "journal/none"); err != nil {
		t.Error(err)
	}
	names := []string{"journal/a/000001", "journal/a/000002", "journal/b/000001", "other"}
	for i, name := range names {
		if err := b.PutBlob(ctx, name, bytes.Repeat([]byte{byte(i), 0xff, 0}, 100)); err != nil {
			t.Fatal(err)
		}
	}
	fatal(t, f.store(t, "").Write(ctx, storetest.Sample(1)))
	again := f.object(t, "").(backend.Blobs)
	if got, err := again.GetBlob(ctx, names[1]); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{1, 0xff, 0}, 100)) {
		t.Errorf("%x %v", got, err)
	}
	if err := again.PutBlob(ctx, names[1], []byte("new")); err != nil {
		t.Error(err)
	}
	if got, err := again.GetBlob(ctx, names[1]); err != nil || string(got) != "new" {
		t.Errorf("%q %v", got, err)
	}
	for prefix, want := range map[string]int{"journal/": 3, "journal/a/": 2, "journal/c/": 0, "": 4} {
		got, err := again.ListBlobs(ctx, prefix)
		if err != nil || len(got) != want || !slices.IsSorted(got) {
			t.Errorf("%q: %v %v", prefix, got, err)
		}
	}
	if names, err := f.b.List(ctx); f.Workspaces && (err != nil || len(names) != 1) {
		t.Errorf("objects are listed as workspaces: %v %v", names, err)
	}
	for _, name := range names {
		if err := again.DeleteBlob(ctx, name); err != nil {
			t.Error(err)
		}
	}
	if got, err := again.ListBlobs(ctx, ""); err != nil || len(got) != 0 {
		t.Errorf("after deleting: %v %v", got, err)
	}
	if st, ds := f.store(t, "").Read(ctx); ds.HasErrors() || st == nil {
		t.Errorf("the state: %v %v", st, ds.Err())
	}
}

func checked(t *testing.T, f *fixture) {
	written := f.store(t, "")
	fatal(t, written.Write(ctx, storetest.Sample(3)))
	o, _ := written.(*backend.Store)
	was := f.content(t, o)
	found := map[string]backend.Finding{}
	doctor.Run(ctx, f.b, store.Default, backend.StoreOptions{}, info(1), func(x backend.Finding) {
		if found[x.What] = x; x.What == "" || strings.Contains(x.Detail, "\n") {
			t.Errorf("%+v", x)
		}
		f.clean(t, errors.New(x.What+x.Detail+x.Permission))
	})
	wanted := []string{"reading the state"}
	if _, ok := f.b.(backend.Checker); ok {
		wanted = append(wanted, "locking", "credentials", "conditional writes", "versioning", "encryption at rest", "clock")
	}
	for _, what := range wanted {
		if found[what].What == "" {
			t.Errorf("%s was not looked at: %+v", what, found)
		}
	}
	for _, what := range []string{"reading the state", "conditional writes", "credentials", "clock"} {
		if x := found[what]; x.What != "" && !x.OK && !f.Unconditional {
			t.Errorf("%+v", x)
		}
	}
	if x := found["locking"]; x.What != "" && x.OK != f.Locks {
		t.Errorf("%+v", x)
	}
	if now := f.content(t, o); !bytes.Equal(now, was) {
		t.Errorf("the state was touched: %s", now)
	}
	if names, err := f.b.List(ctx); f.Workspaces && (err != nil || len(names) != 1) {
		t.Errorf("left behind: %v %v", names, err)
	}
	if b := backend.BlobsOf(written); b != nil {
		if names, err := b.ListBlobs(ctx, ""); err != nil || len(names) != 0 {
			t.Errorf("left behind: %v %v", names, err)
		}
	}
	if f.Locks {
		unlock, ds := f.store(t, "").Lock(ctx, info(1), 0)
		fatal(t, ds)
		fatal(t, unlock())
	}
}

// content returns the bytes in a store; nil if the store is not a backend.Store of an
// Object.
func (f *fixture) content(t *testing.T, s *backend.Store) []byte {
	t.Helper()
	if s == nil {
		return nil
	}
	p, err := s.Object().Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p.Data
}

func ended(t *testing.T, f *fixture) {
	o := f.object(t, "")
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := o.Read(over); err == nil {
		t.Error("read though the context has ended")
	} else {
		f.clean(t, err)
	}
	if _, err := o.Write(over, []byte("{}\n"), backend.Prior{Unknown: true}, ""); err == nil {
		t.Error("written though the context has ended")
	}
}
