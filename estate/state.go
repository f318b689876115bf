package estate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/unit"
)

// stateWhere tells where the state of a unit is: where its remote_state says,
// else where the module's backend block says, else in the working folder.
func (e *Estate) stateWhere(ctx context.Context, u *Unit, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (local.Options, diag.List) {
	p := u.place
	o := local.Options{Dir: p.dir, Unit: u.Name, Now: e.o.Now, Workspace: e.workspace(p), Who: e.o.Who}
	switch {
	case p.remote != nil && p.remote.Backend != "local":
		return o, noBackend(p.remote.Backend).Under(p.remote.At)
	case p.remote != nil && root != nil && root.Backend != nil && root.Backend.Type != "local", p.remote == nil && root != nil && root.Backend != nil && root.Backend.Type != "local":
		return o, noBackend(root.Backend.Type).Under(&root.Backend.At)
	case root != nil && root.Encryption != nil:
		return o, diag.Errorf(&root.Encryption.At, "State encryption not available", "This module wants its state encrypted, which this version cannot do yet. Nothing was read.")
	case p.remote != nil:
		ds := fromRemoteState(p.remote, &o)
		return o, ds
	case root != nil && root.Backend != nil && eng != nil:
		return o, fromBlock(ctx, eng, root.Backend, values, &o)
	case u.Module != "":
		o.Dir = e.stateDir(u)
	}
	return o, nil
}

func noBackend(typ string) diag.List {
	ds := diag.Errorf(nil, "Backend not available", "The state is kept in the backend %q, which this version cannot do yet: it knows the backend \"local\". Nothing was read or changed.", typ)
	ds[0].Code = "backend/not-available"
	return ds
}

func fromRemoteState(rs *unit.RemoteState, o *local.Options) diag.List {
	v, _ := rs.Config.Unmark()
	if v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	for name, v := range v.AsValueMap() {
		text, ok := textOf(v)
		switch {
		case !ok:
			return diag.Errorf(rs.At, "Invalid backend configuration", "The argument %q of the backend must be a string.", name)
		case name == "path":
			o.Path = text
		case name == "workspace_dir":
			o.WorkspaceDir = text
		default:
			return diag.Errorf(rs.At, "Invalid backend configuration", "The backend \"local\" has no argument named %q.", name)
		}
	}
	return nil
}

func fromBlock(ctx context.Context, eng *engine.Engine, b *config.Backend, values map[string]engine.InputValue, o *local.Options) diag.List {
	content, diags := b.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "path"}, {Name: "workspace_dir"}}})
	if ds := diag.FromHCL(diags); ds.HasErrors() {
		return ds
	}
	for name, into := range map[string]*string{"path": &o.Path, "workspace_dir": &o.WorkspaceDir} {
		a := content.Attributes[name]
		if a == nil {
			continue
		}
		v, ds := eng.Static(ctx, values, a.Expr)
		if ds.HasErrors() {
			return ds
		}
		text, ok := textOf(v)
		if !ok {
			at := a.Expr.Range()
			return diag.Errorf(&at, "Invalid backend configuration", "The argument %q of the backend must be a string that is known before anything is planned.", name)
		}
		*into = text
	}
	return nil
}

// workspace is the selected workspace of a working folder.
func (e *Estate) workspace(p *place) string {
	if w := e.o.Environ.Get("TF_WORKSPACE"); w != "" {
		return w
	}
	b, err := os.ReadFile(filepath.Join(p.dir, ".terraform", "environment"))
	if w := strings.TrimSpace(string(b)); err == nil && w != "" {
		return w
	}
	return store.Default
}

// A hold is a unit's state while it is worked on.
type hold struct {
	store  *local.Store
	unlock func() diag.List
	dir    string

	mu      sync.Mutex
	current *state.State
	journal *journal.Journal
	failed  *state.State
}

// LockOptions say how state is locked. The zero value locks and does not wait.
type LockOptions struct {
	Off     bool
	Timeout time.Duration
}

// take locks and reads a unit's state, and brings the journal of a killed run
// into it.
func (e *Estate) take(ctx context.Context, o local.Options, l LockOptions, operation string) (*hold, diag.List) {
	h := &hold{store: local.Open(o), dir: o.Dir}
	if !l.Off {
		unlock, ds := h.store.Lock(ctx, store.LockInfo{Operation: operation, Who: o.Who, Version: config.LanguageVersion, Created: e.o.Now()}, l.Timeout)
		if ds.HasErrors() {
			return nil, ds
		}
		h.unlock = unlock
	}
	s, ds := h.store.Read(ctx)
	h.current = s
	if !ds.HasErrors() {
		ds = append(ds, h.recover(ctx)...)
	}
	if ds.HasErrors() {
		return nil, append(ds, h.release()...)
	}
	return h, ds
}

func (h *hold) release() diag.List {
	if h.unlock == nil {
		return nil
	}
	unlock := h.unlock
	h.unlock = nil
	return unlock()
}

