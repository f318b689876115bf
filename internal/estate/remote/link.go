package remote

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
)

// # The conversation of two programs
//
// The program that shows a run and the one that speaks with the engine are two processes
// of one machine, joined by pipes. Each line is a Message. The first says what is wanted
// (Start, Attach); what comes of it follows until Over or Failed.

// A Message is one line of the conversation. One field is set.
type Message struct {
	// To the engine.
	Start  *Start  `json:"start,omitempty"`
	Attach *Attach `json:"attach,omitempty"`
	Answer *bool   `json:"answer,omitempty"` // to Idle
	Stop   bool    `json:"stop,omitempty"`   // begin nothing more

	// From the engine.
	Started  string          `json:"started,omitempty"` // the ID of the run
	Job      *Job            `json:"job,omitempty"`     // of Attach
	Begun    *string         `json:"begun,omitempty"`   // a unit that has its turn
	Activity *Activity       `json:"doing,omitempty"`
	Ended    *Ended          `json:"ended,omitempty"`
	Refused  *RefusedUnit    `json:"refused,omitempty"`
	Idle     bool            `json:"idle,omitempty"` // nothing is left to do but what asks
	Note     string          `json:"note,omitempty"` // for the user
	Over     bool            `json:"over,omitempty"`
	Failed   string          `json:"failed,omitempty"` // the run could not go on
	Tasks    []schedule.Task `json:"tasks,omitempty"`  // of Attach, with Job
	Rules    *schedule.Rules `json:"rules,omitempty"`
}

// Engine says where the engine is, and who asks.
type Engine struct {
	Version string `json:"version"` // of the program that asks, which both must be of
	On      string `json:"on"`      // temporal://HOST:PORT/NAMESPACE/QUEUE
	Blobs   string `json:"blobs"`   // where blobs lie; "" for the folder of this machine
}

// Start begins a run.
type Start struct {
	Engine
	Job      Job             `json:"job"`
	InPlace  bool            `json:"in_place,omitempty"`
	Approved []byte          `json:"approved,omitempty"` // the saved plan that is applied
	Tasks    []schedule.Task `json:"tasks"`
	Rules    schedule.Rules  `json:"rules"`
	Places   int             `json:"places,omitempty"` // how many turns at once; 0: as many as workers have room for
	// Queues are those of units that have another than the run's, Memory the MiB that turns of
	// units take, and Turns how many each queue has at once.
	Queues map[string]string `json:"queues,omitempty"`
	Memory map[string]int    `json:"memory,omitempty"`
	Turns  map[string]int    `json:"turns,omitempty"`
	Detach bool              `json:"detach,omitempty"`
	// Commits is what git says of the commits that filters are about, and Checkouts where those
	// are checked out that units were read in.
	Commits   *git.Record       `json:"commits,omitempty"`
	Checkouts map[string]string `json:"checkouts,omitempty"`
}

// Attach follows a run that was started before.
type Attach struct {
	Engine
	ID string `json:"id"`
}

// An Activity is what a unit does in its turn.
type Activity struct {
	Unit string `json:"unit"`
	Text string `json:"text"`
}

// Ended is what came of a turn.
type Ended struct {
	Unit    string           `json:"unit"`
	At      time.Time        `json:"at,omitzero"` // when, by the engine's clock
	Outcome schedule.Outcome `json:"outcome"`
	Asks    bool             `json:"asks,omitempty"` // it has not ended, see Done
	Report  json.RawMessage  `json:"report,omitempty"`
	// Lost says that no worker reported its result.
	Lost string `json:"lost,omitempty"`
}

// RefusedUnit is a unit that had no turn.
type RefusedUnit struct {
	Unit string           `json:"unit"`
	Why  schedule.Refusal `json:"why"` // whose numbers are those of Tasks
}

// A Link is one end of the conversation. Send may be called concurrently.
type Link struct {
	in  *json.Decoder
	mu  sync.Mutex
	out *json.Encoder
}

// NewLink makes an end of two streams.
func NewLink(in io.Reader, out io.Writer) *Link {
	return &Link{in: json.NewDecoder(in), out: json.NewEncoder(out)}
}

// Send sends a message.
func (l *Link) Send(m Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Encode(m)
}

// Next is the next message, io.EOF when the other end is gone.
func (l *Link) Next() (Message, error) {
	var m Message
	err := l.in.Decode(&m)
	return m, err
}
