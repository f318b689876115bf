package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/unitview"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/internal/planjson"
	"github.com/terrace-iac/terrace/internal/vars"
	"github.com/terrace-iac/terrace/plan"
)

// What is saved of a unit beside its plan, by name.
const (
	textNote = "text" // the changes as they are shown, as JSON of []view.Piece; missing if there are none
	jsonNote = "json" // the plan in its machine-readable form; missing if it has none
	pageNote = "page" // what a page shows of it, as JSON of savedUnit
)

// keeping is how the plans of a run are kept: in the file of -out, and for each unit in
// those of --out-dir and --json-out-dir.
type keeping struct {
	call               *command.Call
	file, dir, jsonDir string // "" for none
	saving             *estate.Saving
}

// on reports whether plans are kept.
func (k *keeping) on() bool { return k.file != "" || k.dir != "" || k.jsonDir != "" }

// plan saves what is known of a plan while its provider schemas can be read: pieces
// are its changes without colors and secrets.
func (k *keeping) plan(u *estate.Unit, e *engine.Engine, p *plan.Plan, sc *project.Schemas, pieces []view.Piece) {
	if len(pieces) > 0 {
		k.note(u.Name, textNote, pieces)
	}
	if doc, err := planjson.Plan(planjson.Input{Plan: p, Tree: e.Tree(), Schemas: sc, Version: config.LanguageVersion}); err == nil {
		k.saving.Note(u.Name, jsonNote, doc.Bytes())
	}
}

// note saves something of a unit by a name.
func (k *keeping) note(unit, name string, what any) {
	if body, err := json.Marshal(what); err == nil { // plain data: nothing fails
		k.saving.Note(unit, name, body)
	}
}

// readNote reads what note saved; what is missing stays as it is.
func readNote(u *estate.SavedUnit, name string, into any) error {
	body, err := u.Note(name)
	if body == nil || err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w of an estate: %w", planfile.ErrNotPlan, err)
	}
	return nil
}

// write writes the plan of all units to the file of -out.
func (k *keeping) write(about estate.SavedRun, results []*estate.Result) diag.List {
	if k.file == "" || results == nil {
		return nil
	}
	p, err := k.saving.Save(about, results)
	if err == nil {
		err = atomicfile.WriteFrom(k.call.Path(k.file), 0o600, func(w io.Writer) error { return p.Write(w, project.Version) })
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to write plan file", "The plan file could not be written: %s.", err)
	}
	if worst(results) != 0 {
		k.call.Report.Human.Say("\nSaved the plan to: " + k.file + "\n\nIt is incomplete, since not every unit could be planned, and can only be shown.\n")
		return nil
	}
	if k.call.Report.Human != nil && !k.call.Report.Automated() {
		k.call.Report.Human.Say("\nSaved the plan to: " + k.file + "\n\nTo perform these actions, run the following command to apply:\n    " + view.Program + " run --all apply " + strconv.Quote(k.file) + "\n")
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
	if r.op.Destroy || r.op.RefreshOnly || !r.op.Refresh || r.op.Reads.Minimal || len(r.op.Scope.Targets)+len(r.op.Scope.Excludes)+len(r.op.Scope.Replace)+len(r.op.Scope.TargetFiles)+len(r.op.Scope.ExcludeFiles) > 0 {
		return r.Fail(diag.Errorf(nil, "Can't change plan options", "A saved plan is applied with the options that it was made with, so -destroy, -minimal-refresh, -refresh, -refresh-only, -replace, -target and -exclude cannot be given with one."))
	}
	p, err := openSaved(r.Call, name)
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return r.Fail(project.PlanFileError(name, err))
	}
	return r.applySaved(name, p)
}

// applySaved takes over what a saved plan was made with.
func (r *estateRun) applySaved(name string, p *estate.SavedPlan) int {
	for _, u := range p.Units {
		if u.Result == estate.Failed || u.Result == estate.EarlyExit {
			return r.Fail(diag.Errorf(nil, "Saved plan is incomplete", "The plan in %q was saved although the unit %s could not be planned. It cannot be applied: plan again.", name, u.Name))
		}
	}
	r.saved = p
	r.op.Destroy, r.op.RefreshOnly, r.op.Refresh, r.op.Reads.Minimal = p.About.Destroy, p.About.RefreshOnly, !p.About.NoRefresh, p.About.Minimal
	r.op.Scope.Targets, r.op.Scope.Excludes, r.op.Scope.Replace = p.About.Targets, p.About.Excludes, p.About.Replace
	return 0
}

// takeApproved takes over what the plan of a job was made with, if it came from a file.
func (r *estateRun) takeApproved() int {
	b := r.Serving.Approved
	if b == nil || r.Serving.Job.Asked {
		return 0
	}
	p, err := saved.Read(bytes.NewReader(b), int64(len(b)), project.Version)
	if err != nil {
		return r.Fail(project.PlanFileError("of the run", err))
	}
	return r.applySaved("of the run", p)
}

func openSaved(c *command.Call, name string) (*estate.SavedPlan, error) {
	return project.ReadFile(c.Path(name), func(r io.ReaderAt, size int64) (*estate.SavedPlan, error) {
		return saved.Read(r, size, project.Version)
	})
}

