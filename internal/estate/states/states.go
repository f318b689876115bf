// Package states is where the state of each unit lies: it tells where, reads it, and takes
// it for a run.
//
// Main types: Keeper, Claim and Changing. The one rule: two units never have one state.
package states

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Settings are what states are found and locked with.
type Settings struct {
	Who        string // user@host, for locks
	Now        func() time.Time
	Environ    sys.Env
	CheckedOut func(path string) string  // as workdir.Settings has it
	OwnDir     func(u *unit.Unit) string // where the unit of an environment file keeps its state
}

// A Keeper finds, reads and takes states. Make it with NewKeeper; its methods may be
// called concurrently.
type Keeper struct {
	s     Settings
	reads atomic.Int64
}

// NewKeeper makes a Keeper.
func NewKeeper(s Settings) *Keeper { return &Keeper{s: s} }

// Reads is how often a state was read.
func (k *Keeper) Reads() int64 { return k.reads.Load() }

// Where tells where the state of a unit is: where its remote_state says, else where the
// module's backend block says, else in the working directory. What a unit of another
// commit manages is what it manages where that is checked out. name is the unit's; root is
// its module and eng evaluates it, nil where they are not known.
func (k *Keeper) Where(ctx context.Context, name string, d *workdir.Dir, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (local.Options, diag.List) {
	o, ds := k.where(ctx, name, d, root, eng, values)
	o.Path, o.WorkspaceDir = k.s.CheckedOut(o.Path), k.s.CheckedOut(o.WorkspaceDir)
	return o, ds
}

func (k *Keeper) where(ctx context.Context, name string, d *workdir.Dir, root *config.Module, eng *engine.Engine, values map[string]engine.InputValue) (local.Options, diag.List) {
	o := local.Options{Dir: d.Path, Unit: name, Now: k.s.Now, Workspace: k.Workspace(d.Path), Who: k.s.Who}
	switch {
	case d.Remote != nil && d.Remote.Backend != "local":
		return o, noBackend(d.Remote.Backend).Under(d.Remote.At)
	case d.Remote != nil && root != nil && root.Backend != nil && root.Backend.Type != "local", d.Remote == nil && root != nil && root.Backend != nil && root.Backend.Type != "local":
		return o, noBackend(root.Backend.Type).Under(&root.Backend.At)
	case root != nil && root.Encryption != nil:
		return o, diag.Errorf(&root.Encryption.At, "State encryption not available", "This module wants its state encrypted, which this version cannot do yet. Nothing was read.")
	case d.Remote != nil:
		ds := FromRemoteState(d.Remote, &o)
		return o, ds
	case root != nil && root.Backend != nil && eng != nil:
		return o, fromBlock(ctx, eng, root.Backend, values, &o)
	case d.Unit.Module != "":
		o.Dir = k.s.OwnDir(d.Unit)
	}
	return o, nil
}

func noBackend(typ string) diag.List {
	ds := diag.Errorf(nil, "Backend not available", "The state is kept in the backend %q, which this version cannot do yet: it knows the backend \"local\". Nothing was read or changed.", typ)
	ds[0].Code = "backend/not-available"
	return ds
}

// FromRemoteState is what a remote_state says of the backend local.
func FromRemoteState(rs *unit.RemoteState, o *local.Options) diag.List {
	v, _ := rs.Config.Unmark()
	if v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	for name, v := range v.AsValueMap() {
		text, ok := Text(v)
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
		text, ok := Text(v)
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

// Workspace is the selected workspace of a working directory.
func (k *Keeper) Workspace(dir string) string {
	if w := k.s.Environ.Get("TF_WORKSPACE"); w != "" {
		return w
	}
	b, err := os.ReadFile(filepath.Join(dir, ".terraform", "environment"))
	if w := strings.TrimSpace(string(b)); err == nil && w != "" {
		return w
	}
	return store.Default
}

// held says how the state of a unit is held.
func held(o local.Options) statemgr.Options {
	st := local.Open(o)
	return statemgr.Options{Store: st, Journal: st.JournalPath(), Dir: o.Dir}
}

// Take locks and reads a unit's state, and brings the journal of a killed run
// into it.
func (k *Keeper) Take(ctx context.Context, o local.Options, l arguments.Lock, operation string) (*statemgr.State, diag.List) {
	h := held(o)
	h.Run = store.LockInfo{Operation: operation, Who: o.Who, Version: config.LanguageVersion, Created: k.s.Now()}
	if !l.Off {
		h.Lock, h.Timeout = &h.Run, l.Timeout
	}
	k.reads.Add(1)
	return statemgr.Take(ctx, h)
}

// Read reads a state as it is stored.
func (k *Keeper) Read(ctx context.Context, o local.Options) (*state.State, diag.List) {
	k.reads.Add(1)
	return statemgr.Read(ctx, held(o))
}

// Text is a value as the argument of a backend.
func Text(v cty.Value) (string, bool) {
	v, _ = v.Unmark()
	s, err := convert.Convert(v, cty.String)
	if err != nil || !s.IsKnown() {
		return "", false
	}
	if s.IsNull() {
		return "", true
	}
	return s.AsString(), true
}

// A Claim says whose state a file is.
type Claim struct {
	Unit string
	At   *source.Range // what says so; nil if nothing does
}

// And is the error that another unit has the same file.
func (c Claim) And(other Claim, path string) diag.List {
	m := &diag.Message{
		Code: "estate/shared-state", Summary: "Two units with one state", At: c.At,
		Detail: fmt.Sprintf("The units %s and %s keep their state in one file, %s. Each would destroy what the other made.", other.Unit, c.Unit, path),
	}
	if other.At != nil && (c.At == nil || *c.At != *other.At) {
		m.Notes = append(m.Notes, diag.Note{Text: "so does " + other.Unit + " here", At: other.At})
	}
	return diag.List{m}
}

// Claims are whose state each file is. The zero value has none.
type Claims struct {
	mu  sync.Mutex
	all map[string]Claim
}

// Add notes whose state a file is; two units with one are an error.
func (c *Claims) Add(path string, mine Claim) diag.List {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, ok := c.all[path]; ok && other.Unit != mine.Unit {
		return mine.And(other, path)
	}
	if c.all == nil {
		c.all = map[string]Claim{}
	}
	c.all[path] = mine
	return nil
}