func (h *hold) recover(ctx context.Context) diag.List {
	path := h.store.JournalPath()
	rec, err := journal.Recover(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to read the journal of an interrupted run", "A run was interrupted and left a journal of what it did, %s, which cannot be read: %s.", path, err)
	}
	next, fits, ds := journal.Fold(h.current, rec)
	if fits {
		ds = append(ds, h.write(ctx, next)...)
	} else {
		apart, more := journal.Apart(rec, h.current)
		ds = append(ds, more...)
		_, more = local.WriteErrored(h.dir, apart)
		ds = append(ds, more...)
	}
	if ds.HasErrors() {
		return ds
	}
	if err := os.Remove(path); err != nil {
		ds = append(ds, diag.Errorf(nil, "Failed to remove the journal of an interrupted run", "What the journal holds is safe now, but the file cannot be removed: %s.", err)...)
	}
	return ds
}

// write writes a state if it differs from what is there.
func (h *hold) write(ctx context.Context, s *state.State) diag.List {
	h.mu.Lock()
	defer h.mu.Unlock()
	next, changed := store.NextSerial(h.current, s)
	if !changed {
		h.failed = nil
		return nil
	}
	if h.journal != nil {
		if err := h.journal.Written(next); err != nil {
			h.failed = next
			return diag.Errorf(nil, "Failed to write the journal", "The journal of this run cannot be written: %s.", err)
		}
	}
	if ds := h.store.Write(ctx, next); ds.HasErrors() {
		h.failed = next
		return ds
	}
	h.current, h.failed = next, nil
	return nil
}

// begin finds out whether the state can be written and starts the journal.
func (h *hold) begin(ctx context.Context, changes int) diag.List {
	const perObject = 2 << 10 // a guess at what an object takes, in state, backup and journal
	if ds := h.store.Prepare(ctx, int64(changes+1)*perObject); ds.HasErrors() {
		return ds
	}
	j, err := journal.Create(h.store.JournalPath(), journal.HeaderOf(h.current), nil)
	if err != nil {
		return diag.Errorf(nil, "Failed to start the journal", "Before anything is applied, a journal is started beside the state, so that nothing is lost if the run is killed. It cannot be written: %s. Nothing was changed.", err)
	}
	h.journal = j
	return nil
}

// end removes the journal, or saves apart what could not be written.
func (h *hold) end(final *state.State) diag.List {
	j := h.journal
	h.journal = nil
	if j == nil {
		return nil
	}
	if h.failed == nil {
		if err := j.Remove(); err != nil {
			return diag.Warnf(nil, "Failed to remove the journal", "The state was written, but the journal of this run, %s, cannot be removed: %s.", h.store.JournalPath(), err)
		}
		return nil
	}
	last := h.failed
	if final != nil {
		last = final.WithMeta(last.Lineage, last.Serial, last.TerraformVersion)
	}
	ds := diag.Errorf(nil, "Failed to save state", "The state could not be written to its place. It was saved as told below, and the journal %s holds it too.", h.store.JournalPath())
	_, more := local.WriteErrored(h.dir, last)
	if err := j.Close(); err != nil {
		ds = append(ds, diag.Warnf(nil, "Failed to close the journal", "%s.", err)...)
	}
	return append(ds, more...)
}

// read reads a unit's state without a lock and without writing; what a journal
// holds is folded in.
func read(ctx context.Context, o local.Options) (*state.State, diag.List) {
	st := local.Open(o)
	s, ds := st.Read(ctx)
	if ds.HasErrors() {
		return s, ds
	}
	rec, err := journal.Recover(st.JournalPath(), nil)
	if err != nil {
		return s, ds // there is none, or its run is at work
	}
	if next, fits, more := journal.Fold(s, rec); fits {
		return next, append(ds, more...)
	}
	return s, ds
}

// State reads the state of a unit as it is stored.
func (e *Estate) State(ctx context.Context, u *Unit) (*state.State, diag.List) {
	return e.stateOf(e.task(ctx), u)
}

func (e *Estate) stateOf(t *demand.Task, u *Unit) (*state.State, diag.List) {
	p, ds := e.placeOf(t, u, true)
	if ds.HasErrors() {
		return nil, ds
	}
	u = &Unit{Unit: u.Unit, Name: u.Name, place: p} // not the estate's own, which may be at work
	if u.place.waits != "" {
		return nil, diag.Errorf(nil, "Place of the state is not known", "The state of the unit %s cannot be read, since its %s hangs on outputs that are not known yet.", u.Name, u.place.waits)
	}
	var root *config.Module
	var eng *engine.Engine
	if u.place.remote == nil {
		if eng, ds = engine.Open(t.Context(), e.engineOptions(u, RunOptions{}, nil)); ds.HasErrors() && (eng == nil || eng.Tree() == nil) {
			return nil, ds
		}
		defer eng.Close()
		root = eng.Root()
	}
	o, ds := e.stateWhere(t.Context(), u, root, eng, nil)
	if ds.HasErrors() {
		return nil, ds
	}
	s, more := read(t.Context(), o)
	return s, append(ds, more...)
}

// checkShared reports units that keep their state in one file.
func checkShared(where map[string][]string) diag.List {
	var ds diag.List
	for path, names := range where {
		if len(names) > 1 {
			ds = append(ds, &diag.Message{
				Code: "estate/shared-state", Summary: "Two units with one state",
				Detail: fmt.Sprintf("The units %s keep their state in one file, %s. Each would destroy what the others made.", strings.Join(names, " and "), path),
			})
		}
	}
	return ds.Sort()
}