// IsPlan reports whether a file is the saved plan of an estate.
func IsPlan(c *command.Call, name string) bool {
	is, err := project.ReadFile(c.Path(name), func(r io.ReaderAt, size int64) (bool, error) { return planfile.IsBundle(r, size), nil })
	return err == nil && is
}

// ShowOptions says how the saved plan of an estate is shown.
type ShowOptions struct {
	JSON   flags.JSON
	HTML   string // the page to write; "" for none
	Reveal bool
	Vars   []vars.Flag // for the encryption of the working folder
}

// ShowPlan shows the saved plan of an estate.
func ShowPlan(ctx context.Context, c *command.Call, o ShowOptions, name string) int {
	p, err := openSaved(c, name)
	if err != nil {
		return c.Fail(project.PlanFileError(name, err))
	}
	enc, ds := project.EncryptionOf(ctx, c, o.Vars)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	for _, u := range p.Units {
		u.Decrypt(enc.Plan(ctx).PlanSealer())
	}
	if o.JSON.On || o.JSON.Into != "" {
		if err := p.Check(); err != nil { // before a part of it is shown
			return c.Fail(project.PlanFileError(name, err))
		}
		if code := o.JSON.Document(c, func(w io.Writer) error { return savedJSON(w, p) }); o.JSON.On || code != 0 {
			return code
		}
	}
	f := &unitflags.Flags{}
	r := &estateRun{Call: c, f: f, name: "plan", shown: newDisplay(c.Report, "plan", f)}
	var results []*estate.Result
	var hidden diag.List // units whose plans are encrypted otherwise
	for _, u := range p.Units {
		res := savedResult(u)
		r.shown.summary.Width = max(r.shown.summary.Width, len(u.Name))
		results = append(results, res)
		if o.HTML != "" || !u.Planned {
			continue
		}
		pieces, err := savedPieces(c, u, o.Reveal)
		if errors.Is(err, planfile.ErrSealed) {
			hidden = append(hidden, diag.Warnf(nil, "Plan not shown", "The plan of the unit %s: %s.", u.Name, err)...)
			continue
		}
		if err != nil {
			return c.Fail(project.PlanFileError(name, err))
		}
		r.shown.summary.Folds.Add(u.Name, pieces)
	}
	if o.HTML != "" {
		page, err := savedPage(p, results)
		if err != nil {
			return c.Fail(project.PlanFileError(name, err))
		}
		if ds := writePage(c, o.HTML, page); ds.HasErrors() {
			return c.Fail(ds)
		}
		return 0
	}
	if !unitview.Changes(results) {
		c.Report.Human.Say("\nNo changes. The saved plan of " + fmt.Sprint(len(results)) + " units does nothing.\n")
		r.shown.summary.Reads(results)
		return 0
	}
	r.shown.summary.Plans(results)
	return c.Report.Status(hidden)
}

// savedResult is the result of a run that a unit of a saved plan stands for.
func savedResult(u *estate.SavedUnit) *estate.Result {
	return &estate.Result{
		Unit: &estate.Unit{Name: u.Name}, Status: u.Result, Cause: u.Cause, Deferred: u.Deferred, Counts: u.Counts, Reads: u.Reads,
		Changes: u.Changes || len(u.Deferred) > 0,
	}
}

// savedPieces are the changes of a saved plan as they are shown.
func savedPieces(c *command.Call, u *estate.SavedUnit, reveal bool) ([]view.Piece, error) {
	if reveal {
		p, err := u.Plan()
		if p == nil || err != nil {
			return nil, err
		}
		return view.Pieces(c.Report.Human.Style, p, nil, true), nil
	}
	var pieces []view.Piece
	err := readNote(u, textNote, &pieces)
	return pieces, err
}

// savedJSON writes the machine-readable form of a saved plan: a document for each unit,
// or that of its only unit, as other programs expect it of the plan of a folder.
func savedJSON(w io.Writer, p *estate.SavedPlan) error {
	type unitJSON struct {
		Name     string           `json:"name"`
		Result   estate.Status    `json:"result"`
		Cause    string           `json:"cause,omitempty"`
		Deferred []map[string]any `json:"deferred,omitempty"`
		Plan     json.RawMessage  `json:"plan,omitempty"`
	}
	if p.About.Alone && len(p.Units) == 1 {
		if whole, err := p.Units[0].Note(jsonNote); len(whole) > 0 || err != nil {
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
		whole, failed := u.Note(jsonNote)
		x := unitJSON{Name: u.Name, Result: u.Result, Cause: u.Cause, Plan: whole}
		for _, d := range u.Deferred {
			x.Deferred = append(x.Deferred, map[string]any{"address": d.Address, "reason": d.Reason, "at": unitview.PlaceJSON(d.At), "waits_for": unitview.WaitsJSON(d.Waits)})
		}
		body, wrong := json.Marshal(x)
		if i > 0 {
			err = errors.Join(err, text(","))
		}
		if err = errors.Join(err, failed, wrong, text(string(body))); err != nil {
			return err
		}
	}
	return errors.Join(err, text("]}"))
}
