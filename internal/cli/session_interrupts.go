package cli

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

// reach is what interrupts reach. Nil functions do nothing.
type reach struct {
	cancel context.CancelFunc // for the first
	gentle func()             // what the first does instead of cancel; nil: cancel
	abort  chan struct{}      // closed at the second
	killed func()             // what the second does first
	trees  *estate.Worktrees  // what the second removes
	ends   func()             // what the second does last: it ends the providers
	traced func() error       // writes the profiles; nil if there are none
}

// watch waits for interrupts until the returned function is called.
func (s *session) watch(ctx context.Context) (stop func()) {
	s.ctx, s.reach.cancel = context.WithCancel(ctx)
	signals, off := s.Interrupts()
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; {
			select {
			case sig := <-signals:
				if sig == syscall.SIGHUP && n > 0 {
					continue // the shell and the system both tell of a terminal that is gone
				}
				if n++; n > 1 {
					s.announce("\nTwo interrupts received. Exiting immediately. Note that data loss may have occurred.\n", nil)
					close(s.reach.abort)
					return
				}
				s.interrupted()
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
		off()
		s.reach.cancel()
	}
}

func (s *session) interrupted() {
	s.mu.Lock()
	gentle := s.reach.gentle
	s.mu.Unlock()
	s.announce("\nInterrupt received.\nPlease wait for "+view.Product+" to exit or data loss may occur.\nGracefully shutting down...\n\n", gentle)
	if gentle == nil {
		s.reach.cancel()
	}
}

// announce is say for the goroutine that waits for interrupts, which may see
// views come and go. What is announced is done, if do is not nil, after people are
// told and before programs are, which may count on it.
func (s *session) announce(text string, do func()) {
	s.mu.Lock()
	human, stream := s.human, s.stream
	s.mu.Unlock()
	human.Say(text)
	if do != nil {
		do()
	}
	stream.Log(strings.TrimSpace(text))
}

// gently sets what the first interrupt does; nil is the default, to cancel.
func (s *session) gently(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reach.gentle = f
}

// whenKilled sets what a second interrupt does before it ends the providers.
func (s *session) whenKilled(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reach.killed = f
}

// endsProviders sets what ends the providers at a second interrupt; nil: there are none.
func (s *session) endsProviders(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reach.ends = f
}

// killPause is how long a second interrupt waits at most for what is to be ended.
const killPause = time.Second

// kill ends the providers, as far as that is quick.
func (s *session) kill() {
	s.mu.Lock()
	ends, killed := s.reach.ends, s.reach.killed
	s.mu.Unlock()
	_ = s.endProfiles() // the process is about to end
	if killed != nil {
		killed()
	}
	soon, end := context.WithTimeout(context.Background(), killPause)
	defer end()
	s.reach.trees.Remove(soon)
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
