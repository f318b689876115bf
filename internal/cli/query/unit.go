package query

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A Unit is the result of a query in the directory of a unit.
type Unit struct {
	Root    *config.Module // with the query files
	State   *state.State   // nil if there is none
	Configs map[addr.ProviderConfig]state.Digest
	Objects []Listed
	Imports []engine.PendingImport
	Lists   bool      // the unit has list blocks
	Diags   diag.List // warnings
}

// A Listed is an object that a list block of a unit lists.
type Listed struct {
	Listing *engine.Listing
	engine.Found
}

// OfUnit runs the list blocks in the directory of a unit, which may have none, and reads the state
// and the provider configurations of the unit.
func OfUnit(ctx context.Context, c *command.Call, o *Options) (*Unit, diag.List) {
	q, ds := config.LoadQueries(".", config.Options{FS: c.FilesOf(), Set: c.Set})
	lists := !q.Empty() || ds.HasErrors()
	p, more := project.Load(ctx, c, workdir.LoadOptions{Vars: o.Vars, Parallelism: o.Parallelism, Query: lists})
	if p == nil {
		return nil, more
	}
	defer p.Close()
	out := &Unit{Root: p.Engine.Root(), Lists: lists}
	ds = more.Warnings()
	at := &loaded{p}
	if out.State, more = at.state(ctx); more.HasErrors() {
		return nil, append(ds, more...)
	}
	ds = append(ds, more...)
	if out.Configs, more = p.Engine.ProviderDigests(ctx, out.State, p.Vars); more.HasErrors() {
		return nil, append(ds, more...)
	}
	out.Imports = p.Engine.PendingImports(ctx, out.State, p.Vars)
	if lists {
		x := &collector{of: out}
		ds = append(ds, p.Engine.Query(ctx, out.State, engine.QueryOptions{Variables: p.Vars, ListOptions: engine.ListOptions{Objects: true, Generate: o.Adopt, To: x}})...)
		out.sort()
	}
	out.Diags = ds.Warnings()
	return out, ds
}

// state reads the state, and selects the providers.
func (p *loaded) state(ctx context.Context) (*state.State, diag.List) {
	place, ds := p.Backend(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	prev, more := p.Call.ReadWorkspace(ctx, place, p.Workspace, workdir.StateFiles{})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	more = p.SelectProviders(ctx, prev)
	return p.Translate(prev), append(ds, more...)
}

// sort sorts the objects by list block and identity.
func (u *Unit) sort() {
	slices.SortStableFunc(u.Objects, func(a, b Listed) int { return a.Listing.List.Compare(b.Listing.List) })
}

// collector collects the objects of a unit.
type collector struct {
	mu sync.Mutex
	of *Unit
}

func (x *collector) Started(*engine.Listing) {}

func (x *collector) Found(l *engine.Listing, f engine.Found) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of.Objects = append(x.of.Objects, Listed{l, f})
}

func (x *collector) Complete(l *engine.Listing) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l.Truncated {
		x.of.Diags = append(x.of.Diags, Limited(x.of.Root, l)...)
	}
}

// IdentityOf returns the identity of an import as the values of JSON. It is nil if the import uses an
// ID.
func IdentityOf(im engine.PendingImport) (identity map[string]any) {
	if im.Identity != cty.NilVal {
		_ = json.Unmarshal(plainObject(im.Identity, nil, true), &identity)
	}
	return identity
}

// Attributes returns an object as the values of JSON.
func Attributes(f engine.Found) (identity, attrs map[string]any) {
	_ = json.Unmarshal(plainObject(f.Identity, nil, true), &identity)
	if f.Object.IsKnown() && !f.Object.IsNull() {
		_ = json.Unmarshal(plainObject(f.Object, nil, true), &attrs)
	}
	return identity, attrs
}

// An Adoption is an object that a unit should import.
type Adoption struct {
	Addr                addr.Instance
	Importing, Resource string
	// Changes are the arguments that the plan would change, or its action. nil means that it only
	// imports.
	Changes []string
}

// Plan plans, in the directory of a unit, the import of objects from a file that is not written,
// and stores the changes in the adoptions. Other changes of the unit are not planned.
func Plan(ctx context.Context, c *command.Call, o *Options, name, text string, all []*Adoption) diag.List {
	c.View, c.Sources = withFile{c.FilesOf(), name, []byte(text)}, nil
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.Vars, Parallelism: o.Parallelism})
	if p == nil {
		return ds
	}
	defer p.Close()
	prev, more := (&loaded{p}).state(ctx)
	if more.HasErrors() {
		return more
	}
	op := p.Operation()
	op.From = prev
	po := engine.PlanOptions{}
	for _, a := range all {
		po.Targets = append(po.Targets, addr.Target{Module: a.Addr.Module, Resource: a.Addr.Resource})
	}
	made, more := op.Plan(ctx, po)
	if more.HasErrors() { // the user did not ask for targets
		return slices.DeleteFunc(more, func(m *diag.Message) bool { return m.Code == diag.CodePlanTargeting })
	}
	by := map[addr.Instance]*plan.Change{}
	for _, ch := range made.Changes {
		by[ch.Addr] = ch
	}
	for _, a := range all {
		ch := by[a.Addr]
		switch {
		case ch == nil || ch.Import == nil:
			a.Changes = []string{"it is not imported"}
		case ch.Op != plan.NoOp:
			a.Changes = changed(ch)
		}
	}
	return nil
}

// changed returns the arguments that a change would change, or its action.
func changed(ch *plan.Change) []string {
	if ch.Op != plan.Update {
		return []string{ch.Op.String()}
	}
	var out []string
	for name := range ch.Before.Type().AttributeTypes() {
		if !ch.Before.GetAttr(name).RawEquals(ch.After.GetAttr(name)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// withFile is a file system with one more file in its root.
type withFile struct {
	config.FS
	name string
	text []byte
}

func (f withFile) ReadFile(name string) ([]byte, error) {
	if name == f.name {
		return f.text, nil
	}
	return f.FS.ReadFile(name)
}

func (f withFile) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := f.FS.ReadDir(name)
	if err != nil || name != "." {
		return all, err
	}
	return append(slices.Clone(all), entry(f.name)), nil
}

// entry is the directory entry of a regular file.
type entry string

func (e entry) Name() string               { return string(e) }
func (e entry) IsDir() bool                { return false }
func (e entry) Type() fs.FileMode          { return 0 }
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }
