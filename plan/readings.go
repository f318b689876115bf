package plan

import (
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

// Reads says how many objects were planned without asking their providers what they are
// like. Zero where the plan was to read everything.
type Reads struct {
	Objects int // managed objects in state, deposed ones among them
	Spared  int // those that were not read, as the plan changes nothing of them
	Recent  int // those that were not read, as an earlier command did lately
	Ending  int // those that were not read, as the plan does away with them
	Data    int // data sources that are known well enough to be read
	Kept    int // those that were not read, as what they are read with is that of the last time
}

// Add sums up the reads of several plans.
func (r Reads) Add(o Reads) Reads {
	return Reads{r.Objects + o.Objects, r.Spared + o.Spared, r.Recent + o.Recent, r.Ending + o.Ending, r.Data + o.Data, r.Kept + o.Kept}
}

// NotRefreshed is how many objects were not read.
func (r Reads) NotRefreshed() int { return r.Spared + r.Recent + r.Ending }

// Lines say what was not read, each a sentence without its full stop; none if all was.
func (r Reads) Lines() []string {
	var out []string
	say := func(n, of int, what, why string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d of %d %s: %s", n, of, what, why))
		}
	}
	say(r.Spared, r.Objects, "objects not refreshed", "unchanged in configuration")
	say(r.Recent, r.Objects, "objects not refreshed", "read lately")
	say(r.Ending, r.Objects, "objects not refreshed", "no longer wanted")
	say(r.Kept, r.Data, "data sources not read", "their arguments are unchanged")
	return out
}

// A Reading is what a provider said of an object while a plan was made.
type Reading struct {
	Object addr.Object
	Stored state.Digest  // of what state held before; of a data source, of what was read
	Found  *state.Object // what there was; nil if it was as stored, or did not exist any more
	Gone   bool
	// With is what the provider was configured with and, for a data source, its arguments and
	// the objects that it depends on. Zero where that is not known; then the reading stands
	// for no other.
	With state.Digest
}
