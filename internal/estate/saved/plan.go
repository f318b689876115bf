// Package saved stores the plan of an estate in a file, and compares later plans with the
// approved one.
//
// A saved plan contains the approved data of each unit: the actions on objects, the known inputs,
// a digest of the configuration, and the version of the state. Each unit is planned again before
// it is applied, and the new plan is compared with this data. A unit that no longer matches is
// stale, which is an error of that unit only.
//
// A unit's plan is compressed as soon as it is made, and decompressed when it is needed. The plan
// of an estate therefore uses about as much memory as its file.
//
// Main types: Plan, Saving and Approval. The one rule: only actions that the user has seen are
// approved.
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

// A Plan is the plan of a run as it is stored in a file.
type Plan struct {
	About About
	Units []*UnitPlan
}

// About contains the options with which the plan was made.
type About struct {
	Destroy     bool     `json:"destroy,omitempty"`
	RefreshOnly bool     `json:"refresh_only,omitempty"`
	NoRefresh   bool     `json:"no_refresh,omitempty"`
	Minimal     bool     `json:"minimal_refresh,omitempty"`
	Targets     []string `json:"targets,omitempty"`
	Excludes    []string `json:"excludes,omitempty"`
	Replace     []string `json:"replace,omitempty"`
	Defer       bool     `json:"defer,omitempty"` // objects are deferred for unknown values of their own unit
	// Causes means that the text of the plan names causes.
	Causes bool `json:"causes,omitempty"`
	// Branch and Revision are those of the repository, and Flags those of the command that made the
	// plan. They may be empty. Equal ignores them.
	Branch   string   `json:"branch,omitempty"`
	Revision string   `json:"revision,omitempty"`
	Flags    []string `json:"flags,omitempty"`
	// Alone means that the file contains the plan of a single unit, made in its own directory.
	Alone bool `json:"alone,omitempty"`
	// Dir is the name of the directory that contains the units. Equal ignores it.
	Dir string `json:"dir,omitempty"`
	// Time is the time of the run. All plans of a run have the same. Equal ignores it.
	Time time.Time `json:"time"`
}

// Mode returns the plan mode.
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
		a.Defer == b.Defer && slices.Equal(a.Targets, b.Targets) && slices.Equal(a.Excludes, b.Excludes) && slices.Equal(a.Replace, b.Replace)
}

// A UnitPlan is one unit of a saved plan.
type UnitPlan struct {
	Name     string            `json:"name"`
	Result   report.Status     `json:"result"`
	Cause    string            `json:"cause,omitempty"`
	Needs    []string          `json:"needs,omitempty"` // names of dependencies
	Deferred []report.Deferral `json:"deferred,omitempty"`
	head
	part *planfile.Part
}

// head contains the data of a unit that is known when its plan is made.
type head struct {
	Planned bool        `json:"planned,omitempty"` // the unit has a plan
	Counts  plan.Counts `json:"counts,omitzero"`
	Reads   plan.Reads  `json:"reads,omitzero"`
	Changes bool        `json:"changes,omitempty"` // the plan contains changes
	Digest  string      `json:"digest,omitempty"`  // digest of the configuration
	Lineage string      `json:"lineage,omitempty"` // lineage of the state from which the plan was made
	Serial  uint64      `json:"serial,omitempty"`
}

// unitMember is the name of the member with the Unit itself.
const unitMember = "unit"

// Plan returns the plan of the unit without its states, or nil if there is none.
func (s *UnitPlan) Plan() (*plan.Plan, error) { return s.part.Plan() }

// Decrypt sets the sealer that decrypts the plan and the notes of the unit. nil means none.
func (s *UnitPlan) Decrypt(by sealing.Sealer) { s.part.Sealer = by }

// Note returns the data that the caller saved for the unit under a name, or nil if there is none.
func (s *UnitPlan) Note(name string) ([]byte, error) { return s.part.Get(name) }

// A Saving collects the plans of a run that are saved. The zero value is ready to use. Its
// methods may be called concurrently for different units.
type Saving struct {
	// Readings means that the reads of plans are saved too, so that the apply of the same run
	// need not repeat them. It is set before the first call.
	Readings bool

	pack  planfile.Packer
	mu    sync.Mutex
	units map[string]*UnitPlan
	err   error // last error
}

// of returns the data of a unit. anew discards earlier data.
func (s *Saving) of(unit string, anew bool) *UnitPlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units == nil {
		s.units = map[string]*UnitPlan{}
	}
	u := s.units[unit]
	if u == nil || anew {
		u = &UnitPlan{part: s.pack.NewPart()}
		s.units[unit] = u
	}
	return u
}

func (s *Saving) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(err, s.err)
}

// Take saves the plan of a unit, and discards an earlier one with its notes. digest is the digest
// of its configuration. by encrypts the data; nil means no encryption.
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

// Note saves data of a unit under a name, in addition to its plan. The names "plan", "unit" and
// "readings" are reserved. It may be called after Take.
func (s *Saving) Note(unit, name string, body []byte) {
	if err := s.of(unit, false).part.Put(name, body); err != nil {
		s.note(fmt.Errorf("unit %s: %w", unit, err))
	}
}

// Save returns the saved plan of a run that planned.
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

// Export returns the saved data of one unit for the Saving of another process, or nil if there is
// none. version is the version of the program.
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

// Import replaces the data of a unit by data that another process exported.
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
		s.units = map[string]*UnitPlan{}
	}
	s.units[unit] = p.Units[0]
	return nil
}

// Plan returns the plan of a unit, or nil if there is none. by decrypts it; nil means that plans are
// not encrypted.
func (s *Saving) Plan(unit string, by sealing.Sealer) (*plan.Plan, error) {
	s.mu.Lock()
	u := s.units[unit]
	s.mu.Unlock()
	if u == nil || !u.Planned {
		return nil, nil
	}
	if by != nil {
		u.Decrypt(by)
	}
	return u.Plan()
}

// Write writes the plan to a file. version is the version of the program.
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

// Read reads the result of Write. Its errors are those of package planfile. It does not verify
// plans and notes; Check does.
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
		u := &UnitPlan{part: part}
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

// Check returns an error if any part of the plan is damaged.
func (p *Plan) Check() error {
	for _, err := range parallel.Map(len(p.Units), 0, func(i int) error { return p.Units[i].part.Check() }) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Approvals returns the approvals of the plan, by unit.
func (p *Plan) Approvals() map[string]*Approval {
	out := map[string]*Approval{}
	for _, u := range p.Units {
		if u.Result == report.Succeeded {
			out[u.Name] = &Approval{saved: u}
		}
	}
	return out
}

// Digest returns a digest of a unit's configuration. It does not depend on the directory, since a
// unit may be planned on one machine and applied on another.
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
