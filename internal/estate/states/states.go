// Package states finds, reads and locks the state of each unit.
//
// Main types: Keeper, Place, Claim and Changing. The one rule: two units never share a state.
package states

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Settings configures a Keeper.
type Settings struct {
	Who        string        // user@host, for locks
	Run        store.RunMark // the run, for locks
	Now        func() time.Time
	Environ    sys.Env
	CheckedOut func(path string) string  // see workcopy.Settings
	OwnDir     func(u *unit.Unit) string // returns the directory for the state of a unit from an environment file
	Backends   *backend.Set
	Hosts      Hosts // nil means workdir.Silent for each unit
	// User is the user whose journals and notes are used.
	User journal.User
	// Worker is the worker that the run belongs to. nil means none.
	Worker Worker
	// CopiedTo is the directory that contains a copy of the estate's files from another machine.
	// No state may be stored there. "" means that the estate is used in its original directory.
	CopiedTo string
	// KeepSegments configures whether journals are also kept in the stores.
	KeepSegments workdir.KeepSegments
	// Bootstrap configures whether stores are created before they are used.
	Bootstrap Bootstrapping
	// Throwaway is a directory for temporary data of the run. If it is set, all states are kept
	// in memory and discarded after the run. "" means that real states are used.
	Throwaway string
}

// Hosts returns the hosts of units.
type Hosts interface {
	// UnitHost returns the workdir.Host of a unit, given the name of the unit in messages.
	UnitHost(unit string) workdir.Host
}

// A Worker carries out turns for a run on another machine.
type Worker interface {
	// Lease returns the lease that limits how long the turn of a unit may work on its state.
	Lease(unit string) *statemgr.Lease
	// Journals returns the storage for the journal of a state whose store cannot hold one.
	Journals(state string) statemgr.Segments
}

// A Keeper finds, reads and locks states. Create it with NewKeeper. Its methods may be called
// concurrently.
type Keeper struct {
	s     Settings
	reads atomic.Int64
}

// NewKeeper returns a Keeper.
func NewKeeper(s Settings) *Keeper { return &Keeper{s: s} }

// Reads returns the number of times that a state was read.
func (k *Keeper) Reads() int64 { return k.reads.Load() }

// A Location is the location of a unit's state.
type Location struct {
	Unit      string // name of the unit
	Config    backend.Config
	Workspace string
	Dir       string // directory for journals of states in remote stores, and for errored.tfstate
	At        *source.Range
	Arguments map[string]*source.Range // source ranges of backend arguments, by name; unknown ones are missing
	// Encryption is the encryption of state and plans that the unit's module and environment
	// configure. nil means no encryption.
	Encryption *encryption.Config
}

// Throwaway reports whether states are kept in memory and discarded after the run.
func (k *Keeper) Throwaway() bool { return k.s.Throwaway != "" }

// Where returns the location of a unit's state: the one in its remote_state block, otherwise the
// one in the module's backend block, otherwise the working directory. A unit that is read from a
// worktree of another commit has the state of the repository's own directory. name is the name of
// the unit. root is its module, and eval evaluates expressions in it; both may be nil. env is the
// environment of the unit; nil means the environment of the machine.
func (k *Keeper) Where(ctx context.Context, name string, d *workcopy.UnitDirectory, root *config.Module, eval configure.Eval, env sys.Env) (Location, diag.List) {
	if k.s.Throwaway != "" {
		dir := filepath.Join(k.s.Throwaway, url.PathEscape(name)) // for the journal of an apply
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Location{}, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to make a directory", "The directory for the journal of %s cannot be made: %s.", name, err)
		}
		return Location{
			Unit: name, Workspace: name, Dir: dir,
			Config: backend.Config{Type: "inmem", Dir: k.s.Throwaway, Value: cty.ObjectVal(map[string]cty.Value{"lock_id": cty.NullVal(cty.String)})},
		}, nil
	}
	p := Location{Unit: name, Workspace: k.Workspace(d.Path, env), Dir: d.Path}
	if !store.ValidWorkspace(p.Workspace) {
		return p, diag.Errorf(diag.CodeStateWorkspace, nil, "Invalid workspace name", "The workspace name %q is not allowed. The name must contain only URL safe characters, and no path separators.", p.Workspace)
	}
	var ds, more diag.List
	if p.Encryption, ds = k.Encryption(d, root, eval, env); ds.HasErrors() {
		return p, ds
	}
	switch {
	case d.Remote != nil:
		p.At = d.Remote.At
		p.Config, more = k.fromRemoteState(ctx, d, root, eval, env)
		if !more.HasErrors() {
			more = append(more, k.changed(ctx, d, root, eval, env)...)
		}
	case root != nil && root.Backend != nil && eval != nil:
		p.At = &root.Backend.At
		p.Config, more = k.expected(ctx, d, root.Backend, eval, env)
	case d.Unit.Module != "":
		p.Dir = k.s.OwnDir(d.Unit)
		p.Config = k.s.Backends.InFolder(p.Dir)
	default:
		p.Config = k.s.Backends.InFolder(d.Path)
		more = k.changed(ctx, d, root, eval, env)
	}
	if ds = append(ds, more...); more.HasErrors() {
		return p, ds
	}
	p.Arguments = k.places(d, root, p.Config)
	if p.Config.Dir == "" {
		p.Config.Dir = d.Path
	}
	if d.Unit.Module == "" || k.s.Backends.InFolder("").Type != p.Config.Type {
		p.Dir = k.Home(d.Unit)
	}
	p.Config.Env, p.Config.Value = env, k.checkedOut(p.Config.Value)
	return p, append(ds, k.copied(p, d.Path)...)
}

