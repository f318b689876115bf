package plan

import (
	"crypto/sha256"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Reads says how many objects were planned without asking their providers what they are
// like. Zero where the plan was to read everything.
type Reads struct {
	Objects int // managed objects in state
	Spared  int // those that were not read, as the plan changes nothing of them
	Recent  int // those that were not read, as an earlier command did lately
	Data    int // data sources that are known well enough to be read
	Kept    int // those that were not read, as their arguments are those of the last time
}

// Add sums up the reads of several plans.
func (r Reads) Add(o Reads) Reads {
	return Reads{r.Objects + o.Objects, r.Spared + o.Spared, r.Recent + o.Recent, r.Data + o.Data, r.Kept + o.Kept}
}

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
	say(r.Kept, r.Data, "data sources not read", "their arguments are unchanged")
	return out
}

// A Digest stands for an object as state holds it, or for arguments.
type Digest [sha256.Size]byte

// DigestOf is that of an object; zero for nil.
func DigestOf(o *state.Object) Digest {
	if o == nil {
		return Digest{}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d %d %d %t\n", o.SchemaVersion, o.IdentityVersion, len(o.JSON), len(o.Private), len(o.Identity), o.Tainted)
	for _, part := range [][]byte{o.JSON, o.Private, o.Identity} {
		h.Write(part)
	}
	if o.JSON == nil {
		fmt.Fprint(h, o.Flat) // in the order of its keys
	}
	return Digest(h.Sum(nil))
}

// DigestArgs is that of arguments, which are wholly known.
func DigestArgs(v cty.Value) Digest {
	v, _ = v.UnmarkDeep()
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return Digest{}
	}
	return sha256.Sum256(text)
}

// A Reading is what a provider said of an object while a plan was made.
type Reading struct {
	Object addr.Object
	Stored Digest        // of what state held before; of a data source, of what was read
	Found  *state.Object // what there was; nil if it was as stored, or did not exist any more
	Gone   bool
	Args   Digest // of a data source
}
