package remote

import "strings"

// # Queues by key and version
//
// The name of a queue in the engine ends with a mark of the key and of the program's version. A
// worker with another key could read no data of the run. A worker of another version might decide
// differently, and other versions cannot read the plans it saves. Such workers therefore get no
// turns of the run, nor its workflow, which would fail there.

const markSign = "."

// Queue returns the engine's name of a queue, for a version of the program.
func (s *Sealer) Queue(name, version string) string { return name + markSign + s.Mark(version) }

// Queues returns the engine's names of several queues.
func (s *Sealer) Queues(names []string, version string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = s.Queue(name, version)
	}
	return out
}

// QueueName returns the user's name of an engine's queue. ok is false if the queue belongs to
// another key or version.
func (s *Sealer) QueueName(queue, version string) (name string, ok bool) {
	return strings.CutSuffix(queue, markSign+s.Mark(version))
}