// copied returns an error for a state that would be stored among copied files: the unit's
// existing state is not there, and a state written there would be lost.
func (k *Keeper) copied(p Location, dir string) diag.List {
	if k.s.CopiedTo == "" || p.Config.Type != k.s.Backends.InFolder("").Type {
		return nil
	}
	path := k.s.Backends.Place(p.Config)
	below := func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	if path != "" && !below(k.s.CopiedTo) && !below(dir) {
		return nil
	}
	return diag.List{{
		Code: diag.CodeEstateStateOfAnotherMachine, Summary: "State beside the files of the unit", At: p.At,
		Detail: fmt.Sprintf("The state of %s is a file beside its configuration, on the machine that the run was started on; a worker has a copy of the configuration and not the state. Keep the state in a store that all workers reach, or use --in-place where they share the directory.", p.named()),
	}}
}

// Encryption returns the encryption of a unit's state and plans that its module, its remote_state
// block and the environment configure. nil means no encryption. The arguments are as for Where.
func (k *Keeper) Encryption(d *workcopy.UnitDirectory, root *config.Module, eval configure.Eval, env sys.Env) (*encryption.Config, diag.List) {
	if env == nil {
		env = k.s.Environ
	}
	if eval == nil {
		eval = encryption.Constant
	}
	var block hcl.Body
	if root != nil && root.Encryption != nil {
		block = root.Encryption.Body
	}
	if generated, ds := d.Encryption(); generated != nil || ds.HasErrors() {
		if block != nil && !ds.HasErrors() {
			ds = diag.Errorf(diag.CodeConfigDuplicateEncryption, &root.Encryption.At, "Duplicate encryption configuration", "The module has an encryption block, and the remote_state of the unit, from which another one is made, says something about encryption too.").Note(d.Remote.At, "it is here")
		}
		if ds.HasErrors() {
			return nil, ds
		}
		block = generated
	}
	return encryption.Parse(block, env.Get(encryption.Variable), eval, k.s.Backends.Services(d.Path, env))
}

// Home returns the directory for data that must outlive the working directory of a unit, which
// may be in a cache.
func (k *Keeper) Home(u *unit.Unit) string { return k.s.CheckedOut(u.Dir) }

// checkedOut returns the configuration v with paths in worktrees replaced by the same paths in
// the repository's own directory.
func (k *Keeper) checkedOut(v cty.Value) cty.Value {
	all := v.AsValueMap()
	for name, e := range all {
		if e.Type() == cty.String && !e.IsNull() && filepath.IsAbs(e.AsString()) {
			all[name] = cty.StringVal(k.s.CheckedOut(e.AsString()))
		}
	}
	return cty.ObjectVal(all)
}

