package estate

import (
	"context"
	"fmt"
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
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
)

// stateWhere tells where the state of a unit is: where its remote_state says,
// else where the module's backend block says, else in the working folder. What a unit
// of another commit manages is what it manages where that is checked out.
func (e *Estate) stateWhere(ctx context.Context, u *Unit, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (local.Options, diag.List) {
	o, ds := e.statedWhere(ctx, u, root, eng, values)
	o.Path, o.WorkspaceDir = e.history.checkedOut(o.Path), e.history.checkedOut(o.WorkspaceDir)
	return o, ds
}

func (e *Estate) statedWhere(ctx context.Context, u *Unit, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (local.Options, diag.List) {
	p := u.place
	o := local.Options{Dir: p.dir, Unit: u.Name, Now: e.o.Machine.Now, Workspace: e.workspace(p), Who: e.o.Who}
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
			ds := diag.Errorf(&at, "Invalid backend configuration", "The argument %q of the backend must be a string that is known before anything is planned.", name)
			if !v.IsWhollyKnown() {
				ds[0].Code = plan.UnknownCode
			}
			return ds
		}
		*into = text
	}
	return nil
}

// workspace is the selected workspace of a working folder.
func (e *Estate) workspace(p *place) string {
	if w := e.o.Machine.Environ.Get("TF_WORKSPACE"); w != "" {
		return w
	}
	b, err := os.ReadFile(filepath.Join(p.dir, ".terraform", "environment"))
	if w := strings.TrimSpace(string(b)); err == nil && w != "" {
		return w
	}
	return store.Default
}

// LockOptions say how state is locked. The zero value locks and does not wait.
type LockOptions struct {
	Off     bool
	Timeout time.Duration
}

// held says how the state of a unit is held.
func held(o local.Options) statemgr.Options {
	st := local.Open(o)
	return statemgr.Options{Store: st, Journal: st.JournalPath(), Dir: o.Dir}
}

// take locks and reads a unit's state, and brings the journal of a killed run
// into it.
func (e *Estate) take(ctx context.Context, o local.Options, l LockOptions, operation string) (*statemgr.State, diag.List) {
	h := held(o)
	h.Run = store.LockInfo{Operation: operation, Who: o.Who, Version: config.LanguageVersion, Created: e.o.Machine.Now()}
	if !l.Off {
		h.Lock, h.Timeout = &h.Run, l.Timeout
	}
	e.shared.states.Add(1)
	return statemgr.Take(ctx, h)
}

// holding is the states that are being changed, and the providers that run.
type holding struct {
	mu    sync.Mutex
	all   map[*statemgr.State]bool
	procs *engine.Processes // nil: no run began yet
	over  bool
}

func (h *holding) add(s *statemgr.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[*statemgr.State]bool{}
	}
	h.all[s] = true
	if h.over {
		s.Abandon()
	}
}

func (h *holding) remove(s *statemgr.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, s)
}

func (h *holding) run(p *engine.Processes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.procs = p
}

// EndProviders ends the providers of a run that is still going on, for a program
// that is about to end. What they were doing comes to nothing: Abandon comes first.
func (e *Estate) EndProviders() {
	e.holding.mu.Lock()
	procs := e.holding.procs
	e.holding.mu.Unlock()
	if procs != nil {
		procs.Close()
	}
}

// Abandon leaves states and journals as they are, for a program that is about to
// end although units are being applied.
func (e *Estate) Abandon() {
	e.holding.mu.Lock()
	defer e.holding.mu.Unlock()
	e.holding.over = true
	for s := range e.holding.all {
		s.Abandon()
	}
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
		if eng, ds = engine.Open(t.Context(), e.engineOptions(u, 0, nil)); ds.HasErrors() && (eng == nil || eng.Tree() == nil) {
			return nil, ds
		}
		defer eng.Close()
		root = eng.Root()
	}
	o, ds := e.stateWhere(t.Context(), u, root, eng, nil)
	if ds.HasErrors() {
		return nil, ds
	}
	e.shared.states.Add(1)
	s, more := statemgr.Read(t.Context(), held(o))
	return s, append(ds, more...)
}

// A claim says whose state a file is.
type claim struct {
	unit *Unit
	at   *source.Range // what says so; nil if nothing does
}

// and is the error that another unit has the same file.
func (c claim) and(other claim, path string) diag.List {
	m := &diag.Message{
		Code: "estate/shared-state", Summary: "Two units with one state", At: c.at,
		Detail: fmt.Sprintf("The units %s and %s keep their state in one file, %s. Each would destroy what the other made.", other.unit.Name, c.unit.Name, path),
	}
	if other.at != nil && (c.at == nil || *c.at != *other.at) {
		m.Notes = append(m.Notes, diag.Note{Text: "so does " + other.unit.Name + " here", At: other.at})
	}
	return diag.List{m}
}
