package remote

import "strings"

// # Queues by key
//
// A queue has the mark of the key behind its name: a worker with another key, which could
// read nothing of a run, does not get its turns, and above all not its workflow, which
// would fail there.

const markSign = "."

// Queue is how the engine calls a queue.
func (s *Sealer) Queue(name string) string { return name + markSign + s.Mark() }

// Queues is Queue for all.
func (s *Sealer) Queues(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = s.Queue(name)
	}
	return out
}

// QueueName is what users call a queue of the engine.
func (s *Sealer) QueueName(queue string) string { return strings.TrimSuffix(queue, markSign+s.Mark()) }
