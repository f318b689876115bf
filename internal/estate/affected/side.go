package affected

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Side is one revision of a directory of configuration.
type Side struct {
	*engine.Outlined
	// Show returns the name of a file as it is shown, for source ranges. Explanations contain such
	// names.
	Show func(file string) string
	// Moved returns the name in the head revision of a shown file of the base revision. nil means
	// that the unit was not moved.
	Moved func(file string) string

	explained map[string]*explanation.Explanation // by address; nil means that there is none
	file      string                              // the last file that name returned the name of
	fileName  string
}

// name is Show. Most objects of a unit are in one file.
func (s *Side) name(file string) string {
	if s.fileName == "" || s.file != file {
		s.file, s.fileName = file, s.Show(file)
	}
	return s.fileName
}

// Compare returns the objects that differ between two revisions.
func Compare(ctx context.Context, base, head *Side) []*Object {
	return (&comparer{ctx: ctx, base: base, head: head}).compare()
}

// A comparer describes the differences between two revisions.
type comparer struct {
	ctx        context.Context
	base, head *Side
	// at contains the causes of the objects that differ, by the position of their blocks.
	at map[Cause]*Cause
	// reads contains the outputs of other units that cause differences of objects, by the position
	// of their blocks.
	reads map[Cause][]explanation.UnitOutput
	// after contains the positions of the blocks for which data sources wait, by the position of the data
	// source; see outline.Object.After.
	after map[Cause][]Cause
	// open contains functions that look for the causes of values which depend on other objects that
	// differ, or for the outputs that cause them. They return true if they found some.
	open []func(outputs bool) bool

	// Of units. The zero values mean that nothing is shared with other units.

	// memo contains the descriptions of differences that several units have.
	memo *memo
	// output returns the cause of the difference in an output of another unit, or nil.
	output func(explanation.UnitOutput) *Cause
	// content identifies the module if it is the same in both revisions, apart from its inputs.
	// All differences in it then come from the inputs.
	content outline.Print
	// sensitive means that the module has sensitive variables.
	sensitive bool
	dirs      [2]string // directories of the unit in both revisions
	// common is the cause of all differences in the module, or nil if it is not known.
	common *Cause
}

// compare returns the objects that differ, sorted by address. It returns some of them if the
// context ends.
func (c *comparer) compare() (out []*Object) {
	c.at, c.reads, c.after = map[Cause]*Cause{}, map[Cause][]explanation.UnitOutput{}, map[Cause][]Cause{}
	for _, o := range c.head.Objects {
		for _, x := range o.After {
			if at, to := c.head.cause(o.At), c.head.cause(x); at != nil && to != nil {
				c.after[*at] = append(c.after[*at], *to)
			}
		}
	}
	all := outline.Compare(c.base.Outline, c.head.Outline)
	var changes []*Change
	describe := func(unit bool) {
		from := len(out)
		for _, d := range all {
			if (d.Kind == outline.Unit) == unit {
				out = append(out, c.object(d))
			}
		}
		for _, outputs := range []bool{false, true} { // an object may change because another one may change
			for before := -1; before != len(c.open); {
				before = len(c.open)
				c.open = slices.DeleteFunc(c.open, func(f func(bool) bool) bool { return f(outputs) })
			}
		}
		for _, o := range out[from:] {
			changes = append(changes, o.Changes...)
		}
		for more := c.output != nil; more; {
			more = slices.ContainsFunc(changes, c.resolve)
		}
	}
	describe(true)
	sourced(out)
	if c.content != (outline.Print{}) {
		c.common = commonCause(out)
	}
	describe(false)
	slices.SortStableFunc(out, func(a, b *Object) int { return cmp.Compare(a.Address, b.Address) })
	return out
}

// resolve sets the cause of a change that comes from an output of another unit. It reports whether
// it found the cause.
func (c *comparer) resolve(x *Change) bool {
	for _, r := range x.reads {
		if from := c.output(r); from != nil {
			x.cause, x.reads = from, nil
			return true
		}
	}
	return false
}