// fromRemoteState returns the backend configuration of a remote_state block. Without generate,
// its arguments are merged over those of the module's backend block.
func (k *Keeper) fromRemoteState(ctx context.Context, d *workcopy.UnitDirectory, root *config.Module, eval configure.Eval, env sys.Env) (backend.Config, diag.List) {
	rs := d.Remote
	kind, ds := k.s.Backends.Kind(rs.Backend)
	if ds.HasErrors() {
		return backend.Config{}, ds.Under(rs.At)
	}
	given := cty.EmptyObjectVal
	var elsewhere map[string]string
	if rs.Config != cty.NilVal && !rs.Config.IsNull() {
		given, _ = k.s.Backends.Strip(rs.Backend, rs.Config).UnmarkDeep()
	}
	if rs.Generate == nil && root != nil && root.Backend != nil && root.Backend.Type == rs.Backend && eval != nil {
		under, ds := k.expected(ctx, d, root.Backend, eval, env)
		if ds.HasErrors() {
			return under, ds
		}
		elsewhere = under.Elsewhere
		if given.CanIterateElements() {
			all := under.Value.AsValueMap()
			for name, e := range given.AsValueMap() {
				all[name] = e
			}
			given = cty.ObjectVal(all)
		}
	}
	v, err := configure.Value(rs.Backend, kind.Schema, given)
	if err != nil {
		return backend.Config{}, diag.Errorf(diag.CodeBackendRemoteState, rs.At, "Invalid backend configuration", "The remote_state is not valid: %s.", err)
	}
	return backend.Config{Type: rs.Backend, Value: v, Elsewhere: elsewhere}, nil
}

// places returns the source ranges of the backend arguments that are effective: those in the
// remote_state block, and otherwise those in the module's backend block.
func (k *Keeper) places(d *workcopy.UnitDirectory, root *config.Module, in backend.Config) map[string]*source.Range {
	out := map[string]*source.Range{}
	if root != nil && root.Backend != nil && root.Backend.Type == in.Type && (d.Remote == nil || d.Remote.Generate == nil) {
		if kind, ds := k.s.Backends.Kind(in.Type); !ds.HasErrors() {
			out = configure.Places(kind.Schema, root.Backend.Body)
			for name := range in.Elsewhere {
				delete(out, name)
			}
		}
	}
	if d.Remote != nil {
		maps.Copy(out, d.Remote.Places)
	}
	return out
}

// folder returns the working directory of a unit, as the package selection uses it.
func (k *Keeper) folder(d *workcopy.UnitDirectory, env sys.Env) selection.Directory {
	if env == nil {
		env = k.s.Environ
	}
	return selection.Directory{
		Backends: k.s.Backends, User: k.s.User, Path: d.Path, Data: sys.Join(d.Path, selection.DataDir(env)), Env: env,
		Default: k.s.Backends.InFolder("").Type, Program: "terrace", Product: "Terrace",
		Outside: func(ds diag.List) diag.List { return Located(d.Remote, ds) },
	}
}

// expected returns the configuration that the backend block b has after an automatic init in the
// working directory. b may be nil.
func (k *Keeper) expected(ctx context.Context, d *workcopy.UnitDirectory, b *config.Backend, eval configure.Eval, env sys.Env) (backend.Config, diag.List) {
	at := k.folder(d, env)
	in := selection.Init{
		Block: b,
		Eval:  eval,
		Read: func(name string) (*source.File, error) {
			text, err := d.Files.ReadFile(name)
			return &source.File{Path: name, Bytes: text}, err
		},
	}
	var blocks []unit.ExtraArguments
	if d.Terraform != nil {
		blocks = d.Terraform.ExtraArguments
	}
	extra, ds := arguments.Init(at.Env, blocks, d.Locate)
	if ds.HasErrors() {
		return backend.Config{}, ds
	}
	if b != nil { // without a block, the options belong to another backend
		in.Options = append(extra.Backend, k.Arguments(d.Remote)...)
	}
	cfg, ds := at.Expected(ctx, in)
	for _, m := range ds {
		if m.Code == configure.UnknownCode {
			m.Code = plan.UnknownCode
		}
	}
	if b != nil {
		ds = ds.Under(&b.At)
	}
	return cfg, ds
}

// changed returns an error if init set up the working directory with another backend than the one
// that the files now specify. It is the same error that init returns.
func (k *Keeper) changed(ctx context.Context, d *workcopy.UnitDirectory, root *config.Module, eval configure.Eval, env sys.Env) diag.List {
	if root == nil || eval == nil || d.Remote != nil && root.Backend == nil {
		return nil
	}
	if r, ds := k.folder(d, env).Recorded(); r == nil || ds.HasErrors() {
		return ds
	}
	_, ds := k.expected(ctx, d, root.Backend, eval, env)
	return ds.Errors()
}

