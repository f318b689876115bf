package workspace

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

type fakeResult struct {
	seen   reading
	closed atomic.Int32
}

func (f *fakeResult) read() *reading { return &f.seen }
func (f *fakeResult) close()         { f.closed.Add(1) }

// A result is computed once as long as it is current, and is closed when it is replaced by those of
// other keys.
func TestResults(t *testing.T) {
	s := &Session{Files: &Files{}, slots: make(chan struct{}, 2)}
	var r results[*fakeResult]
	computed := map[string]int{}
	get := func(key string) *fakeResult {
		return r.get(t.Context(), s, key, func(_ context.Context, key string, _ *fakeResult) *fakeResult {
			computed[key]++
			return &fakeResult{seen: reading{files: s.Files}}
		})
	}
	first := get("0")
	for i := range maxResults {
		get(fmt.Sprint(i))
	}
	if computed["0"] != 1 || first.closed.Load() != 0 {
		t.Errorf("computed %d times, closed %d times", computed["0"], first.closed.Load())
	}
	get("another")
	if len(r.slots) != maxResults || len(r.order) != maxResults {
		t.Errorf("%d results in %d slots", len(r.order), len(r.slots))
	}
	for end := time.Now().Add(time.Minute); first.closed.Load() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a result that is no longer kept was closed %d times", first.closed.Load())
		}
	}
	if again := get("0"); again == first || computed["0"] != 2 {
		t.Error("a result that was closed is returned")
	}
}

// A canceled request does not wait for the computation that another request has started.
func TestResultsCanceled(t *testing.T) {
	s := &Session{Files: &Files{}, slots: make(chan struct{}, 1)}
	var r results[*fakeResult]
	started, finish := make(chan struct{}), make(chan struct{})
	done := make(chan *fakeResult)
	go func() { // ends with finish
		done <- r.get(t.Context(), s, "a", func(context.Context, string, *fakeResult) *fakeResult {
			close(started)
			<-finish
			return &fakeResult{seen: reading{files: s.Files}}
		})
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.get(ctx, s, "a", nil); got != nil {
		t.Error("a canceled request has a result")
	}
	close(finish)
	if <-done == nil {
		t.Error("the first request has no result")
	}
}
