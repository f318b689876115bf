package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
)

// A Session is a job that a process has opened in order to run its units. Create it with
// NewSession. The side that has the estate calls Serve, and the side that receives turns from the
// engine calls Ask. Its methods may be called concurrently.
type Session struct {
	Job   *Job
	Blobs *Blobs
	// Approved is the saved plan of the job, or nil if there is none.
	Approved []byte
	// Local is the directory in which this process has the files of Job.Root.
	Local string
	// Commits contains git's answers that were recorded when the run was started. nil means that
	// there is a repository here, or that no answers are needed.
	Commits *git.Record
	// Unpack writes the files of a tree into a directory that does not exist. nil means that
	// workers have the same files.
	Unpack func(ctx context.Context, tree, dir string) error
	// Stop, when closed, lets running units end and prevents others from starting.
	Stop chan struct{}

	asked chan *Request
	ended chan struct{}

	mu      sync.Mutex
	stopped bool
	why     error
	leases  map[string]*statemgr.Lease // leases of running turns, by unit
}

// NewSession returns a Session of a job.
func NewSession(j *Job, b *Blobs, approved []byte) *Session {
	return &Session{Job: j, Blobs: b, Approved: approved, Stop: make(chan struct{}), asked: make(chan *Request), ended: make(chan struct{}), leases: map[string]*statemgr.Lease{}}
}

// A Request is a request to run a unit.
type Request struct {
	Turn
	Ctx   context.Context
	Lease *statemgr.Lease // nil means that no other worker takes over the turn
	// Tell receives lines about the progress of the turn. It may be nil.
	Tell  func(line string)
	reply chan result
}

type result struct {
	done *Done
	err  error
}

// ErrNotServed is the error of Ask if the estate was not opened or is closed again.
var ErrNotServed = errors.New("the estate is not open")

// Ask runs a unit, and waits for the result.
func (s *Session) Ask(r *Request) (*Done, error) {
	r.reply = make(chan result, 1)
	select {
	case s.asked <- r:
	case <-s.ended:
		return nil, s.reason()
	}
	got := <-r.reply
	return got.done, got.err
}

func (s *Session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil {
		return s.why
	}
	return ErrNotServed
}

// Serve calls do for each requested turn, concurrently, until the context or the session ends. It
// then waits for running turns.
func (s *Session) Serve(ctx context.Context, do func(*Request) (*Done, error)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case r := <-s.asked:
			wg.Go(func() {
				s.take(r.Unit, r.Lease)
				done, err := do(r)
				r.reply <- result{done, err}
			})
		case <-ctx.Done():
			return
		case <-s.ended:
			return
		}
	}
}

// End ends the session. Later calls of Ask return why; nil means ErrNotServed.
func (s *Session) End(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
	default:
		s.why = why
		close(s.ended)
	}
}

// StopTurns lets running units end and prevents others from starting.
func (s *Session) StopTurns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.Stop)
	}
}

func (s *Session) take(unit string, t *statemgr.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[unit] = t
}

// Lease returns the lease of the turn of a unit, or nil if there is none. s may be nil.
func (s *Session) Lease(unit string) *statemgr.Lease {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[unit]
}
