package remote

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
)

// # Messages between two programs
//
// The program that shows a run and the program that talks to the engine are two processes on one
// machine, connected by pipes. Each line is a Message. The first contains a request (Start or
// Attach). Messages with its results follow, until Over or Failed.

// A Message is one line on the pipe. Exactly one field is set, except where noted.
type Message struct {
	// Messages to the engine.
	Start  *Start  `json:"start,omitempty"`
	Attach *Attach `json:"attach,omitempty"`
	Answer *bool   `json:"answer,omitempty"` // answer to Idle
	Stop   bool    `json:"stop,omitempty"`   // start no more units

	// Messages from the engine.
	Started  string          `json:"started,omitempty"` // ID of the run
	Job      *Job            `json:"job,omitempty"`     // result of Attach
	Begun    *string         `json:"begun,omitempty"`   // name of a unit that started
	Activity *Activity       `json:"doing,omitempty"`
	Ended    *Ended          `json:"ended,omitempty"`
	Refused  *RefusedUnit    `json:"refused,omitempty"`
	Idle     bool            `json:"idle,omitempty"` // only units that wait for an answer are left
	Note     string          `json:"note,omitempty"` // text for the user
	Over     bool            `json:"over,omitempty"`
	Failed   string          `json:"failed,omitempty"` // reason why the run could not continue
	Tasks    []schedule.Task `json:"tasks,omitempty"`  // sent with Job
	Rules    *schedule.Rules `json:"rules,omitempty"`
}

// Engine contains the address of the engine, and the version of this program.
type Engine struct {
	Version string `json:"version"` // version of this program; both programs must have the same
	On      string `json:"on"`      // temporal://HOST:PORT/NAMESPACE/QUEUE
	Blobs   string `json:"blobs"`   // location of blobs; "" means the directory of this machine
}

// Start begins a run.
type Start struct {
	Engine
	Job      Job             `json:"job"`
	InPlace  bool            `json:"in_place,omitempty"`
	Approved []byte          `json:"approved,omitempty"` // saved plan to apply
	Tasks    []schedule.Task `json:"tasks"`
	Rules    schedule.Rules  `json:"rules"`
	Places   int             `json:"places,omitempty"` // maximum number of concurrent turns; 0 means the capacity of the workers
	// Queues contains the queues of units that do not use the queue of the run. Memory contains
	// the memory of turns in MiB, by unit. Turns contains the maximum number of concurrent turns,
	// by queue.
	Queues map[string]string `json:"queues,omitempty"`
	Memory map[string]int    `json:"memory,omitempty"`
	Turns  map[string]int    `json:"turns,omitempty"`
	Detach bool              `json:"detach,omitempty"`
	// Commits contains git's answers about the commits of filters, and Checkouts the worktrees
	// from which units were read, by commit.
	Commits   *git.Record       `json:"commits,omitempty"`
	Checkouts map[string]string `json:"checkouts,omitempty"`
}

// Attach follows a run that was started earlier.
type Attach struct {
	Engine
	ID string `json:"id"`
}

// An Activity describes the current step of a unit.
type Activity struct {
	Unit string `json:"unit"`
	Text string `json:"text"`
}

// Ended is the result of a turn.
type Ended struct {
	Unit    string           `json:"unit"`
	At      time.Time        `json:"at,omitzero"` // time by the engine's clock
	Outcome schedule.Outcome `json:"outcome"`
	Asks    bool             `json:"asks,omitempty"` // the turn waits for approval; see Done
	Report  json.RawMessage  `json:"report,omitempty"`
	// Lost is the reason if no worker reported a result.
	Lost string `json:"lost,omitempty"`
}

// RefusedUnit is a unit that was not run.
type RefusedUnit struct {
	Unit string           `json:"unit"`
	Why  schedule.Refusal `json:"why"` // its numbers are indexes of Tasks
}

// A Link is one end of the connection. Send may be called concurrently.
type Link struct {
	in  *json.Decoder
	mu  sync.Mutex
	out *json.Encoder
}

// NewLink returns a Link over two streams.
func NewLink(in io.Reader, out io.Writer) *Link {
	return &Link{in: json.NewDecoder(in), out: json.NewEncoder(out)}
}

// Send sends a message.
func (l *Link) Send(m Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Encode(m)
}

// Next reads the next message. It returns io.EOF if the other end is closed.
func (l *Link) Next() (Message, error) {
	var m Message
	err := l.in.Decode(&m)
	return m, err
}
