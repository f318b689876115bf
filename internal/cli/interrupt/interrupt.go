// Package interrupt handles interrupts of the program: the first one ends a command gently,
// and the second one at once.
//
// Main type: Handler. The one rule: the caller that sets an action resets it when its work is
// done. A command that runs inside another one uses the Handler of Inner.
package interrupt

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A Handler contains the actions on interrupts. nil means no action. Its methods may be called
// concurrently.
type Handler struct {
	cancel   context.CancelFunc           // called at the first interrupt
	abort    chan struct{}                // closed at the second interrupt
	announce func(text string, do func()) // prints a text to the user
	children func()                       // ends the programs that this process started; may be nil
	gone     <-chan struct{}              // closed when the reader of the output is gone; may be nil
	product  string                       // the program's name in texts
	outer    *Handler                     // handler of the command that this one runs inside; nil for none

	mu     sync.Mutex
	gentle func()                  // called at the first interrupt instead of cancel; may be nil
	killed func()                  // called first at the second interrupt; may be nil
	ends   func()                  // called last at the second interrupt, to end providers; may be nil
	traced func() error            // writes the profiles; nil for none
	remove []func(context.Context) // called at the second interrupt, to remove files
}

// Watch handles interrupts until the caller calls stop. It passes texts for the user to
// announce. announce must call its second argument, unless that is nil, after the text for
// people and before the text for programs. product is the program's name in the texts.
func Watch(ctx context.Context, system *sys.System, product string, announce func(string, func())) (h *Handler, within context.Context, stop func()) {
	h = &Handler{abort: make(chan struct{}), announce: announce, product: product, children: system.EndChildren}
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
					continue // both the shell and the system send SIGHUP when a terminal closes
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
	h.announce("\nInterrupt received.\nPlease wait for "+h.product+" to exit: what is under way ends first.\nGracefully shutting down...\n\n", gentle)
	if gentle == nil {
		h.cancel()
	}
}

// unread ends a command whose output has no reader any more. It acts as at the first
// interrupt, but prints nothing.
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

// Unread reports whether the reader of the output is gone.
func (h *Handler) Unread() bool {
	select {
	case <-h.gone:
		return true
	default:
		return false
	}
}

// Aborted returns a channel that is closed at the second interrupt.
func (h *Handler) Aborted() <-chan struct{} { return h.abort }

// Gently sets the action for the first interrupt. nil restores the default, which cancels the
// context.
func (h *Handler) Gently(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gentle = f
}

// WhenKilled sets the first action of the second interrupt. It runs before programs and
// providers are ended. nil means no action.
func (h *Handler) WhenKilled(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killed = f
}

// EndsProviders sets the function that ends the providers at the second interrupt. nil means
// that there are none.
func (h *Handler) EndsProviders(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = f
}

// Removes adds a function that removes files which a killed command must not leave behind.
func (h *Handler) Removes(f func(context.Context)) {
	for h.outer != nil {
		h = h.outer
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove = append(h.remove, f)
}

// Inner returns a handler for a command that runs inside this one. No interrupt reaches it,
// but functions given to its Removes are called.
func (h *Handler) Inner() *Handler { return &Handler{outer: h} }

// Traces sets the function that writes the profiles of the program.
func (h *Handler) Traces(f func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traced = f
}

// EndTraces writes the profiles at the first call, and does nothing at later ones.
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

// killPause is the longest time that a second interrupt waits for each step.
const killPause = 3 * time.Second

// Kill ends started programs with all of their processes, and the providers if that is quick.
// The process must end afterwards.
func (h *Handler) Kill() {
	h.mu.Lock()
	ends, killed, remove := h.ends, h.killed, h.remove
	h.mu.Unlock()
	// The states are abandoned before programs end, so that the results of killed programs are
	// not written to them. If a write hangs, the programs are ended anyway.
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
	_ = h.EndTraces() // an error does not matter: the process is about to end
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
	go func() { // not waited for if it is slow: the process is about to end
		ends()
		close(done)
	}()
	select {
	case <-done:
	case <-soon.Done():
	}
}
