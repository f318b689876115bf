package workspace

import (
	"context"
	"fmt"
	"testing"
)

type fakeResult struct {
	seen   reading
	closed int
}

func (f *fakeResult) read() *reading { return &f.seen }
func (f *fakeResult) close()         { f.closed++ }

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
	if computed["0"] != 1 || first.closed != 0 {
		t.Errorf("computed %d times, closed %d times", computed["0"], first.closed)
	}
	get("another")
	if len(r.slots) != maxResults || len(r.order) != maxResults {
		t.Errorf("%d results in %d slots", len(r.order), len(r.slots))
	}
	if first.closed != 1 {
		t.Errorf("a result that is no longer kept was closed %d times", first.closed)
	}
	if again := get("0"); again == first || computed["0"] != 2 {
		t.Error("a result that was closed is returned")
	}
}
