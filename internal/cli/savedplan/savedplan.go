// Package savedplan writes the plans of an estate to files, together with their text and JSON
// forms, and reads such files.
//
// Main types: Files, which writes the plans of a run; Read reads one. The one rule: everything
// needed to print a plan is saved with it, since the provider schemas are not available later.
package savedplan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/plan"
)

// Names of the notes saved with the plan of a unit.
const (
	TextNote = "text" // the changes as text: JSON of []view.Piece; missing if there are none
	JSONNote = "json" // the plan in its JSON form; missing if it has none
	PageNote = "page" // the content of the HTML page; see planpage

	OriginNote = "origins" // JSON of []view.Origin; missing if there are none
)

// Files writes the plans of a run: all of them to the file of -out, and each unit's to files
// in --out-dir and --json-out-dir.
type Files struct {
	Call               *command.Call
	File, Dir, JSONDir string // paths; "" for none
	Saving             *estate.Saving
}

// Wanted reports whether the run saves plans.
func (k *Files) Wanted() bool { return k.File != "" || k.Dir != "" || k.JSONDir != "" }

// Plan saves the forms of a plan while its provider schemas are available. pieces are the
// changes without colors and secrets.
func (k *Files) Plan(u *estate.Unit, e *engine.Engine, p *plan.Plan, sc *project.Schemas, pieces []view.Piece) {
	if len(pieces) > 0 {
		k.Note(u.Name, TextNote, pieces)
	}
	if origins := view.AllOrigins(p); len(origins) > 0 {
		k.Note(u.Name, OriginNote, origins)
	}
	if doc, err := planjson.Plan(planjson.Input{Plan: p, Tree: e.Tree(), Schemas: sc, Version: config.LanguageVersion}); err == nil {
		k.Saving.Note(u.Name, JSONNote, doc.Bytes())
	}
}

// Note saves a value for a unit under a name.
func (k *Files) Note(unit, name string, what any) {
	if body, err := json.Marshal(what); err == nil { // plain data, so this cannot fail
		k.Saving.Note(unit, name, body)
	}
}

// ReadNote reads a value that Note saved. It leaves into unchanged if there is none.
func ReadNote(u *estate.SavedUnit, name string, into any) error {
	body, err := u.Note(name)
	if body == nil || err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w of an estate: %w", planfile.ErrNotPlan, err)
	}
	return nil
}

// Write writes the plan of all units to the file of -out. complete means that every unit was
// planned.
func (k *Files) Write(about estate.SavedRun, results []*estate.Result, complete bool) diag.List {
	if k.File == "" || results == nil {
		return nil
	}
	p, err := k.Saving.Save(about, results)
	if err == nil {
		err = atomicfile.WriteFrom(k.Call.Path(k.File), 0o600, func(w io.Writer) error { return p.Write(w, release.Version) })
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write plan file", "The plan file could not be written: %s.", err)
	}
	if !complete {
		k.Call.Report.Human.Say("\nSaved the plan to: " + k.File + "\n\nIt is incomplete, since not every unit could be planned, and can only be shown.\n")
		return nil
	}
	if k.Call.Report.Human != nil && !k.Call.Report.Automated() {
		k.Call.Report.Human.Say("\nSaved the plan to: " + k.File + "\n\nTo perform these actions, run the following command to apply:\n    " + k.Call.Report.Names.Program() + " run --all apply " + strconv.Quote(k.File) + "\n")
	}
	return nil
}

// Read reads the saved plan of an estate.
func Read(c *command.Call, name string) (*estate.SavedPlan, error) {
	return workdir.ReadFile(c.Path(name), func(r io.ReaderAt, size int64) (*estate.SavedPlan, error) {
		return saved.Read(r, size, release.Version)
	})
}

// IsPlan reports whether a file is the saved plan of an estate.
func IsPlan(c *command.Call, name string) bool {
	is, err := workdir.ReadFile(c.Path(name), func(r io.ReaderAt, size int64) (bool, error) { return planfile.IsBundle(r, size), nil })
	return err == nil && is
}

// Pieces returns the changes of a unit in a saved plan as text.
func Pieces(c *command.Call, about estate.SavedRun, u *estate.SavedUnit, reveal bool) ([]view.Piece, error) {
	if reveal {
		p, err := u.Plan()
		if p == nil || err != nil {
			return nil, err
		}
		return view.ShowCauses(view.Style{}, view.Pieces(c.Report.Human.Style, p, nil, true), false), nil
	}
	var pieces []view.Piece
	err := ReadNote(u, TextNote, &pieces)
	return view.ShowCauses(view.Style{}, pieces, about.Causes), err
}

// WriteJSON writes the JSON form of a saved plan: an object with a document for each unit, or
// the document of its only unit, which other programs expect for the plan of a directory.
func WriteJSON(w io.Writer, p *estate.SavedPlan) error {
	type unitJSON struct {
		Name     string           `json:"name"`
		Result   estate.Status    `json:"result"`
		Cause    string           `json:"cause,omitempty"`
		Deferred []map[string]any `json:"deferred,omitempty"`
		Plan     json.RawMessage  `json:"plan,omitempty"`
		Origins  json.RawMessage  `json:"origins,omitempty"`
	}
	if p.About.Alone && len(p.Units) == 1 {
		if whole, err := p.Units[0].Note(JSONNote); len(whole) > 0 || err != nil {
			_, werr := w.Write(whole)
			return errors.Join(err, werr)
		}
	}
	text := func(s string) error {
		_, err := io.WriteString(w, s)
		return err
	}
	err := text(`{"estate_format_version":"1.0","units":[`)
	for i, u := range p.Units {
		whole, failed := u.Note(JSONNote)
		origins, unread := u.Note(OriginNote)
		x := unitJSON{Name: u.Name, Result: u.Result, Cause: u.Cause, Plan: whole, Origins: origins}
		for _, d := range u.Deferred {
			x.Deferred = append(x.Deferred, map[string]any{"address": d.Address, "reason": d.Reason, "at": unitview.PlaceJSON(d.At), "waits_for": unitview.WaitsJSON(d)})
		}
		body, wrong := json.Marshal(x)
		if i > 0 {
			err = errors.Join(err, text(","))
		}
		if err = errors.Join(err, failed, unread, wrong, text(string(body))); err != nil {
			return err
		}
	}
	return errors.Join(err, text("]}"))
}
