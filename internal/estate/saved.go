package estate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/plan"
)

// # A plan of the whole in one file
//
// A saved plan holds what was approved of each unit: which objects it does what to,
// the inputs as far as they were known, a digest of the configuration, and which
// state it was made from. Since a unit is planned again before it is applied, these
// are what the new plan is held against; a unit that no longer fits is stale, which
// is told of that unit alone.
//
// A unit's plan is packed as soon as it is made, and unpacked when somebody looks into
// it: an estate's plan takes about as much memory as the file it is saved to.

// A SavedPlan is the plan of a run as it is kept in a file.
type SavedPlan struct {
	About SavedRun
	Units []*Saved
}

// A SavedRun says what the plan was made with, in the words of the command line.
type SavedRun struct {
	Destroy     bool     `json:"destroy,omitempty"`
	RefreshOnly bool     `json:"refresh_only,omitempty"`
	NoRefresh   bool     `json:"no_refresh,omitempty"`
	Targets     []string `json:"targets,omitempty"`
	Excludes    []string `json:"excludes,omitempty"`
	Replace     []string `json:"replace,omitempty"`
	// Alone says that the file holds one unit's plan alone, for its own folder.
	Alone bool `json:"alone,omitempty"`
	// Dir is the name of the folder that the units lie in; it is no option either.
	Dir string `json:"dir,omitempty"`
	// Time is that of the run (Options.At). Plans of one run have the same, and it is no
	// option.
	Time time.Time `json:"time"`
}

// Equal reports whether two plans were made with the same options.
func (a SavedRun) Equal(b SavedRun) bool {
	return a.Destroy == b.Destroy && a.RefreshOnly == b.RefreshOnly && a.NoRefresh == b.NoRefresh &&
		slices.Equal(a.Targets, b.Targets) && slices.Equal(a.Excludes, b.Excludes) && slices.Equal(a.Replace, b.Replace)
}

// Saved is one unit of a saved plan.
type Saved struct {
	Name     string     `json:"name"`
	Result   Status     `json:"result"`
	Cause    string     `json:"cause,omitempty"`
	Needs    []string   `json:"needs,omitempty"` // other units
	Deferred []Deferral `json:"deferred,omitempty"`
	head
	part *planfile.Part
}

// head is what is known of a unit when its plan is made.
type head struct {
	Planned bool   `json:"planned,omitempty"` // it has a plan
	Counts  Counts `json:"counts,omitzero"`
	Changes bool   `json:"changes,omitempty"` // the plan does something
	Digest  string `json:"digest,omitempty"`  // of the configuration
	Lineage string `json:"lineage,omitempty"` // of the state that the plan was made from, with its serial
	Serial  uint64 `json:"serial,omitempty"`
}

// unitMember is what a part says of its unit.
const unitMember = "unit"

// Plan is the plan of the unit, without its states; nil if there is none.
func (s *Saved) Plan() (*plan.Plan, error) { return s.part.Plan() }

// Note is what the caller saved of the unit by a name; nil if there is nothing.
func (s *Saved) Note(name string) ([]byte, error) { return s.part.Get(name) }

// A Saving takes the plans of a run that are to be saved (RunOptions.Saving). The zero
// value is ready. Its methods may be called concurrently, those about one unit one after
// the other.
type Saving struct {
	pack  planfile.Packer
	mu    sync.Mutex
	units map[string]*Saved
	err   error // the last that came up
}

// of is what there is of a unit; anew begins with nothing.
func (s *Saving) of(unit string, anew bool) *Saved {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units == nil {
		s.units = map[string]*Saved{}
	}
	u := s.units[unit]
	if u == nil || anew {
		u = &Saved{part: s.pack.NewPart()}
		s.units[unit] = u
	}
	return u
}

func (s *Saving) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(err, s.err)
}

// plan takes the plan of a unit, in place of an earlier one with its notes.
func (s *Saving) plan(unit, digest string, p *plan.Plan) {
	u := s.of(unit, true)
	from := journal.HeaderOf(p.PrevRun)
	u.head = head{Planned: true, Counts: countsOf(p), Changes: p.HasChanges(), Digest: digest, Lineage: from.Lineage, Serial: from.Serial}
	if err := u.part.PutPlan(p); err != nil {
		s.note(fmt.Errorf("unit %s: %w", unit, err))
	}
}