// commonCause returns the line that causes all differences in the inputs of a unit, or nil if there
// are several or one is not known.
func commonCause(objects []*Object) (out *Cause) {
	for _, o := range objects {
		if o.Address != "inputs" {
			continue
		}
		for _, x := range o.Changes {
			if x.cause == nil || len(x.reads) > 0 || out != nil && (out.File != x.cause.File || out.Line != x.cause.Line || out.Removed != x.cause.Removed) {
				return nil
			}
			out = x.cause
		}
	}
	return out
}

// sourced sets the cause of a module that is not on this machine: the line that changes its source or its generated
// files, if it is only one.
func sourced(objects []*Object) {
	var from *Cause
	for _, o := range objects {
		if o.Address != "terraform" && !strings.HasPrefix(o.Address, "generate.") {
			continue
		}
		for _, x := range o.Changes {
			if x.cause == nil || from != nil && *from != *x.cause {
				return
			}
			from = x.cause
		}
	}
	for _, o := range objects {
		if from != nil && o.Address == "module" && o.Kind == outline.Unit {
			for _, x := range o.Changes {
				x.cause = from
			}
		}
	}
}

func (c *comparer) object(d outline.Difference) *Object {
	o := &Object{Address: d.Addr, Was: d.Was, Kind: d.Kind, Action: d.Action}
	if c.ctx.Err() != nil {
		return o
	}
	switch d.Action {
	case Added:
		o.cause = c.presence(d.New, c.base, c.head, false)
		c.note(d.New, o.cause)
	case Removed:
		o.cause = c.presence(d.Old, c.head, c.base, true)
	case Moved:
		o.cause = c.head.cause(d.New.At)
	}
	var why []string
	for _, p := range d.Parts {
		x := c.change(d, p)
		if p.Action == MayChange {
			if why == nil {
				why = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.Old.Why, d.New.Why))))
			}
			if x.Reasons = why; p.New != nil && len(p.New.Why) > 0 {
				x.Reasons = p.New.Why
			} else if p.Old != nil && len(p.Old.Why) > 0 {
				x.Reasons = p.Old.Why
			} else if len(why) == 0 {
				x.Reasons = []string{"the value is not known before an apply"}
			}
		}
		o.Changes = append(o.Changes, x)
	}
	return o
}

// note records the cause of an object that differs.
func (c *comparer) note(o *outline.Object, cause *Cause) {
	if at := c.head.cause(o.At); at != nil && cause != nil && c.at[*at] == nil {
		c.at[*at] = cause
	}
}

// noteReads records the outputs that cause the differences of an object.
func (c *comparer) noteReads(o *outline.Object, all []explanation.UnitOutput) {
	if at := c.head.cause(o.At); at != nil && len(all) > 0 && c.reads[*at] == nil {
		c.reads[*at] = all
	}
}

// cause returns the cause at a range without text.
func (s *Side) cause(at source.Range) *Cause {
	if at.Filename == "" {
		return nil
	}
	return &Cause{File: s.name(at.Filename), Line: at.Start.Line}
}

// change describes a part that differs.
func (c *comparer) change(d outline.Difference, p outline.PartDifference) *Change {
	if out := c.direct(d, p); out != nil {
		return out
	}
	key, ok := c.key(d, p)
	if !ok {
		out, _, _ := c.explained(d, p)
		return out
	}
	var own *Change
	kept := c.memo.Pure(key, func() described {
		before := len(c.open)
		x, old, now := c.explained(d, p)
		own = x
		return described{*x, d.Kind != outline.Unit || plain(old) && plain(now) && len(c.open) == before}
	})
	switch {
	case own != nil:
		return own
	case !kept.shared:
		out, _, _ := c.explained(d, p)
		return out
	}
	out := kept.Change
	if d.Kind != outline.Unit {
		out.cause = hide(&out, c.common)
	}
	c.note(d.New, out.cause)
	return &out
}

