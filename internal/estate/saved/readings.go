package saved

import (
	"encoding/json"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// readingsMember is the name of the member with the reads of a unit's plan. Only plans that are
// sent between the processes of one run contain it, and plan files do not.
const readingsMember = "readings"

// wireReading is the serialized form of a plan.Reading.
type wireReading struct {
	// Object is the object that was read, or its deletion if it was missing or unchanged.
	Object json.RawMessage `json:"object"`
	Stored []byte          `json:"stored"`
	Gone   bool            `json:"gone,omitempty"`
	With   []byte          `json:"with,omitempty"`
}

// encodeReadings serializes the reads of a plan.
func encodeReadings(p *plan.Plan) ([]byte, error) {
	out := make([]wireReading, 0, len(p.Readings))
	for _, r := range p.Readings {
		c := state.Change{Object: r.Object, New: r.Found}
		if r.Found != nil {
			_, pc, ok := p.Prior.Object(r.Object)
			if !ok {
				continue // the object is read again later
			}
			c.Provider = pc
		}
		object, err := statefile.AppendChange(nil, c)
		if err != nil {
			return nil, err
		}
		w := wireReading{Object: object, Stored: r.Stored[:], Gone: r.Gone}
		if r.With != (state.Digest{}) {
			w.With = r.With[:]
		}
		out = append(out, w)
	}
	return json.Marshal(out)
}

// decodeReadings deserializes the result of encodeReadings.
func decodeReadings(b []byte) (map[addr.Object]plan.Reading, error) {
	var all []wireReading
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	out := make(map[addr.Object]plan.Reading, len(all))
	for _, w := range all {
		c, err := statefile.ParseChange(w.Object)
		if err != nil {
			return nil, err
		}
		r := plan.Reading{Object: c.Object, Found: c.New, Gone: w.Gone}
		if len(w.Stored) != len(r.Stored) || len(w.With) != 0 && len(w.With) != len(r.With) {
			return nil, fmt.Errorf("a digest of %s has another length", c.Object)
		}
		copy(r.Stored[:], w.Stored)
		copy(r.With[:], w.With)
		out[c.Object] = r
	}
	return out, nil
}
