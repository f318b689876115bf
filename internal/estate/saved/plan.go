// Package saved keeps the plan of an estate in a file, and holds later plans to what was
// approved.
//
// A saved plan holds what was approved of each unit: which objects it does what to,
// the inputs as far as they were known, a digest of the configuration, and which
// state it was made from. Since a unit is planned again before it is applied, these
// are what the new plan is held against; a unit that no longer fits is stale, which
// is reported for that unit alone.
//
// A unit's plan is packed as soon as it is made, and unpacked when somebody looks into
// it: an estate's plan takes about as much memory as the file it is saved to.
//
// Main types: Plan, Saving and Approval. The one rule: an approval never says yes to what
// was not shown.
package saved

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/plan"
)

// A Plan is the plan of a run as it is kept in a file.
type Plan struct {
	About About
	Units []*Unit
}

// About says what the plan was made with, in the words of the command line.
type About struct {
	Destroy     bool     `json:"destroy,omitempty"`
	RefreshOnly bool     `json:"refresh_only,omitempty"`
	NoRefresh   bool     `json:"no_refresh,omitempty"`
	Minimal     bool     `json:"minimal_refresh,omitempty"`
	Targets     []string `json:"targets,omitempty"`
	Excludes    []string `json:"excludes,omitempty"`
	Replace     []string `json:"replace,omitempty"`
	// Alone says that the file holds one unit's plan alone, for its own folder.
	Alone bool `json:"alone,omitempty"`
	// Dir is the name of the folder that the units lie in; it is no option either.
	Dir string `json:"dir,omitempty"`
	// Time is that of the run. Plans of one run have the same, and it is no
	// option.
	Time time.Time `json:"time"`
}

// Mode is the planning mode.
func (a About) Mode() plan.Mode {
	switch {
	case a.Destroy:
		return plan.Destroy
	case a.RefreshOnly:
		return plan.RefreshOnly
	}
	return plan.Normal
}

// Equal reports whether two plans were made with the same options.
func (a About) Equal(b About) bool {
	return a.Destroy == b.Destroy && a.RefreshOnly == b.RefreshOnly && a.NoRefresh == b.NoRefresh && a.Minimal == b.Minimal &&
		slices.Equal(a.Targets, b.Targets) && slices.Equal(a.Excludes, b.Excludes) && slices.Equal(a.Replace, b.Replace)
}

// A Unit is one unit of a saved plan.
type Unit struct {
	Name     string            `json:"name"`
	Result   report.Status     `json:"result"`
	Cause    string            `json:"cause,omitempty"`
	Needs    []string          `json:"needs,omitempty"` // other units
	Deferred []report.Deferral `json:"deferred,omitempty"`
	head
	part *planfile.Part
}

// head is what is known of a unit when its plan is made.
type head struct {
	Planned bool        `json:"planned,omitempty"` // it has a plan
	Counts  plan.Counts `json:"counts,omitzero"`
	Reads   plan.Reads  `json:"reads,omitzero"`
	Changes bool        `json:"changes,omitempty"` // the plan does something
	Digest  string      `json:"digest,omitempty"`  // of the configuration
	Lineage string      `json:"lineage,omitempty"` // of the state that the plan was made from, with its serial
	Serial  uint64      `json:"serial,omitempty"`
}

// unitMember is what a part says of its unit.
const unitMember = "unit"

// Plan is the plan of the unit, without its states; nil if there is none.
func (s *Unit) Plan() (*plan.Plan, error) { return s.part.Plan() }

// Decrypt says what reads the plan and the notes of the unit; nil for nothing.
func (s *Unit) Decrypt(by sealing.Sealer) { s.part.Sealer = by }

// Note is what the caller saved of the unit by a name; nil if there is nothing.
func (s *Unit) Note(name string) ([]byte, error) { return s.part.Get(name) }

// A Saving takes the plans of a run that are to be saved. The zero value is ready. Its methods may be called concurrently, those about one unit one after
// the other.
type Saving struct {
	// Readings says that what plans found of objects is kept, too: they are not to be read
	// again for the apply of the same run. It is set before anything else.
	Readings bool

	pack  planfile.Packer
	mu    sync.Mutex
	units map[string]*Unit
	err   error // the last that came up
}

// of is what there is of a unit; anew begins with nothing.
func (s *Saving) of(unit string, anew bool) *Unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units == nil {
		s.units = map[string]*Unit{}
	}
	u := s.units[unit]
	if u == nil || anew {
		u = &Unit{part: s.pack.NewPart()}
		s.units[unit] = u
	}
	return u
}

