package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/par"
	"github.com/terrace-iac/terrace/internal/picture"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
)

// unitNote is what is saved of a unit's plan for those who read it: the text of its
// changes, its form in JSON, and what else a page shows of it.
type unitNote struct {
	Pieces []view.Piece    `json:"pieces"`
	Plan   json.RawMessage `json:"plan,omitempty"`
	Page   *savedUnit      `json:"page,omitempty"`
}

// notePages adds to what is saved of each unit what a page shows of it.
func (r *estateRun) notePages(units []picture.Unit, results []*estate.Result) {
	type note struct {
		Pieces json.RawMessage `json:"pieces"`
		Plan   json.RawMessage `json:"plan,omitempty"`
		Page   *savedUnit      `json:"page,omitempty"`
	}
	done := par.Map(len(results), 0, func(i int) json.RawMessage {
		n := note{Pieces: json.RawMessage("[]")}
		raw := r.notes.of[results[i].Unit.Name]
		if len(raw) > 0 && json.Unmarshal(raw, &n) != nil {
			return raw
		}
		n.Page = r.savedUnit(&units[i], results[i])
		if with, err := json.Marshal(n); err == nil {
			return with
		}
		return raw // without it
	})
	for i, res := range results {
		r.notes.put(res.Unit.Name, done[i], nil)
	}
}

// save writes the plan of all units to the file of -out.
func (r *estateRun) save(results []*estate.Result) diag.List {
	if r.flags.out == "" || results == nil {
		return nil
	}
	var b bytes.Buffer
	err := r.notes.err
	if err == nil {
		err = estate.Save(r.about(), results, r.notes.of).Write(&b, Version)
	}
	if err == nil {
		err = atomicfile.Write(r.Path(r.flags.out), b.Bytes(), 0o600)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to write plan file", "The plan file could not be written: %s.", err)
	}
	if worst(results) != 0 {
		r.human.Say("\nSaved the plan to: " + r.flags.out + "\n\nIt is incomplete, since not every unit could be planned, and can only be shown.\n")
		return nil
	}
	if r.human != nil && !r.automated() {
		r.human.Say("\nSaved the plan to: " + r.flags.out + "\n\nTo perform these actions, run the following command to apply:\n    " + view.Program + " run --all apply " + quoteArg(r.flags.out) + "\n")
	}
	return nil
}

func addresses(all []addr.Target) []string {
	var out []string
	for _, t := range all {
		out = append(out, t.String())
	}
	return out
}

// readSaved reads the plan that is to be applied, and takes over what it was made with.
func (r *estateRun) readSaved(name string) int {
	if r.op.destroy || r.op.refreshOnly || !r.op.refresh || len(r.op.scope.targets)+len(r.op.scope.excludes)+len(r.op.scope.replace)+len(r.op.scope.targetFiles)+len(r.op.scope.excludeFiles) > 0 {
		return r.fail(diag.Errorf(nil, "Can't change plan options", "A saved plan is applied with the options that it was made with, so -destroy, -refresh, -refresh-only, -replace, -target and -exclude cannot be given with one."))
	}
	p, err := r.openSaved(name)
	if err != nil {
		return r.fail(planFileError(name, err))
	}
	return r.applySaved(name, p)
}

// applySaved takes over what a saved plan was made with.
func (r *estateRun) applySaved(name string, p *estate.SavedPlan) int {
	for _, u := range p.Units {
		if u.Result == estate.Failed || u.Result == estate.EarlyExit {
			return r.fail(diag.Errorf(nil, "Saved plan is incomplete", "The plan in %q was saved although the unit %s could not be planned. It cannot be applied: plan again.", name, u.Name))
		}
	}
	r.saved = p
	r.op.destroy, r.op.refreshOnly, r.op.refresh = p.About.Destroy, p.About.RefreshOnly, !p.About.NoRefresh
	r.op.scope.targets, r.op.scope.excludes, r.op.scope.replace = p.About.Targets, p.About.Excludes, p.About.Replace
	return 0
}

