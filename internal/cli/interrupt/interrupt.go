// Package interrupt is what an interrupt of the program reaches: the first one
// ends a command gently, the second one at once.
//
// Main type: Handler. The one rule: whoever sets what an interrupt does takes it
// back when its work is done. Commands that run inside another one have its Inner.
package interrupt

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

// A Handler is what interrupts reach. Nil functions do nothing. Its methods may be
// called concurrently.
type Handler struct {
	cancel   context.CancelFunc           // for the first
	abort    chan struct{}                // closed at the second
	announce func(text string, do func()) // tells the user
	children func()                       // ends the programs that were started; may be nil
	gone     <-chan struct{}              // closed when nobody reads the output any more; may be nil
	outer    *Handler                     // that of the command that this one runs inside

	mu     sync.Mutex
	gentle func()                  // what the first does instead of cancel; nil: cancel
	killed func()                  // what the second does first
	ends   func()                  // what the second does last: it ends the providers
	traced func() error            // writes the profiles; nil if there are none
	remove []func(context.Context) // what the second removes
}

// Watch waits for interrupts until stop is called. announce tells the user what
// happens, and does what it is given between telling people and programs.
func Watch(ctx context.Context, system *sys.System, announce func(string, func())) (h *Handler, within context.Context, stop func()) {
	h = &Handler{abort: make(chan struct{}), announce: announce, children: system.EndChildren}
	within, h.cancel = context.WithCancel(ctx)
	signals, off := system.Interrupts()
	if system.Unread != nil {
		h.gone = system.Unread()
	}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		gone := h.gone
		for n := 0; ; {
			select {
			case <-gone:
				gone = nil
				h.unread()
			case sig := <-signals:
				if sig == syscall.SIGHUP && n > 0 {
					continue // the shell and the system both tell of a terminal that is gone
				}
				if n++; n > 1 {
					h.announce("\nTwo interrupts received. Exiting immediately. What was changed is recorded, and the next command takes it up.\n", nil)
					close(h.abort)
					return
				}
				h.first()
			case <-end:
				return
			}
		}
	})
	return h, within, func() {
		close(end)
		wg.Wait()
		off()
		h.cancel()
	}
}

func (h *Handler) first() {
	h.mu.Lock()
	gentle := h.gentle
	h.mu.Unlock()
	h.announce("\nInterrupt received.\nPlease wait for "+view.Product+" to exit: what is under way ends first.\nGracefully shutting down...\n\n", gentle)
	if gentle == nil {
		h.cancel()
	}
}

// unread ends a command that nobody reads any more as an interrupt does, without a word.
func (h *Handler) unread() {
	h.mu.Lock()
	gentle := h.gentle
	h.mu.Unlock()
	if gentle != nil {
		gentle()
		return
	}
	h.cancel()
}

// Unread reports whether nobody reads the output any more.
func (h *Handler) Unread() bool {
	select {
	case <-h.gone:
		return true
	default:
		return false
	}
}

// Aborted is closed at the second interrupt.
func (h *Handler) Aborted() <-chan struct{} { return h.abort }

// Gently sets what the first interrupt does; nil is the default, to cancel.
func (h *Handler) Gently(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gentle = f
}

// WhenKilled sets what a second interrupt does before it ends the providers.
func (h *Handler) WhenKilled(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killed = f
}

// EndsProviders sets what ends the providers at a second interrupt; nil: there are none.
func (h *Handler) EndsProviders(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = f
}

// Removes adds what takes away something that a killed command must not leave behind.
func (h *Handler) Removes(f func(context.Context)) {
	for h.outer != nil {
		h = h.outer
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove = append(h.remove, f)
}

// Inner is a handler for a command that runs inside this one: no interrupt reaches
// it, but what is to be removed.
func (h *Handler) Inner() *Handler { return &Handler{outer: h} }

// Traces sets what writes the profiles of the program.
func (h *Handler) Traces(f func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traced = f
}

// EndTraces writes the profiles, once.
func (h *Handler) EndTraces() error {
	h.mu.Lock()
	stop := h.traced
	h.traced = nil
	h.mu.Unlock()
	if stop == nil {
		return nil
	}
	return stop()
}

// killPause is how long a second interrupt waits at most for what is to be ended.
const killPause = 3 * time.Second

// Kill ends the programs that were started, with all their processes, and the providers, as
// far as that is quick. The process ends after it.
func (h *Handler) Kill() {
	h.mu.Lock()
	ends, killed, remove := h.ends, h.killed, h.remove
	h.mu.Unlock()
	// States are left as they are before anything is ended: what an apply makes of a program
	// that was killed must not get into them. A write that hangs does not keep programs alive.
	left := make(chan struct{})
	go func() { // waited for below
		defer close(left)
		if killed != nil {
			killed()
		}
	}()
	select {
	case <-left:
	case <-time.After(killPause):
	}
	if h.children != nil {
		h.children()
	}
	_ = h.EndTraces() // the process is about to end
	<-left
	soon, end := context.WithTimeout(context.Background(), killPause)
	defer end()
	for _, f := range remove {
		f(sys.Cleaning(soon))
	}
	if ends == nil {
		return
	}
	done := make(chan struct{})
	go func() { // left behind if it takes long: the process is about to end
		ends()
		close(done)
	}()
	select {
	case <-done:
	case <-soon.Done():
	}
}
