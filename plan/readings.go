package plan

import (
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

// Reads counts the objects that were planned without reading them from their providers. It is
// zero if the plan had to read everything.
type Reads struct {
	Objects int // managed objects in state, including deposed ones
	Spared  int // objects not read because the plan does not change them
	Recent  int // objects not read because an earlier command read them recently
	Ending  int // objects not read because the plan removes them
	Data    int // data sources whose arguments are known, so that they can be read
	Kept    int // data sources not read because their inputs have not changed since the last read
}

// Add returns the sums of r and o.
func (r Reads) Add(o Reads) Reads {
	return Reads{r.Objects + o.Objects, r.Spared + o.Spared, r.Recent + o.Recent, r.Ending + o.Ending, r.Data + o.Data, r.Kept + o.Kept}
}

// NotRefreshed returns the number of managed objects that were not read.
func (r Reads) NotRefreshed() int { return r.Spared + r.Recent + r.Ending }

// Lines returns sentences without a full stop about what was not read. It is empty if
// everything was read.
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

// A Reading is the result of reading an object during a plan.
type Reading struct {
	Object addr.Object
	Stored state.Digest  // digest of the object in state before the read; for a data source, digest of the object that was read
	Found  *state.Object // the object that was read; nil if it equals the stored one or no longer exists
	Gone   bool          // the object no longer exists
	// With is a digest of the provider's configuration. For a data source it includes the
	// arguments and the objects that it depends on. If it is zero, these are not known and the
	// reading cannot replace another one.
	With state.Digest
}