// direct describes an input that is exactly an unknown output of another unit in both revisions. The
// cause is that of the difference in the output. The result is nil for other parts.
func (c *comparer) direct(d outline.Difference, p outline.PartDifference) *Change {
	old, now := p.Old, p.New
	if c.output == nil || c.sensitive || old == nil || now == nil || now.Output == "" || old.Output != now.Output || !slices.Equal(old.Why, now.Why) || old.Marked || now.Marked || old.Secret || now.Secret {
		return nil
	}
	out := &Change{Path: strings.TrimLeft(p.Path, " ."), Action: p.Action, cause: c.head.cause(now.At)}
	out.reads = []explanation.UnitOutput{{Unit: now.OutputOf, Name: now.Output}}
	c.noteReads(d.New, out.reads)
	return out
}

// explained describes a part with its explanations in both revisions.
func (c *comparer) explained(d outline.Difference, p outline.PartDifference) (out *Change, old, now *explanation.Explanation) {
	out = &Change{Path: strings.TrimLeft(p.Path, " ."), Action: p.Action}
	if p.Old != nil {
		old = c.base.explain(d.Old, p.Old)
	}
	if p.New != nil {
		now = c.head.explain(d.New, p.New)
	}
	for _, x := range []*explanation.Explanation{old, now} {
		out.Sensitive = out.Sensitive || x != nil && x.Sensitive
	}
	if p.Old != nil && p.Old.Secret || p.New != nil && p.New.Secret {
		out.Sensitive = true
	}
	if !out.Sensitive {
		out.Before, out.before = shown(old)
		out.After, out.after = shown(now)
		out.before, out.after = shortPair(out.before, out.after)
	}
	if c.common != nil && d.Kind != outline.Unit {
		out.cause = hide(out, c.common)
		c.note(d.New, out.cause)
		return out, old, now
	}
	if out.cause = c.within(d, p, old, now); out.cause == nil {
		out.cause = c.parting(old, now, 0)
	}
	if all := c.head.places(now); out.cause == nil && out.Sensitive && len(all) > 0 { // the texts that differ are hidden
		last := all[len(all)-1]
		out.cause = &Cause{File: last.File, Line: last.Line}
	}
	if out.cause == nil && p.New != nil {
		out.cause = c.refer(p.New.Refs, 0)
	}
	if out.cause != nil {
		c.note(d.New, out.cause)
	} else {
		out.reads = c.unitOutputs(nil, now, 0)
		c.noteReads(d.New, out.reads)
		from := c.providers(nil, now, 0)
		c.open = append(c.open, func(outputs bool) bool {
			for _, at := range from {
				if x := c.at[at]; x != nil {
					out.cause, out.reads = x, nil
					c.note(d.New, x)
					return true
				}
				if all := c.reads[at]; outputs && len(out.reads) == 0 && len(all) > 0 {
					out.reads = all
					c.noteReads(d.New, all)
					return true
				}
			}
			return false
		})
		switch {
		case p.New != nil && p.New.At.Filename != "":
			out.cause = c.head.cause(p.New.At)
		case p.Old != nil && p.Old.At.Filename != "":
			out.cause = c.base.cause(p.Old.At)
			out.cause.Removed = true
		default:
			out.cause = c.repetition(d.Old, d.New)
		}
		if p.New != nil && p.New.Fixed || p.Old != nil && p.Old.Fixed { // it has no explanation
			c.note(d.New, out.cause)
		}
	}
	if out.cause != nil {
		out.cause = hide(out, out.cause)
	}
	return out, old, now
}

// hide returns a cause without its texts if the change is sensitive.
func hide(x *Change, cause *Cause) *Cause {
	if !x.Sensitive || cause.Before == "" && cause.After == "" {
		return cause
	}
	bare := *cause
	bare.Before, bare.After = "", ""
	return &bare
}

// repetition returns the cause of a difference in the number of instances.
func (c *comparer) repetition(old, now *outline.Object) *Cause {
	if old.Repeat == "" || now.Repeat == "" {
		return c.head.cause(now.At)
	}
	if x := c.parting(c.base.at(old.Of+"."+old.Repeat), c.head.at(now.Of+"."+now.Repeat), 0); x != nil {
		return x
	}
	return c.head.cause(now.At)
}

