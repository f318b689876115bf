package interrupt

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A second interrupt leaves states as they are before it ends programs and providers, so
// that nothing of what those come to is written; but a write that hangs keeps no program
// alive.
func TestKill(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []string
			note := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, what)
			}
			written := make(chan struct{})
			system := &sys.System{
				Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
				EndChildren: func() {
					note("programs")
					if hangs {
						close(written) // the write comes to its end when its program does
					}
				},
			}
			h, _, stop := Watch(context.Background(), system, func(string, func()) {})
			defer stop()
			h.WhenKilled(func() {
				if hangs {
					<-written
				}
				note("states")
			})
			h.EndsProviders(func() { note("providers") })
			h.Kill()
			want := []string{"states", "programs", "providers"}
			if hangs {
				want = []string{"programs", "states", "providers"}
			}
			if !slices.Equal(order, want) {
				t.Errorf("a write hangs: %v: the order is %v, want %v", hangs, order, want)
			}
		})
	}
}
