package affected

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/source"
)

// A Revision is one revision of an estate.
type Revision struct {
	Estate *estate.Estate
	estate.OutlineOptions
	// Warn receives the warnings about the module of a unit that differs; see estate.UnitOutline.Warnings. It may be
	// called concurrently. nil discards them.
	Warn func(unit string, ds diag.List, files *source.Set, path func(file string) string)
}

// warn reports the warnings about the module of a unit.
func (r *Revision) warn(u *discovery.Unit, o *estate.UnitOutline) {
	if r.Warn == nil {
		return
	}
	if ds, files, path := o.Warnings(); len(ds) > 0 {
		r.Warn(u.Name, ds, files, path)
	}
}

// A Failed is a unit that was not compared because it has errors in one of the revisions.
type Failed struct {
	Name       string // in the head, or in the base if the head does not contain it
	Base, Head Errors
}

// Errors contains the errors of a unit in one revision.
type Errors struct {
	Of       *discovery.Unit
	Messages diag.List
	// Files contains the files to which the messages refer, and Path returns the path of one of them. Both are nil
	// if they refer to the files of Revision.Estate.
	Files *source.Set
	Path  func(file string) string
}

// Estates returns the units that differ between two revisions of an estate, and those that have errors, both sorted
// by name. ds contains no errors of units.
func Estates(ctx context.Context, base, head Revision) (differ []*Unit, failed []*Failed, ds diag.List) {
	c := &estates{ctx: ctx, base: base, head: head, of: map[*discovery.Unit]*unitPair{}, memo: &memo{}, outputs: map[explanation.UnitOutput]*Cause{}}
	pairs := pair(base, head)
	for _, p := range pairs {
		c.of[p.base], c.of[p.head] = p, p
		for _, u := range []*discovery.Unit{p.base, p.head} {
			if u != nil {
				p.readers.Add(int32(len(u.NeededBy)))
			}
		}
	}
	base.Equal = c.twin
	base.Twin = func(u *discovery.Unit) (*estate.Outlines, *discovery.Unit) {
		if p := c.of[u]; p != nil && p.head != nil {
			return c.after, p.head
		}
		return nil, nil
	}
	head.Before = func(u *discovery.Unit) (*estate.Outlines, *discovery.Unit) {
		if p := c.of[u]; p != nil && p.base != nil {
			return c.before, p.base
		}
		return nil, nil
	}
	c.before, c.after = base.Estate.Outlines(base.OutlineOptions), head.Estate.Outlines(head.OutlineOptions)
	c.unread[0], c.unread[1] = unread(base), unread(head)
	c.files = sync.OnceValue(func() map[string]bool {
		paths := make(map[string]bool, len(head.Estate.Found.Units))
		for _, u := range head.Estate.Found.Units {
			paths[head.Estate.Found.Name(u.Path)] = true
		}
		return paths
	})
	results := parallel.Map(len(pairs), 0, func(i int) result { return c.result(pairs[i]) })
	for _, r := range results {
		ds = append(ds, r.ds...)
		if r.unit != nil {
			differ = append(differ, r.unit)
		}
		if r.failed != nil {
			failed = append(failed, r.failed)
		}
	}
	return differ, failed, ds.Once()
}

// unread returns the units of files that cannot be read, by the path of the file.
func unread(r Revision) map[string]*discovery.Unit {
	var out map[string]*discovery.Unit
	for _, u := range r.Estate.Found.Units {
		if u.Broken.HasErrors() {
			if out == nil {
				out = map[string]*discovery.Unit{}
			}
			out[r.Estate.Found.Name(u.Path)] = u
		}
	}
	return out
}

// estates compares two revisions of an estate. Its methods may be called concurrently.
type estates struct {
	ctx           context.Context
	base, head    Revision
	before, after *estate.Outlines
	of            map[*discovery.Unit]*unitPair
	equal         parallel.Cache[*unitPair, bool]
	results       parallel.Cache[*unitPair, result]
	memo          *memo
	// unread contains the units of files that cannot be read, by the path of the file, in the base and in the
	// head. Such a file may have contained several units.
	unread [2]map[string]*discovery.Unit
	files  func() map[string]bool // the paths of the files of all units in the head

	mu      sync.Mutex
	outputs map[explanation.UnitOutput]*Cause // causes of differences in outputs
}

// A result is the result for one pair of units. unit and failed are nil if they are equal. ds contains an error if
// the comparison was interrupted.
type result struct {
	unit   *Unit
	failed *Failed
	ds     diag.List
}