// presence returns the cause of an object that only one revision, has, contains.
func (c *comparer) presence(o *outline.Object, without, has *Side, removed bool) *Cause {
	if c.common != nil && o.Kind != outline.Unit {
		return c.common
	}
	names := []string{}
	if o.Kind == outline.Resource {
		if o.Repeat != "" {
			names = append(names, o.Of+"."+o.Repeat)
		}
		for m := o.Instance.Module; m != ""; {
			parent, last, ok := m.Parent()
			if !ok {
				break
			}
			prefix := ""
			if parent != "" {
				prefix = string(parent) + "."
			}
			switch last.Key.Kind {
			case addr.IntKey:
				names = append(names, prefix+"module."+last.Name+".count")
			case addr.StringKey:
				names = append(names, prefix+"module."+last.Name+".for_each")
			}
			m = parent
		}
		for _, name := range names {
			x := c.parting(c.base.at(name), c.head.at(name), 0)
			if x != nil && x.Before != "" && x.After != "" {
				return x
			}
		}
	}
	for _, name := range names { // the block exists in both revisions, with other instances
		if all := without.places(without.at(name)); len(all) > 0 && without.exists(name) {
			return &Cause{File: all[0].File, Line: all[0].Line}
		}
	}
	x := has.cause(o.At)
	if x != nil {
		x.Removed = removed
	}
	return x
}

// exists reports whether the explanation of an argument begins in the argument itself.
func (s *Side) exists(name string) bool {
	x := s.at(name)
	return x != nil && len(x.Steps) > 0 && x.Steps[0].At != nil && x.Steps[0].Kind == explanation.Argument
}

// explain returns the explanation of a part of an object, or nil if there is none.
func (s *Side) explain(o *outline.Object, p *outline.Part) *explanation.Explanation {
	if p.Fixed || p.Secret {
		return nil
	}
	path := p.Path
	if rest, ok := strings.CutPrefix(path, " "); ok {
		path = "." + rest
	}
	address := o.Addr
	if o.Was != "" {
		address = o.Was
	}
	return s.at(address + path)
}

// at returns the explanation of an address, or nil if there is none.
func (s *Side) at(address string) *explanation.Explanation {
	if x, ok := s.explained[address]; ok {
		return x
	}
	x, ds := s.Explain(address)
	if ds.HasErrors() {
		x = nil
	}
	if s.explained == nil {
		s.explained = map[string]*explanation.Explanation{}
	}
	s.explained[address] = x
	return x
}

// maxFollowed is the number of references that are followed from a computed value to the cause.
const maxFollowed = 8

// within returns the cause of a part that only one revision has, such as an added key of a map: the step of
// its explanation in which the object or list around the part differs. It returns nil if there is none.
func (c *comparer) within(d outline.Difference, p outline.PartDifference, old, now *explanation.Explanation) *Cause {
	if d.Old == nil || d.New == nil || (old == nil) == (now == nil) {
		return nil
	}
	i := strings.LastIndexAny(p.Path, ".[")
	if i <= 0 {
		return nil
	}
	around := &outline.Part{Path: p.Path[:i]}
	before, after := c.base.explain(d.Old, around), c.head.explain(d.New, around)
	from := c.parting(before, after, 0)
	if isSet(before) && isSet(after) {
		side, whole, part := c.head, after, now
		if now == nil {
			side, whole, part = c.base, before, old
		}
		switch at, inside := side.itemOf(whole, part); {
		case inside && from != nil && from.Before != "" && from.After != "" && from.Before != from.After:
			return from // the line of the whole has lost or got the part
		case inside || at.SourceLine == nil:
		case now == nil:
			return &Cause{File: at.File, Line: at.Line, Before: at.text, Removed: true}
		default:
			return &Cause{File: at.File, Line: at.Line, After: at.text}
		}
	}
	if from == nil {
		return nil
	}
	switch {
	case now != nil && !from.Removed:
		for _, step := range c.head.places(now) {
			if step.File == from.File && step.Line >= from.Line {
				return &Cause{File: step.File, Line: step.Line, After: step.text}
			}
		}
	case now == nil: // the line that is nearest to it, since the lines of the two revisions have other numbers
		var out *Cause
		far := 0
		for _, step := range c.base.places(old) {
			if n := max(step.Line-from.Line, from.Line-step.Line); c.sameFile(step.File, from.File) && (out == nil || n < far) {
				out, far = &Cause{File: step.File, Line: step.Line, Before: step.text, Removed: true}, n
			}
		}
		return out
	}
	return nil
}