func (s *Saving) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(err, s.err)
}

// Take takes the plan of a unit, in place of an earlier one with its notes. digest tells
// its configuration from any other. by encrypts them; nil leaves them in the clear.
func (s *Saving) Take(unit, digest string, by sealing.Sealer, p *plan.Plan) {
	u := s.of(unit, true)
	u.part.Sealer = by
	from := journal.HeaderOf(p.PrevRun)
	u.head = head{Planned: true, Counts: p.Counts(), Reads: p.Reads, Changes: p.HasChanges(), Digest: digest, Lineage: from.Lineage, Serial: from.Serial}
	err := u.part.PutPlan(p)
	if err == nil && s.Readings {
		var body []byte
		if body, err = encodeReadings(p); err == nil {
			err = u.part.Put(readingsMember, body)
		}
	}
	if err != nil {
		s.note(fmt.Errorf("unit %s: %w", unit, err))
	}
}

// Note saves something of a unit by a name, besides its plan: no name of this package's
// own, which are "plan", "unit" and "readings". It may be called when the unit was planned and later.
func (s *Saving) Note(unit, name string, body []byte) {
	if err := s.of(unit, false).part.Put(name, body); err != nil {
		s.note(fmt.Errorf("unit %s: %w", unit, err))
	}
}

// Save makes what is kept of a run that planned.
func (s *Saving) Save(about About, results []*report.Result) (*Plan, error) {
	out := &Plan{About: about}
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
		if err := u.part.PutPlain(unitMember, body); err != nil {
			return nil, fmt.Errorf("unit %s: %w", u.Name, err)
		}
		out.Units = append(out.Units, u)
	}
	return out, s.err
}

// Export is what was saved of one unit so far, nil if that is nothing, for the Saving of
// another process. version is that of the program.
func (s *Saving) Export(unit, version string) ([]byte, error) {
	u := s.of(unit, false)
	if u.part.Empty() {
		return nil, nil
	}
	body, err := json.Marshal(u)
	if err == nil {
		err = u.part.PutPlain(unitMember, body)
	}
	var b bytes.Buffer
	if err == nil {
		err = planfile.WriteBundle(&b, []byte("{}"), slices.Values([]*planfile.Part{u.part}), version)
	}
	return b.Bytes(), err
}

// Import takes what another process exported of a unit, in place of what there is.
func (s *Saving) Import(unit string, b []byte, version string) error {
	p, err := Read(bytes.NewReader(b), int64(len(b)), version)
	if err == nil && len(p.Units) != 1 {
		err = fmt.Errorf("%w of one unit", planfile.ErrNotPlan)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units == nil {
		s.units = map[string]*Unit{}
	}
	s.units[unit] = p.Units[0]
	return nil
}

// Write writes the plan to a file. version is that of the program.
func (p *Plan) Write(w io.Writer, version string) error {
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

// Read reads what Write wrote. The error is one of package planfile. Whether plans
// and notes can be read is not known before they are asked for; Check asks for all.
func Read(r io.ReaderAt, size int64, version string) (*Plan, error) {
	b, err := planfile.ReadBundle(r, size, version)
	if err != nil {
		return nil, err
	}
	out := &Plan{}
	if err := json.Unmarshal(b.About, &out.About); err != nil {
		return nil, fmt.Errorf("%w of an estate: %w", planfile.ErrNotPlan, err)
	}
	for _, part := range b.Parts {
		u := &Unit{part: part}
		body, err := part.GetPlain(unitMember)
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
func (p *Plan) Check() error {
	for _, err := range parallel.Map(len(p.Units), 0, func(i int) error { return p.Units[i].part.Check() }) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Approvals are what the plan allows, by unit.
func (p *Plan) Approvals() map[string]*Approval {
	out := map[string]*Approval{}
	for _, u := range p.Units {
		if u.Result == report.Succeeded {
			out[u.Name] = &Approval{saved: u}
		}
	}
	return out
}

// Digest tells the configuration of a unit from any other. Where it lies does not count:
// a unit may be planned on one machine and applied on another.
func Digest(t *module.Tree) string {
	var all []string
	for _, f := range t.Files() {
		sum := sha256.Sum256(f.Bytes)
		all = append(all, fmt.Sprintf("%q %x\n", filepath.Base(f.Path), sum))
	}
	slices.Sort(all)
	h := sha256.New()
	for _, line := range all {
		io.WriteString(h, line)
	}
	return hex.EncodeToString(h.Sum(nil))
}
