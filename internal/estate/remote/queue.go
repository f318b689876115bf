package remote

import "strings"

// # Queues by key and version
//
// A queue has a mark of the key and of the program's version behind its name. A worker with
// another key could read nothing of a run; one of another version might decide otherwise, and
// what it saves no other version reads, as with every saved plan. Neither gets turns of the
// run, and above all not its workflow, which would fail there.

const markSign = "."

// Queue is how the engine calls a queue of a version of the program.
func (s *Sealer) Queue(name, version string) string { return name + markSign + s.Mark(version) }

// Queues is Queue for all.
func (s *Sealer) Queues(names []string, version string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = s.Queue(name, version)
	}
	return out
}

// QueueName is what users call a queue of the engine; ok says that it is one of the version.
func (s *Sealer) QueueName(queue, version string) (name string, ok bool) {
	return strings.CutSuffix(queue, markSign+s.Mark(version))
}
