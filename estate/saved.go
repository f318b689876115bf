package estate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/state"
)

// # A plan of the whole in one file
//
// A saved plan holds what was approved of each unit: which objects it does what to,
// the inputs as far as they were known, a digest of the configuration, and which
// state it was made from. Since a unit is planned again before it is applied, these
// are what the new plan is held against; a unit that no longer fits is stale, which
// is told of that unit alone.

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
	Name     string          `json:"name"`
	Result   Status          `json:"result"`
	Cause    string          `json:"cause,omitempty"`
	Needs    []string        `json:"needs,omitempty"`  // other units
	Digest   string          `json:"digest,omitempty"` // of the configuration
	Deferred []Deferral      `json:"deferred,omitempty"`
	Notes    json.RawMessage `json:"notes,omitempty"` // the caller's
	Plan     *plan.Plan      `json:"-"`               // without its states; nil if there is none
}

// Save makes what is kept of a run that planned. notes are the caller's, by unit.
func Save(about SavedRun, results []*Result, notes map[string]json.RawMessage) *SavedPlan {
	out := &SavedPlan{About: about}
	for _, res := range results {
		s := &Saved{Name: res.Unit.Name, Result: res.Status, Cause: res.Cause, Digest: res.digest, Deferred: res.Deferred, Notes: notes[res.Unit.Name]}
		for _, n := range res.Unit.Needs {
			s.Needs = append(s.Needs, n.Name)
		}
		if res.Plan != nil {
			s.Plan = withoutStates(res.Plan)
		}
		out.Units = append(out.Units, s)
	}
	return out
}

// withoutStates is a plan as it is saved: of the states there is no more than tells
// whether they are still the same.
func withoutStates(p *plan.Plan) *plan.Plan {
	out := *p
	out.PrevRun, out.Prior = headOf(p.PrevRun), nil
	return &out
}

// headOf is a state without what is in it.
func headOf(s *state.State) *state.State {
	if s == nil {
		return nil
	}
	return state.New().WithMeta(s.Lineage, s.Serial, s.TerraformVersion)
}

// Write writes the plan to a file. version is that of the program.
func (p *SavedPlan) Write(w io.Writer, version string) error {
	about, err := json.Marshal(p.About)
	if err != nil {
		return err
	}
	return planfile.WriteBundle(w, about, p.parts(), version)
}

// parts makes the units into parts of a bundle, each when it is its turn.
func (p *SavedPlan) parts() iter.Seq2[planfile.Part, error] {
	return func(yield func(planfile.Part, error) bool) {
		for _, u := range p.Units {
			notes, err := json.Marshal(u)
			if err != nil {
				err = fmt.Errorf("unit %s: %w", u.Name, err)
			}
			part := planfile.Part{Notes: notes}
			if u.Plan != nil {
				part.File = &planfile.File{Plan: u.Plan}
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

// ReadSaved reads what Write wrote. The error is one of package planfile.
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
		u := &Saved{}
		if err := json.Unmarshal(part.Notes, u); err != nil {
			return nil, fmt.Errorf("%w of an estate: %w", planfile.ErrNotPlan, err)
		}
		if part.File != nil {
			u.Plan = part.File.Plan
		}
		out.Units = append(out.Units, u)
	}
	return out, nil
}

// Approvals are what the plan allows, by unit.
func (p *SavedPlan) Approvals() map[string]*Approval {
	out := map[string]*Approval{}
	for _, u := range p.Units {
		if u.Result != Succeeded {
			continue
		}
		a := approval(u.Plan, u.Deferred)
		if u.Plan != nil {
			a.saved = u
		}
		out[u.Name] = a
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
	a := w.r.o.Approved[w.u.Name]
	if a == nil || a.saved == nil {
		return
	}
	for name, v := range a.saved.Plan.Variables {
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