// result compares a pair of units, after the units that the one in the head depends on: a
// difference that comes from an output of another unit has the cause of the difference there.
func (c *estates) result(p *unitPair) result {
	canceled := result{ds: diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The comparison was interrupted.")}
	if p == nil || c.ctx.Err() != nil {
		return canceled
	}
	r, err := c.results.Do(c.ctx, p, func() (result, bool) {
		if p.base == nil || p.head == nil {
			return c.alone(p), true
		}
		for _, n := range p.head.Needs {
			if q := c.of[n]; q != nil {
				c.result(q)
			}
		}
		r := c.compare(p)
		if r.failed == nil && !r.ds.HasErrors() && !c.same(p) {
			c.done(p)
		}
		return r, true
	})
	if err != nil || c.ctx.Err() != nil {
		return canceled
	}
	return r
}

// alone returns the result for a unit that only one revision contains.
func (c *estates) alone(p *unitPair) result {
	if u := p.head; u != nil {
		switch of := c.unread[0][c.head.Estate.Found.Name(u.Path)]; {
		case of != nil: // it may be one of the units of that file
			return result{failed: &Failed{Name: u.Name, Base: Errors{Of: of, Messages: of.Invalid.Errors()}}}
		case u.Excluded == "" && u.Invalid.HasErrors():
			return result{failed: &Failed{Name: u.Name, Head: Errors{Of: u, Messages: u.Invalid.Errors()}}}
		}
		return result{unit: &Unit{Name: u.Name, Action: Added}}
	}
	u := p.base
	path := c.base.Estate.Found.Name(u.Path)
	switch of := c.unread[1][path]; {
	case of != nil:
		return result{failed: &Failed{Name: u.Name, Head: Errors{Of: of, Messages: of.Invalid.Errors()}}}
	case u.Broken.HasErrors() && c.files()[path]: // the units of the file are not compared
		return result{}
	}
	return result{unit: &Unit{Name: u.Name, Action: Removed}}
}

// twin implements estate.OutlineOptions.Equal for the base.
func (c *estates) twin(ctx context.Context, u *discovery.Unit) (*estate.UnitOutline, bool) {
	p := c.of[u]
	if p == nil || !c.same(p) {
		return nil, false
	}
	o, ds := c.after.Outputs(ctx, p.head)
	return o, !ds.HasErrors()
}

// same reports whether both units of a pair have equal inputs and blocks, and equal modules. All
// their objects are then equal, and need not be computed. false means that they may differ.
func (c *estates) same(p *unitPair) bool {
	same, err := c.equal.Do(c.ctx, p, func() (bool, bool) {
		if p.base == nil || p.head == nil || p.base.Name != p.head.Name {
			return false, true
		}
		now, ds := c.after.Unit(c.ctx, p.head)
		if ds.HasErrors() {
			return false, true
		}
		old, ds := c.before.Unit(c.ctx, p.base)
		return !ds.HasErrors() && alike(old, now) && len(outline.Compare(&outline.Outline{Objects: old.Own}, &outline.Outline{Objects: now.Own})) == 0, true
	})
	return err == nil && same
}

// sameLate reports whether the inputs are equal that no module declares; see estate.Outlines.Late.
func (c *estates) sameLate(p *unitPair) bool {
	failed := false
	of := func(x *estate.Outlines, u *discovery.Unit) *outline.Outline {
		parts, ds := x.Late(c.ctx, u)
		failed = failed || ds.HasErrors()
		return &outline.Outline{Objects: []*outline.Object{{Kind: outline.Unit, Addr: "inputs", Parts: parts}}}
	}
	return len(outline.Compare(of(c.before, p.base), of(c.after, p.head))) == 0 && !failed
}

// alike reports whether the modules of two units have the same objects for the same inputs.
func alike(old, now *estate.UnitOutline) bool {
	return old.Content != outline.Print{} && old.Content == now.Content
}

// compare compares two units.
func (c *estates) compare(p *unitPair) (r result) {
	same := c.same(p) && c.sameLate(p)
	old, ds := c.before.Unit(c.ctx, p.base)
	now, more := c.after.Unit(c.ctx, p.head)
	defer old.Release()
	defer now.Release()
	failed := func() result {
		if c.ctx.Err() != nil {
			return result{ds: append(ds, more...)}
		}
		f := &Failed{Name: p.head.Name, Base: Errors{Of: p.base, Messages: ds.Errors()}, Head: Errors{Of: p.head, Messages: more.Errors()}}
		f.Base.Files, f.Base.Path = old.FailedIn()
		f.Head.Files, f.Head.Path = now.FailedIn()
		return result{failed: f}
	}
	if same {
		return result{}
	}
	if !more.HasErrors() {
		now, more = c.after.Of(c.ctx, p.head)
	}
	if !ds.HasErrors() {
		old, ds = c.before.Of(c.ctx, p.base)
	}
	if ds.HasErrors() || more.HasErrors() {
		return failed()
	}
	output := c.output
	if now.HasLate() { // a unit without an edge may be compared later, and the result must not depend on the order
		output = func(at explanation.UnitOutput) *Cause {
			if !slices.ContainsFunc(p.head.Needs, func(n *discovery.Unit) bool { return n.ID == at.Unit }) {
				return nil
			}
			return c.output(at)
		}
	}
	in := &comparer{
		ctx: c.ctx, base: &Side{Outlined: old.Outlined, Show: old.Show}, head: &Side{Outlined: now.Outlined, Show: now.Show},
		memo: c.memo, output: output, dirs: [2]string{p.base.Dir, p.head.Dir},
	}
	moved := p.base.Name != p.head.Name
	if moved || !alike(old, now) {
		if ds = old.Move(now); ds.HasErrors() {
			return failed()
		}
		in.base.Outlined = old.Outlined
	}
	if moved {
		in.base.Moved = func(file string) string {
			if rest, ok := strings.CutPrefix(file, c.base.Show(p.base.Dir)+"/"); ok {
				return c.head.Show(p.head.Dir) + "/" + rest
			}
			return file
		}
	} else if alike(old, now) {
		in.content = now.Content
	}
	in.sensitive = old.Sensitive || now.Sensitive
	u := &Unit{Name: p.head.Name, Objects: in.compare()}
	switch {
	case moved:
		u.Action, u.Was = Moved, p.base.Name
	case len(u.Objects) == 0:
		return result{}
	default:
		u.Action = Action(u.Objects)
	}
	c.note(p.head.ID, u.Objects)
	c.head.warn(p.head, now)
	c.base.warn(p.base, old)
	return result{unit: u}
}

// note records the causes of the differences in a unit's outputs.
func (c *estates) note(id string, objects []*Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := explanation.UnitOutput{Unit: id} // outputs of a module that is not on this machine are no objects
	for _, o := range objects {
		for _, x := range o.Changes {
			if o.Kind == outline.Unit && x.cause != nil && len(x.reads) == 0 && c.outputs[all] == nil {
				c.outputs[all] = x.cause
			}
		}
		name, ok := strings.CutPrefix(o.Address, "output.")
		if !ok || o.Kind != outline.Output {
			continue
		}
		at := explanation.UnitOutput{Unit: id, Name: name}
		for _, x := range o.Changes {
			if x.cause != nil && len(x.reads) == 0 && c.outputs[at] == nil {
				c.outputs[at] = x.cause
			}
		}
	}
}

// output returns the cause of the difference in an output of a unit, or nil if it is not known.
func (c *estates) output(at explanation.UnitOutput) *Cause {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.outputs[at]; x != nil {
		return x
	}
	return c.outputs[explanation.UnitOutput{Unit: at.Unit}]
}

// A unitPair is a unit in both revisions. One of them is nil if the unit was added or removed.
type unitPair struct {
	base, head *discovery.Unit
	readers    atomic.Int32 // the number of units, in both revisions, that depend on it and are not compared yet
}

// done frees what no other unit reads any more: the outlines of a pair that was compared, if no unit depends on
// it, and those of the units on which it depended alone. It must not be called for units that are the same: their
// outputs are computed when another unit reads them, from the outputs of the units on which they depend.
func (c *estates) done(p *unitPair) {
	release := func(q *unitPair) {
		if q.base != nil {
			c.before.Forget(q.base)
		}
		if q.head != nil {
			c.after.Forget(q.head)
		}
	}
	for _, u := range []*discovery.Unit{p.base, p.head} {
		if u == nil {
			continue
		}
		for _, n := range u.Needs {
			if q := c.of[n]; q != nil && q.readers.Add(-1) == 0 {
				release(q)
			}
		}
	}
	if p.readers.Load() == 0 {
		release(p)
	}
}

// pair returns the units of both revisions, sorted by name. A removed unit and an added one whose
// files have the same text are one unit that was moved.
func pair(base, head Revision) []*unitPair {
	all := map[string]*unitPair{}
	for _, u := range base.Estate.Found.Units {
		all[u.Name] = &unitPair{base: u}
	}
	for _, u := range head.Estate.Found.Units {
		if p := all[u.Name]; p != nil {
			p.head = u
		} else {
			all[u.Name] = &unitPair{head: u}
		}
	}
	removed := map[string][]string{} // names by the text of the unit file
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		if u := all[name].base; u != nil && all[name].head == nil {
			if text, ok := base.Estate.Text(u); ok {
				removed[text] = append(removed[text], name)
			}
		}
	}
	for _, name := range names {
		p := all[name]
		if p == nil || p.head == nil || p.base != nil || len(removed) == 0 { // nil: another unit was moved from there
			continue
		}
		u := p.head
		text, ok := head.Estate.Text(u)
		if !ok || len(removed[text]) == 0 {
			continue
		}
		best := slices.MaxFunc(removed[text], func(a, b string) int {
			return cmp.Or(cmp.Compare(commonEnd(a, name), commonEnd(b, name)), cmp.Compare(b, a))
		})
		p.base = all[best].base
		delete(all, best)
		removed[text] = slices.DeleteFunc(removed[text], func(n string) bool { return n == best })
	}
	out := make([]*unitPair, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// commonEnd returns the number of elements that two paths have in common at their ends.
func commonEnd(a, b string) (n int) {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}
