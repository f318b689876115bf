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

// TestKill checks that a second interrupt abandons states before it ends programs and
// providers, so that their results are not written. It also checks that a write that hangs
// does not keep programs alive.
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
						close(written) // the write ends when its program ends
					}
				},
			}
			h, _, stop := Watch(context.Background(), system, "Terrace", func(string, func()) {})
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