// Changed reports whether m is the error about a working directory that was set up with another
// backend.
func Changed(m *diag.Message) bool { return m.Code == selection.CodeChanged }

// Arguments returns the arguments of a remote_state block without generate, in the form
// NAME=VALUE of the -backend-config option.
func (k *Keeper) Arguments(rs *unit.RemoteState) []string {
	if rs == nil || rs.Generate != nil || rs.Config == cty.NilVal || rs.Config.IsNull() {
		return nil
	}
	v, _ := k.s.Backends.Strip(rs.Backend, rs.Config).UnmarkDeep()
	if !v.CanIterateElements() {
		return nil
	}
	var out []string
	for name, v := range v.AsValueMap() {
		if given, ok := text(v); ok {
			out = append(out, name+"="+given)
		}
	}
	slices.Sort(out)
	return out
}

// Located adds source ranges to messages about the backend that a remote_state block configures:
// the range of the argument that a message is about, or that of the block.
func Located(rs *unit.RemoteState, ds diag.List) diag.List {
	if rs == nil {
		return ds
	}
	out := slices.Clone(ds)
	for i, m := range out {
		at := rs.At
		if blame, ok := m.Extra.(backend.Blame); ok && blame.Argument != "" {
			if at = rs.Places[blame.Argument]; at == nil && rs.Generate != nil {
				at = rs.At // the backend block is generated from the whole remote_state block
			}
		}
		if m.At == nil && at != nil {
			copied := *m
			copied.At = at
			out[i] = &copied
		}
	}
	return out
}

// Open opens the store of the state at a place.
func (k *Keeper) Open(ctx context.Context, p Location) (store.Store, diag.List) {
	b, ds := k.s.Backends.Open(ctx, p.Config)
	if ds.HasErrors() {
		return nil, p.located(ds)
	}
	st, more := workdir.OpenStore(b, p.Workspace, backend.StoreOptions{
		Unit: p.Unit, Sealer: p.Encryption.State(ctx).States(),
		Waiting: func(holder *store.LockInfo) {
			k.host(p.named()).Waiting(holder)
		},
		Locate: func(ds diag.List) diag.List { return p.located(ds) },
	})
	return st, append(ds, more...)
}

// located adds source ranges to messages about the backend: the range of the argument that a
// message is about, or that of the block.
func (p *Location) located(ds diag.List) diag.List {
	out := slices.Clone(ds)
	for i, m := range out {
		blame, ok := m.Extra.(backend.Blame)
		if !ok || m.At != nil {
			continue
		}
		copied := *m
		if copied.At = p.Arguments[blame.Argument]; copied.At == nil {
			if how := p.Config.Elsewhere[blame.Argument]; how != "" {
				copied.Detail += backend.GivenElsewhere(blame.Argument, how)
			}
		}
		out[i] = &copied
	}
	return located(out, p.At)
}

// located sets the source range of messages that have none.
func located(ds diag.List, at *source.Range) diag.List {
	out := slices.Clone(ds)
	for i, m := range out {
		if m.At == nil {
			copied := *m
			copied.At = at
			out[i] = &copied
		}
	}
	return out
}

// Workspace returns the selected workspace of a working directory. A nil env means the
// environment of the machine.
func (k *Keeper) Workspace(dir string, env sys.Env) string {
	if env == nil {
		env = k.s.Environ
	}
	name, _ := selection.Workspace(env, sys.Join(dir, selection.DataDir(env))) // an unreadable selection counts as none
	return name
}

// host returns the workdir.Host of a unit.
func (k *Keeper) host(unit string) workdir.Host {
	if k.s.Hosts == nil {
		return workdir.Silent{}
	}
	return k.s.Hosts.UnitHost(unit)
}

// at opens the state at a place.
func (k *Keeper) at(ctx context.Context, p Location) (workdir.StatePlace, diag.List) {
	st, ds := k.Open(ctx, p)
	at := workdir.StatePlace{Store: st, Workspace: p.Workspace, Dir: p.Dir, Encryption: p.Encryption, KeepSegments: k.s.KeepSegments, User: k.s.User, Host: k.host(p.named())}
	if k.s.Worker != nil && st != nil {
		if name, homeless := backend.Homeless(st, p.Workspace); homeless {
			at.Segments, at.KeepSegments = k.s.Worker.Journals(name), workdir.Always
		}
	}
	return at, ds
}

