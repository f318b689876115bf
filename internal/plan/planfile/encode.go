package planfile

import (
	"math"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// encodePlan encodes a plan without its states, field by field in the order of the types in
// package plan.
func encodePlan(p *plan.Plan, b Backend) ([]byte, error) {
	e := newEncoder()
	e.str(b.Type)
	e.value(b.Config)
	e.str(b.Workspace)

	e.byte(byte(p.Mode))
	e.bool(p.Errored)
	e.str(p.Workspace)
	e.uint(uint64(max(p.Timestamp.Unix(), 0)))
	e.changes(p.Changes)
	e.changes(p.Drift)
	e.deferred(p.Deferred)
	e.int(len(p.Outputs))
	for _, o := range p.Outputs {
		e.output(o)
	}
	e.actions(p.Actions)
	e.checks(p.Checks)
	e.int(len(p.Variables))
	for _, name := range sortedKeys(p.Variables) {
		e.str(name)
		e.value(p.Variables[name])
	}
	e.int(len(p.Ephemeral))
	for _, name := range p.Ephemeral {
		e.str(name)
	}
	e.targets(p.Targets)
	e.targets(p.Excludes)
	e.int(len(p.Replace))
	for _, a := range p.Replace {
		e.instance(a)
	}
	e.int(len(p.Relevant))
	for _, r := range p.Relevant {
		e.instance(r.Resource)
		e.path(r.Path)
	}
	e.int(len(p.Modules))
	for _, m := range p.Modules {
		e.str(string(m.Addr))
		e.int(len(m.Null))
		for _, name := range m.Null {
			e.str(name)
		}
	}
	for _, n := range []int{p.Reads.Objects, p.Reads.Spared, p.Reads.Recent, p.Reads.Ending, p.Reads.Data, p.Reads.Kept} {
		e.int(n)
	}
	e.int(len(p.Transfers))
	for _, t := range p.Transfers {
		e.instance(t.Addr)
		e.str(t.Unit)
		e.instance(t.Other)
		e.bool(t.Out)
	}
	return e.buf, e.err
}

func (e *encoder) changes(cs []*plan.Change) {
	e.int(len(cs))
	for _, c := range cs {
		e.change(c)
	}
}

// The bits in the first byte of a change: they mark the optional parts that follow.
const (
	hasMove = 1 << iota
	hasImport
	hasIdentity
	isForcedCBD
	isSkipDestroy
	hasPaths
	isSame // After equals Before
)

func (e *encoder) change(c *plan.Change) {
	var bits byte
	set := func(bit byte, on bool) {
		if on {
			bits |= bit
		}
	}
	set(hasMove, c.Prev != c.Addr)
	set(hasImport, c.Import != nil)
	set(hasIdentity, c.BeforeIdentity != cty.NilVal || c.AfterIdentity != cty.NilVal)
	set(isForcedCBD, c.ForcedCBD)
	set(isSkipDestroy, c.SkipDestroy)
	set(hasPaths, len(c.BeforeSensitive)+len(c.AfterSensitive)+len(c.Undeclared)+len(c.ReplacePaths) > 0)
	set(isSame, value.Identical(c.Before, c.After))
	e.byte(bits)
	e.instance(c.Addr)
	e.str(string(c.Deposed))
	if bits&hasMove != 0 {
		e.instance(c.Prev)
	}
	e.provider(c.Provider)
	e.byte(byte(c.Op))
	e.str(string(c.Reason))
	e.value(c.Before)
	if bits&isSame == 0 {
		e.value(c.After)
	}
	if bits&hasPaths != 0 {
		e.paths(c.BeforeSensitive)
		e.paths(c.AfterSensitive)
		e.paths(c.Undeclared)
		e.paths(c.ReplacePaths)
	}
	e.bytes(c.Private)
	if bits&hasImport != 0 {
		e.str(c.Import.ID)
		e.value(c.Import.Identity)
		e.str(c.Import.GeneratedConfig)
	}
	if bits&hasIdentity != 0 {
		e.value(c.BeforeIdentity)
		e.value(c.AfterIdentity)
	}
	e.int(len(c.Dependencies))
	for _, a := range c.Dependencies {
		e.str(string(a.Module))
		e.resource(a.Resource)
	}
}

func (d *decoder) change() *plan.Change {
	bits := d.byte()
	c := &plan.Change{Addr: d.instance(), Deposed: addr.DeposedKey(d.str())}
	c.Prev = c.Addr
	if bits&hasMove != 0 {
		c.Prev = d.instance()
	}
	c.Provider = d.provider()
	c.Op = d.op()
	c.Reason = plan.Reason(d.str())
	c.Before = d.value()
	if c.After = c.Before; bits&isSame == 0 {
		c.After = d.value()
	}
	if bits&hasPaths != 0 {
		c.BeforeSensitive, c.AfterSensitive, c.Undeclared, c.ReplacePaths = d.paths(), d.paths(), d.paths(), d.paths()
	}
	c.Private = d.blob()
	if bits&hasImport != 0 {
		c.Import = &plan.Import{ID: d.str(), Identity: d.value(), GeneratedConfig: d.str()}
	}
	if bits&hasIdentity != 0 {
		c.BeforeIdentity, c.AfterIdentity = d.value(), d.value()
	}
	c.ForcedCBD, c.SkipDestroy = bits&isForcedCBD != 0, bits&isSkipDestroy != 0
	c.Dependencies = list(d, func() addr.ConfigResource {
		return addr.ConfigResource{Module: addr.Module(d.str()), Resource: d.resource()}
	})
	return c
}

func (d *decoder) op() plan.Op {
	o := plan.Op(d.byte())
	if o > plan.ForgetThenCreate {
		d.fail(errTorn)
		return plan.NoOp
	}
	return o
}

func (e *encoder) deferred(all []*plan.Deferred) {
	e.int(len(all))
	for _, x := range all {
		e.str(x.Addr)
		e.str(string(x.Reason))
		e.str(x.At.Filename)
		for _, p := range [...]hcl.Pos{x.At.Start, x.At.End} {
			e.int(p.Line)
			e.int(p.Column)
			e.int(p.Byte)
		}
		for _, names := range [...][]string{x.Variables, x.Objects} {
			e.int(len(names))
			for _, name := range names {
				e.str(name)
			}
		}
		if e.bool(x.Change != nil); x.Change != nil {
			e.change(x.Change)
		}
	}
}

func (d *decoder) deferred() *plan.Deferred {
	const limit = math.MaxInt32 // limit of a position, the same on all platforms
	pos := func() hcl.Pos { return hcl.Pos{Line: d.int(limit), Column: d.int(limit), Byte: d.int(limit)} }
	x := &plan.Deferred{Addr: d.str(), Reason: plan.DeferReason(d.str())}
	x.At.Filename = d.str()
	x.At.Start, x.At.End = pos(), pos()
	x.Variables, x.Objects = list(d, d.str), list(d, d.str)
	if d.bool() {
		x.Change = d.change()
	}
	return x
}

func (e *encoder) output(o *plan.OutputChange) {
	e.str(o.Name)
	e.byte(byte(o.Op))
	e.value(o.Before)
	e.value(o.After)
	e.bool(o.BeforeSensitive)
	e.bool(o.AfterSensitive)
	e.bool(o.Left)
	e.str(o.Deprecated)
}

func (d *decoder) output() *plan.OutputChange {
	return &plan.OutputChange{
		Name: d.str(), Op: d.op(), Before: d.value(), After: d.value(),
		BeforeSensitive: d.bool(), AfterSensitive: d.bool(), Left: d.bool(), Deprecated: d.str(),
	}
}

// actions encodes needs as the distance to an earlier action, since most distances are small.
func (e *encoder) actions(as []plan.Action) {
	e.int(len(as))
	for _, a := range as {
		e.byte(byte(a.Kind))
		e.int(a.Change + 1)
		e.int(len(a.Needs))
		for _, n := range a.Needs {
			e.int(n)
		}
	}
}

func (d *decoder) actions(changes int) []plan.Action {
	count := d.length()
	out := make([]plan.Action, 0, min(count, 1<<20))
	for range count {
		a := plan.Action{Kind: plan.Kind(d.byte()), Change: d.int(changes) - 1}
		if a.Kind > plan.StepCheck || a.Change < 0 && a.Kind != plan.StepJoin {
			d.fail(errTorn)
		}
		if n := d.length(); n > 0 {
			a.Needs = make([]int, n)
			for i := range a.Needs {
				a.Needs[i] = d.int(max(count-1, 0))
			}
		}
		if d.err != nil {
			return nil
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (e *encoder) checks(cs []state.CheckResult) {
	e.int(len(cs))
	for _, c := range cs {
		e.str(string(c.Kind))
		e.str(c.Addr)
		e.str(string(c.Status))
		e.bool(c.Objects == nil)
		e.int(len(c.Objects))
		for _, o := range c.Objects {
			e.str(o.Addr)
			e.str(string(o.Status))
			e.int(len(o.Failures))
			for _, f := range o.Failures {
				e.str(f)
			}
		}
	}
}

func (d *decoder) check() state.CheckResult {
	c := state.CheckResult{Kind: state.CheckKind(d.str()), Addr: d.str(), Status: state.CheckStatus(d.str())}
	none := d.bool()
	c.Objects = list(d, func() state.CheckObject {
		return state.CheckObject{Addr: d.str(), Status: state.CheckStatus(d.str()), Failures: list(d, d.str)}
	})
	if !none && c.Objects == nil {
		c.Objects = []state.CheckObject{}
	}
	return c
}

func (e *encoder) targets(ts []addr.Target) {
	e.int(len(ts))
	for _, t := range ts {
		e.str(string(t.Module))
		e.bool(t.ModuleKey)
		e.resource(t.Resource)
		e.instanceKey(t.Key)
		e.bool(t.HasKey)
	}
}

func (d *decoder) targets() []addr.Target {
	return list(d, func() addr.Target {
		return addr.Target{Module: addr.ModuleInstance(d.str()), ModuleKey: d.bool(), Resource: d.resource(), Key: d.key(), HasKey: d.bool()}
	})
}

// decodePlan decodes the output of encodePlan.
func decodePlan(src []byte) (*plan.Plan, Backend, error) {
	d := &decoder{buf: src}
	b := Backend{Type: d.str(), Config: d.value(), Workspace: d.str()}
	p := &plan.Plan{Mode: plan.Mode(d.byte()), Errored: d.bool(), Workspace: d.str()}
	if p.Mode > plan.RefreshOnly {
		d.fail(errTorn)
	}
	if sec := d.uint(); sec > 1<<50 {
		d.fail(errTorn)
	} else if sec > 0 {
		p.Timestamp = time.Unix(int64(sec), 0).UTC()
	}
	p.Changes = list(d, d.change)
	p.Drift = list(d, d.change)
	p.Deferred = list(d, d.deferred)
	p.Outputs = list(d, d.output)
	p.Actions = d.actions(len(p.Changes))
	p.Checks = list(d, d.check)
	if n := d.length(); n > 0 {
		p.Variables = make(map[string]cty.Value)
		for range n {
			name := d.str()
			p.Variables[name] = d.value()
		}
	}
	p.Ephemeral = list(d, d.str)
	p.Targets, p.Excludes = d.targets(), d.targets()
	p.Replace = list(d, d.instance)
	p.Relevant = list(d, func() plan.RelevantAttr { return plan.RelevantAttr{Resource: d.instance(), Path: d.path()} })
	p.Modules = list(d, func() plan.CalledModule {
		return plan.CalledModule{Addr: addr.ModuleInstance(d.str()), Null: list(d, d.str)}
	})
	for _, n := range []*int{&p.Reads.Objects, &p.Reads.Spared, &p.Reads.Recent, &p.Reads.Ending, &p.Reads.Data, &p.Reads.Kept} {
		*n = d.int(math.MaxInt32)
	}
	p.Transfers = list(d, func() plan.Transfer {
		return plan.Transfer{Addr: d.instance(), Unit: d.str(), Other: d.instance(), Out: d.bool()}
	})
	if d.err == nil && len(d.buf) > 0 {
		d.fail(errTorn)
	}
	return p, b, d.err
}