// isSet reports whether an explanation is that of an argument that is set.
func isSet(x *explanation.Explanation) bool {
	if x == nil || len(x.Steps) == 0 {
		return false
	}
	switch x.Steps[0].Kind {
	case explanation.NotSet, explanation.Provider, explanation.Unknown, explanation.Failed:
		return false
	}
	return true
}

// itemOf returns the place of the item of an object or list that sets a part of it. It has no line if the
// explanation of the part does not continue that of the whole with an item. inside is true if the item is on a
// line of the explanation of the whole.
func (s *Side) itemOf(whole, part *explanation.Explanation) (at place, inside bool) {
	n := 0
	same := func(a, b *explanation.SourceLine) bool {
		return a == nil && b == nil || a != nil && b != nil && a.File == b.File && a.Line == b.Line
	}
	for n < len(whole.Steps) && n < len(part.Steps) && whole.Steps[n].Kind == part.Steps[n].Kind && same(whole.Steps[n].At, part.Steps[n].At) {
		n++
	}
	if n == len(part.Steps) {
		return at, n == len(whole.Steps)
	}
	step := part.Steps[n]
	if n == 0 || step.Kind != explanation.Item || step.At == nil {
		return at, false
	}
	for _, p := range s.places(part) {
		if p.SourceLine == step.At {
			at = p
		}
	}
	return at, slices.ContainsFunc(whole.Steps, func(x *explanation.Step) bool { return same(x.At, step.At) })
}

// parting returns the first step in which two explanations differ, or nil if there is none.
func (c *comparer) parting(old, now *explanation.Explanation, depth int) *Cause {
	if now == nil && old == nil {
		return nil
	}
	a, b := c.base.places(old), c.head.places(now)
	i := 0
	for i < len(a) && i < len(b) && c.sameFile(a[i].File, b[i].File) && a[i].text == b[i].text {
		i++
	}
	switch {
	case i < len(a) && i < len(b):
		return &Cause{File: b[i].File, Line: b[i].Line, Before: a[i].text, After: b[i].text}
	case i < len(b):
		return &Cause{File: b[i].File, Line: b[i].Line, After: b[i].text}
	case i < len(a):
		return &Cause{File: a[i].File, Line: a[i].Line, Before: a[i].text, Removed: true}
	}
	if depth >= maxFollowed || old == nil {
		return nil
	}
	if x := c.refer(references(now), depth); x != nil {
		return x
	}
	if n := len(b); n > 0 && (b[n-1].text == "" || begins(b[n-1], old, now)) && len(c.unitOutputs(nil, now, 0)) == 0 { // the line that differs is not shown, since it has other values too
		out := &Cause{File: b[n-1].File, Line: b[n-1].Line}
		if last := now.Steps[len(now.Steps)-1]; !last.Computed && last.At == b[n-1].SourceLine && !old.Sensitive && !now.Sensitive {
			_, before := shown(old)
			_, after := shown(now)
			out.Before, out.After = short(before), short(after)
		}
		return out
	}
	return nil
}

// begins reports whether the text of the last place of an explanation is only the first of several lines
// that set a value, which differs from the old one.
func begins(last place, old, now *explanation.Explanation) bool {
	step := now.Steps[len(now.Steps)-1]
	return strings.ContainsAny(last.text[len(last.text)-1:], "{[(") && step.At == last.SourceLine && step.Kind != explanation.Provider &&
		old.Value != cty.NilVal && now.Value != cty.NilVal && !old.Value.RawEquals(now.Value)
}

