package estate

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// Outputs selects the outputs of dependencies that an Evaluation uses.
type Outputs int

// The outputs of an Evaluation.
const (
	StoredOutputs  Outputs = iota // outputs in states, and mock outputs where there are none
	MockOutputs                   // only mock outputs; no state is read
	UnknownOutputs                // outputs are unknown; no state is read
)

// An Evaluation evaluates one unit and its module. It changes nothing: it creates no directory,
// and runs neither hooks nor init. Evaluations of one estate share the files and everything that
// does not depend on outputs. Its methods must not be called concurrently.
type Evaluation struct {
	e      *Estate
	loader *unit.Loader
	unit   *discovery.Unit
	file   string // see In
}

// In makes addresses be those in a file that the unit reads; see unit.Unit.OriginIn.
func (v *Evaluation) In(file string) { v.file = file }

// Evaluate returns an Evaluation of a unit.
func (e *Estate) Evaluate(u *discovery.Unit, outputs Outputs) *Evaluation {
	l := e.loader
	if outputs != StoredOutputs {
		l = l.WithoutOutputs(outputs == MockOutputs)
	}
	n := *u
	n.Unit = u.In(l)
	return &Evaluation{e: e, loader: l, unit: &n}
}

// Origin returns the origins of the unit's values.
func (v *Evaluation) Origin(ctx context.Context) explanation.InputSource {
	return v.unit.OriginIn(v.loader.Task(ctx), v.file)
}

// ofUnit reports whether an address refers to a part of the unit, and not to a part of its module.
func (v *Evaluation) ofUnit(ctx context.Context, address string) bool {
	ref, diags := hclsyntax.ParseTraversalAbs([]byte(address), "<address>", hcl.InitialPos)
	if diags.HasErrors() {
		return false
	}
	_, ok, ds := v.Origin(ctx).Part(ref)
	return ok && !ds.HasErrors()
}

// atHand reports whether the module of the unit can be read without fetching it.
func (v *Evaluation) atHand(ctx context.Context) bool {
	d, ds := v.e.dirs.Dir(v.loader.Task(ctx), v.unit.Unit, false)
	return d != nil && d.Files != nil && !ds.HasErrors()
}

// Site returns the environment in which the unit's module is read. The text of the module's
// files is added to set.
func (v *Evaluation) Site(ctx context.Context, set *source.Set) (*run.Site, diag.List) {
	r := v.e.runner
	r.Loader, r.Moves, r.First = v.loader, v.e.moves(), &run.GivenWarnings{}
	return r.Look(ctx, v.unit, set)
}

// Explain returns the origin of the value at an address of the unit or of its module. inModule
// explains it in the module. The module decides which inputs are sensitive, so that it is left out
// only if it is not on this machine or cannot be opened. set and show are as in Site and in
// origin.Explainer.
func (v *Evaluation) Explain(ctx context.Context, set *source.Set, address string, show func(string) (name, layer string), inModule func(*run.Site) (*explanation.Explanation, diag.List)) (*explanation.Explanation, diag.List) {
	if v.ofUnit(ctx, address) && !v.atHand(ctx) {
		return v.ExplainUnit(ctx, address, show)
	}
	s, ds := v.Site(ctx, set)
	if ds.HasErrors() {
		x, more := v.ExplainUnit(ctx, address, show)
		if more.HasErrors() {
			return nil, append(ds, more...)
		}
		return x, append(ds.AsWarnings(), more...)
	}
	return inModule(s)
}

// ExplainUnit returns the origin of a part of the unit, without its module. Values that are
// sensitive in the module are not hidden.
func (v *Evaluation) ExplainUnit(ctx context.Context, address string, show func(string) (name, layer string)) (*explanation.Explanation, diag.List) {
	t := v.loader.Task(ctx)
	x := &origin.Explainer{Set: v.e.Sources(), Unit: v.unit.OriginIn(t, v.file), Show: show}
	return x.Explain(t, address)
}

// loadModule loads the module that s reads, or only its root module if a called module cannot be loaded. The
// Loaded is nil if it has errors.
func loadModule(ctx context.Context, s *run.Site, set *source.Set) (*workdir.Directory, *workdir.Loaded, diag.List) {
	d := s.Directory()
	d.Set, d.Tolerant, d.View = set, true, s.Files()
	for _, name := range s.Secret() {
		set.Conceal(name)
	}
	load := workdir.LoadOptions{Partial: true}
	_, _ = flag.Vars(&load.Vars).Take(s.Words(), false) // errors are impossible: every value is accepted
	p, ds := workdir.Load(ctx, d, load)
	if p == nil { // a module that it calls is not installed, or has errors
		load.RootOnly = true
		var more diag.List
		if p, more = workdir.Load(ctx, d, load); p == nil {
			return d, nil, more
		}
		ds = ds.AsWarnings()
	}
	return d, p, ds
}

// ModuleInstances returns the addresses of the instances of a module that the module of the unit calls; see
// engine.Engine.ModuleInstances. No state is read.
func (v *Evaluation) ModuleInstances(ctx context.Context, calls []string, limit int) []addr.ModuleInstance {
	set := &source.Set{}
	s, ds := v.Site(ctx, set)
	if ds.HasErrors() {
		return nil
	}
	_, p, _ := loadModule(ctx, s, set)
	if p == nil {
		return nil
	}
	defer p.Close()
	return p.Engine.ModuleInstances(ctx, calls, engine.ExplainOptions{Variables: p.Vars}, limit)
}

// ExplainInModule returns the origin of the value at an address in the module that s reads. shown
// returns the name of a file for users. With stored, values of objects come from the state of
// the unit, if it can be read.
func (v *Evaluation) ExplainInModule(ctx context.Context, s *run.Site, set *source.Set, address string, shown func(file string) string, stored bool) (*explanation.Explanation, diag.List) {
	d, p, ds := loadModule(ctx, s, set)
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	o := engine.ExplainOptions{
		Variables: p.Vars, Unit: v.Origin(ctx), UnitSet: v.e.Sources(),
		Show: func(file string) (string, string) {
			path, layer := s.Source(file)
			return shown(path), layer
		},
	}
	if stored {
		if b, more := p.Backend(ctx); !more.HasErrors() {
			o.State, _ = d.ReadWorkspace(ctx, b, p.Workspace, workdir.StateFiles{}) // errors are ignored, because the state is optional
		}
	}
	x, more := p.Engine.Explain(ctx, address, o)
	return x, append(ds, more...)
}