func (s *session) openSaved(name string) (*estate.SavedPlan, error) {
	return readFile(s.Path(name), func(r io.ReaderAt, size int64) (*estate.SavedPlan, error) { return estate.ReadSaved(r, size, Version) })
}

// isEstatePlan reports whether a file is the saved plan of an estate.
func (s *session) isEstatePlan(name string) bool {
	is, err := readFile(s.Path(name), func(r io.ReaderAt, size int64) (bool, error) { return planfile.IsBundle(r, size), nil })
	return err == nil && is
}

// showEstatePlan shows the saved plan of an estate.
func showEstatePlan(s *session, o *showOptions, name string) int {
	p, err := s.openSaved(name)
	if err != nil {
		return s.fail(planFileError(name, err))
	}
	notes := make([]unitNote, len(p.Units))
	for i, u := range p.Units {
		if len(u.Notes) == 0 {
			continue
		}
		if err := json.Unmarshal(u.Notes, &notes[i]); err != nil {
			return s.fail(planFileError(name, fmt.Errorf("%w of an estate: %w", planfile.ErrNotPlan, err)))
		}
	}
	if o.json.on || o.json.into != "" {
		doc, err := savedJSON(p, notes)
		if p.About.Alone && len(notes) == 1 && len(notes[0].Plan) > 0 { // what other programs expect of the plan of a folder
			doc = notes[0].Plan
		}
		if code := s.document(o, doc, err, nil); o.json.on || code != 0 {
			return code
		}
	}
	r := &estateRun{session: s, f: &unitFlags{}, name: "plan", shown: newDisplay()}
	var results []*estate.Result
	for i, u := range p.Units {
		res := &estate.Result{Unit: &estate.Unit{Name: u.Name}, Status: u.Result, Cause: u.Cause, Deferred: u.Deferred, Changes: len(u.Deferred) > 0}
		if u.Plan != nil {
			n := u.Plan.Counts()
			res.Counts = estate.Counts{Add: n.Add, Change: n.Change, Destroy: n.Destroy, Import: n.Import, Forget: n.Forget}
			res.Changes = res.Changes || u.Plan.HasChanges()
			pieces := notes[i].Pieces
			if o.reveal {
				pieces = view.Pieces(s.human.Style, u.Plan, nil, true)
			}
			r.shown.folds.add(u.Name, pieces)
		}
		r.shown.width = max(r.shown.width, len(u.Name))
		results = append(results, res)
	}
	if o.html != "" {
		if ds := s.writePage(o.html, savedPage(p, notes, results)); ds.HasErrors() {
			return s.fail(ds)
		}
		return 0
	}
	if !changes(results) {
		s.human.Say("\nNo changes. The saved plan of " + fmt.Sprint(len(results)) + " units does nothing.\n")
		return 0
	}
	r.showPlans(results)
	return 0
}

// savedJSON is the machine-readable form of a saved plan: a document for each unit.
func savedJSON(p *estate.SavedPlan, notes []unitNote) ([]byte, error) {
	type unitJSON struct {
		Name     string           `json:"name"`
		Result   estate.Status    `json:"result"`
		Cause    string           `json:"cause,omitempty"`
		Deferred []map[string]any `json:"deferred,omitempty"`
		Plan     json.RawMessage  `json:"plan,omitempty"`
	}
	doc := struct {
		Format string     `json:"estate_format_version"`
		Units  []unitJSON `json:"units"`
	}{Format: "1.0"}
	for i, u := range p.Units {
		x := unitJSON{Name: u.Name, Result: u.Result, Cause: u.Cause, Plan: notes[i].Plan}
		for _, d := range u.Deferred {
			x.Deferred = append(x.Deferred, map[string]any{"address": d.Address, "reason": d.Reason, "at": rangeJSON(d.At), "waits_for": waitsJSON(d.Waits)})
		}
		doc.Units = append(doc.Units, x)
	}
	return json.Marshal(doc)
}
