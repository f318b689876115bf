package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
)

// Equal requests are made once, also if they are concurrent. Each caller gets the response.
func TestEqualChecks(t *testing.T) {
	var cs checks
	key := func(text string) check { return checkOf("managed", "t", &pb6.Value{Msgpack: []byte(text)}) }
	answers := map[string][]*pb6.Diagnostic{"good": nil, "good too": nil, "bad": {{Summary: "no"}}}
	var calls atomic.Int64
	var wg sync.WaitGroup
	for text, want := range answers {
		for range 50 {
			wg.Go(func() {
				ds, err := cs.do(t.Context(), key(text), func() ([]*pb6.Diagnostic, error) {
					calls.Add(1)
					return want, nil
				})
				if err != nil || len(ds) != len(want) {
					t.Errorf("%s: %v %v", text, ds, err)
				}
			})
		}
	}
	wg.Wait()
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls", n)
	}
}

// The kind, the type and the value distinguish checks.
func TestCheckIdentity(t *testing.T) {
	seen := map[check]string{}
	for _, kind := range []string{"managed", "data", "ephemeral", "provider"} {
		for _, typ := range []string{"", "t", "tt"} {
			for _, v := range []*pb6.Value{nil, {Msgpack: []byte("t")}, {Msgpack: []byte("\x01t")}, {Msgpack: []byte("\xd4\x00\x00")}} {
				name := fmt.Sprint(kind, typ, v)
				if other, ok := seen[checkOf(kind, typ, v)]; ok {
					t.Errorf("%s is %s", name, other)
				}
				seen[checkOf(kind, typ, v)] = name
			}
		}
	}
}

// A failed call is not recorded, and callers that waited for it call themselves.
func TestFailedChecks(t *testing.T) {
	var cs checks
	started, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := cs.do(t.Context(), check{}, func() ([]*pb6.Diagnostic, error) {
			close(started)
			<-release
			return nil, errors.New("crashed")
		})
		if err == nil {
			t.Error("no error")
		}
	})
	<-started
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := cs.do(stopped, check{}, func() ([]*pb6.Diagnostic, error) { return nil, stopped.Err() }); err == nil {
		t.Error("an interrupted caller waits")
	}
	wg.Go(func() {
		if ds, err := cs.do(t.Context(), check{}, func() ([]*pb6.Diagnostic, error) { return []*pb6.Diagnostic{{}}, nil }); err != nil || len(ds) != 1 {
			t.Error(ds, err)
		}
	})
	close(release)
	wg.Wait()
}

// The number of recorded responses is bounded. The latest are kept.
func TestManyChecks(t *testing.T) {
	var cs checks
	calls := 0
	do := func(n int) {
		_, _ = cs.do(t.Context(), check{byte(n), byte(n >> 8), byte(n >> 16)}, func() ([]*pb6.Diagnostic, error) {
			calls++
			return nil, nil
		})
	}
	const n = 5 * maxChecks
	for i := range n {
		do(i)
		do(0) // in use all the time
	}
	if calls != n {
		t.Errorf("%d calls for %d checks", calls, n)
	}
	if have := len(cs.latest) + len(cs.earlier); have > 2*maxChecks {
		t.Errorf("%d responses are recorded", have)
	}
	do(n - 1)
	do(1)
	if calls != n+1 {
		t.Errorf("%d calls at the end", calls)
	}
}