// Take locks and reads a unit's state, and merges the journal of a killed run into it. what is
// the operation that the lock records.
func (k *Keeper) Take(ctx context.Context, p Location, l arguments.Lock, what string) (*workdir.OpenState, diag.List) {
	s, _, ds := k.take(ctx, p, l, what)
	return s, ds
}

// take is Take, and also returns the store, whose writes need the lock.
func (k *Keeper) take(ctx context.Context, p Location, l arguments.Lock, what string) (*workdir.OpenState, store.Store, diag.List) {
	o, ds := k.Options(ctx, p, l, what)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	k.reads.Add(1)
	s, ds := workdir.Take(ctx, o, nil)
	return s, o.Store, ds
}

// Took counts a read by a caller that opened the state with Options.
func (k *Keeper) Took() { k.reads.Add(1) }

// Options returns the options with which a unit's state is locked and read. It is for callers
// that lock it themselves.
func (k *Keeper) Options(ctx context.Context, p Location, l arguments.Lock, what string) (statemgr.Options, diag.List) {
	at, ds := k.at(ctx, p)
	if ds.HasErrors() {
		return statemgr.Options{}, ds
	}
	o := at.Locked(ctx, workdir.Lock{Off: l.Off, Timeout: l.Timeout, Operation: what, Who: k.s.Who, Run: k.s.Run, Now: k.s.Now()})
	if k.s.Worker != nil {
		o.Lease = k.s.Worker.Lease(p.Unit)
	}
	return o, ds
}

// Read reads a state as it is stored, without locking it.
func (k *Keeper) Read(ctx context.Context, p Location) (*state.State, diag.List) {
	at, ds := k.at(ctx, p)
	if ds.HasErrors() {
		return nil, ds
	}
	k.reads.Add(1)
	return at.Read(ctx)
}

// PlaceOf returns an identifier of the state's location that is equal for units that share a
// state. It is computed from the configuration alone, without opening the store. "" means that it
// is unknown.
func (k *Keeper) PlaceOf(rs *unit.RemoteState) string {
	kind, ds := k.s.Backends.Kind(rs.Backend)
	if ds.HasErrors() || rs.Config == cty.NilVal || rs.Config.IsNull() || !rs.Config.IsWhollyKnown() {
		return ""
	}
	given, _ := k.s.Backends.Strip(rs.Backend, rs.Config).UnmarkDeep()
	v, err := configure.Value(rs.Backend, kind.Schema, given)
	if err != nil {
		return ""
	}
	return k.s.Backends.Place(backend.Config{Type: rs.Backend, Value: v})
}

// text returns a value in the form that follows "=" in -backend-config. ok is false if the value is
// null or unknown.
func text(v cty.Value) (text string, ok bool) {
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() || v.IsNull() {
		return "", false
	}
	if s, err := convert.Convert(v, cty.String); err == nil {
		return s.AsString(), true
	}
	return string(hclwrite.TokensForValue(v).Bytes()), true
}

// A Claim is the use of a state by a unit.
type Claim struct {
	Unit   string
	Called string        // name of the unit in messages
	At     *source.Range // configuration of the location; nil if there is none
}

// And returns the error that two units use the same state.
func (c Claim) And(other Claim, path string) diag.List {
	m := &diag.Message{
		Code: diag.CodeEstateSharedState, Summary: "Two units with one state", At: c.At,
		Detail: fmt.Sprintf("The units %s and %s keep their state in one place, %s. Each would destroy what the other made.", other.Called, c.Called, shown(path)),
	}
	if other.At != nil && (c.At == nil || *c.At != *other.At) {
		m.Notes = append(m.Notes, diag.Note{Text: "so does " + other.Called + " here", At: other.At})
	}
	return diag.List{m}
}

// Claims contains the unit that uses each state. The zero value is empty and ready to use. Its
// methods may be called concurrently.
type Claims struct {
	mu  sync.Mutex
	all map[string]Claim
}

// Add records the unit that uses the state at a location. It is an error if another unit uses it.
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

// shown returns the location for a message. If the location consists of all arguments, which may
// contain secrets, it only names the backend type.
func shown(place string) string {
	if kind, _, ok := strings.Cut(place, "{"); ok {
		return fmt.Sprintf("since their backends of the kind %q have the same arguments", kind)
	}
	return place
}