// Note saves something of a unit by a name, besides its plan: no name of this package's
// own, which are "plan" and "unit". It may be called when the unit was planned and later.
func (s *Saving) Note(unit, name string, body []byte) {
	if err := s.of(unit, false).part.Put(name, body); err != nil {
		s.note(fmt.Errorf("unit %s: %w", unit, err))
	}
}

// Save makes what is kept of a run that planned.
func (s *Saving) Save(about SavedRun, results []*Result) (*SavedPlan, error) {
	out := &SavedPlan{About: about}
	for _, res := range results {
		u := s.of(res.Unit.Name, false)
		u.Name, u.Result, u.Cause, u.Deferred, u.Needs = res.Unit.Name, res.Status, res.Cause, res.Deferred, nil
		for _, n := range res.Unit.Needs {
			u.Needs = append(u.Needs, n.Name)
		}
		body, err := json.Marshal(u)
		if err != nil {
			return nil, fmt.Errorf("unit %s: %w", u.Name, err)
		}
		s.Note(u.Name, unitMember, body)
		out.Units = append(out.Units, u)
	}
	return out, s.err
}

// Write writes the plan to a file. version is that of the program.
func (p *SavedPlan) Write(w io.Writer, version string) error {
	about, err := json.Marshal(p.About)
	if err != nil {
		return err
	}
	return planfile.WriteBundle(w, about, func(yield func(*planfile.Part) bool) {
		for _, u := range p.Units {
			if !yield(u.part) {
				return
			}
		}
	}, version)
}

// ReadSaved reads what Write wrote. The error is one of package planfile. Whether plans
// and notes can be read is not known before they are asked for; Check asks for all.
func ReadSaved(r io.ReaderAt, size int64, version string) (*SavedPlan, error) {
	b, err := planfile.ReadBundle(r, size, version)
	if err != nil {
		return nil, err
	}
	out := &SavedPlan{}
	if err := json.Unmarshal(b.About, &out.About); err != nil {
		return nil, fmt.Errorf("%w of an estate: %w", planfile.ErrNotPlan, err)
	}
	for _, part := range b.Parts {
		u := &Saved{part: part}
		body, err := part.Get(unitMember)
		if err == nil && json.Unmarshal(body, u) != nil {
			err = fmt.Errorf("%w of an estate: what it says of a unit is not what was written", planfile.ErrNotPlan)
		}
		if err != nil {
			return nil, err
		}
		out.Units = append(out.Units, u)
	}
	return out, nil
}

// Check reports an error if something of the plan is not what was written.
func (p *SavedPlan) Check() error {
	for _, err := range parallel.Map(len(p.Units), 0, func(i int) error { return p.Units[i].part.Check() }) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Approvals are what the plan allows, by unit.
func (p *SavedPlan) Approvals() map[string]*Approval {
	out := map[string]*Approval{}
	for _, u := range p.Units {
		if u.Result == Succeeded {
			out[u.Name] = &Approval{saved: u}
		}
	}
	return out
}

// Cover leaves out of the estate what a saved plan does not hold. It returns the
// units of the plan that the estate does not have.
func (e *Estate) Cover(p *SavedPlan) (gone []string) {
	held := map[string]bool{}
	have := map[string]bool{}
	for _, u := range p.Units {
		held[u.Name] = u.Result == Succeeded
	}
	for _, u := range e.Units {
		have[u.Name] = true
		if u.Excluded == "" && !held[u.Name] {
			u.Excluded = "the saved plan does not hold it"
		}
	}
	for _, u := range p.Units {
		if held[u.Name] && !have[u.Name] {
			gone = append(gone, u.Name)
		}
	}
	slices.Sort(gone)
	return gone
}

// savedInputs are the variables that a saved plan was made with and that nothing
// gives a value now.
func (w *work) savedInputs() {
	if w.approval == nil || w.approval.saved == nil {
		return
	}
	for name, v := range w.approval.inputs {
		if _, ok := w.values[name]; !ok && v.IsWhollyKnown() && w.engine.Root().Variables[name] != nil {
			w.values[name] = engine.InputValue{Value: v}
		}
	}
}

// digest tells the configuration of the unit from any other.
func (w *work) digest() string {
	p := w.u.place.shared
	p.summing.Do(func() { p.sum = digestOf(w.engine.Tree()) })
	return p.sum
}

func digestOf(t *module.Tree) string {
	h := sha256.New()
	for _, f := range t.Files() {
		fmt.Fprintf(h, "%q %d\n", f.Path, len(f.Bytes))
		h.Write(f.Bytes)
	}
	return hex.EncodeToString(h.Sum(nil))
}
