package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
)

// A Session is a job that a process has opened, so that its units can have their turns
// there. Make it with NewSession. Serve is the side that has the estate, Ask the one that
// hears of turns.
type Session struct {
	Job   *Job
	Blobs *Blobs
	// Approved is the saved plan of the job; nil if there is none.
	Approved []byte
	// Local is where this process has the files of Job.Root.
	Local string
	// Commits is what git said of commits where the run was begun; nil: there is a repository
	// here, or nobody asks for one.
	Commits *git.Record
	// Unpack writes the files of a tree into a folder that does not exist; nil if no files
	// travel.
	Unpack func(ctx context.Context, tree, dir string) error
	// Stop, when closed, lets what runs end and starts nothing more.
	Stop chan struct{}

	asked chan *Request
	ended chan struct{}

	mu      sync.Mutex
	stopped bool
	why     error
	leases  map[string]*statemgr.Lease // by unit
}

// NewSession is a session of a job.
func NewSession(j *Job, b *Blobs, approved []byte) *Session {
	return &Session{Job: j, Blobs: b, Approved: approved, Stop: make(chan struct{}), asked: make(chan *Request), ended: make(chan struct{}), leases: map[string]*statemgr.Lease{}}
}

// A Request is a turn that is wanted.
type Request struct {
	Turn
	Ctx   context.Context
	Lease *statemgr.Lease // nil: nobody takes the work over
	// Tell takes what the turn tells while it goes on; nil: nobody listens.
	Tell  func(line string)
	reply chan result
}

type result struct {
	done *Done
	err  error
}

// ErrNotServed is what Ask returns when the estate was not opened, or is closed again.
var ErrNotServed = errors.New("the estate is not open")

// Ask has a unit have its turn, and waits for what comes of it.
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

// Serve calls do for each turn that is asked for, concurrently, until the context or the
// session ends, and waits for those that are under way.
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

// End ends the session; why is what those learn who still ask, nil for ErrNotServed.
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

// StopTurns lets what runs end, and starts nothing more.
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

// Lease is that of the turn of a unit; nil if there is none. s may be nil.
func (s *Session) Lease(unit string) *statemgr.Lease {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[unit]
}
