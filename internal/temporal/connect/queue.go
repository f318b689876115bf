package connect

import (
	"strings"

	"github.com/terrace-iac/terrace/internal/estate/remote"
)

// # Queues by key
//
// A queue has the mark of the key behind its name: a worker with another key, which could
// read nothing of a run, does not get its turns, and above all not its workflow, which
// would fail there.

const markSign = "."

// QueueOf is how the engine calls a queue.
func QueueOf(name string, s *remote.Sealer) string { return name + markSign + s.Mark() }

// QueuesOf is QueueOf for all.
func QueuesOf(names []string, s *remote.Sealer) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = QueueOf(name, s)
	}
	return out
}

// NameOf is what users call a queue of the engine.
func NameOf(queue string, s *remote.Sealer) string {
	return strings.TrimSuffix(queue, markSign+s.Mark())
}