func (c *comparer) sameFile(base, head string) bool {
	return base == head || c.base.Moved != nil && c.base.Moved(base) == head
}

// unitOutputs appends the outputs of other units to which the references of an explanation lead.
func (c *comparer) unitOutputs(out []explanation.UnitOutput, x *explanation.Explanation, depth int) []explanation.UnitOutput {
	if x == nil || depth > maxFollowed {
		return out
	}
	for _, s := range x.Steps {
		if s.Output != nil && !slices.Contains(out, *s.Output) {
			out = append(out, *s.Output)
		}
	}
	for _, address := range references(x) {
		out = c.unitOutputs(out, c.head.at(address), depth+1)
	}
	return out
}

// references returns the addresses to which the last step of an explanation refers.
func references(x *explanation.Explanation) (out []string) {
	if x == nil || len(x.Steps) == 0 {
		return nil
	}
	for _, f := range x.Steps[len(x.Steps)-1].From {
		out = append(out, f.Address)
	}
	return out
}

// providers appends the positions of the objects whose providers determine a value, or a part of it.
func (c *comparer) providers(out []Cause, x *explanation.Explanation, depth int) []Cause {
	if x == nil || len(x.Steps) == 0 || depth > maxFollowed {
		return out
	}
	if last := x.Steps[len(x.Steps)-1]; last.Kind == explanation.Provider && last.At != nil {
		at := Cause{File: last.At.File, Line: last.At.Line}
		return append(append(out, at), c.after[at]...)
	}
	for _, address := range references(x) {
		out = c.providers(out, c.head.at(address), depth+1)
	}
	return out
}

// refer returns the first step in which the explanations of values differ, or nil if there is none.
func (c *comparer) refer(addresses []string, depth int) *Cause {
	for _, address := range addresses {
		o, n := c.base.at(address), c.head.at(address)
		if o != nil && n != nil && o.Value != cty.NilVal && n.Value != cty.NilVal && o.Value.RawEquals(n.Value) {
			continue
		}
		if x := c.parting(o, n, depth+1); x != nil {
			return x
		}
	}
	return nil
}

// A place is a place of an explanation with the text that sets the value.
type place struct {
	*explanation.SourceLine
	text string
}

// places returns the places of an explanation in files.
func (s *Side) places(x *explanation.Explanation) (out []place) {
	if x == nil {
		return nil
	}
	for _, step := range x.Steps {
		if step.At == nil || step.At.File == "" {
			continue
		}
		text := step.At.Part
		if text == "" {
			text = step.At.Source
		}
		out = append(out, place{step.At, strings.Join(strings.Fields(text), " ")})
	}
	return out
}

// shown returns the value of an explanation as JSON and as text in one line, or nothing if it is not known.
func shown(x *explanation.Explanation) (json.RawMessage, string) {
	if x == nil || x.Value == cty.NilVal {
		return nil, ""
	}
	raw, err := ctyjson.Marshal(x.Value, x.Value.Type())
	if err != nil {
		return nil, ""
	}
	return raw, oneLine(string(hclwrite.TokensForValue(x.Value).Bytes()))
}

// maxText is the number of characters of a value that are shown in a line.
const maxText = 60

func oneLine(s string) string { return strings.Join(strings.Fields(wrap.OneLine(s)), " ") }

// shortPair shortens two texts that differ. If they are long, they begin near the first difference.
func shortPair(a, b string) (string, string) {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	const before = 15 // characters before the difference
	if n < maxText-before || len(x) <= maxText && len(y) <= maxText {
		return short(a), short(b)
	}
	return short("…" + string(x[n-before:])), short("…" + string(y[n-before:]))
}

func short(s string) string {
	if r := []rune(s); len(r) > maxText {
		return string(r[:maxText-1]) + "…"
	}
	return s
}
