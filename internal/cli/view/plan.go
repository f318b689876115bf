package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// The own names of the program, which messages contain. Other texts contain the names of a
// diag.Names.
const (
	Product = "Terrace"
	Program = "terrace"
)

// Schemas returns the schema of a resource type, or nil if it is unknown. Without a schema,
// values are compared by their own types. Its methods may be called concurrently.
type Schemas interface {
	Resource(p addr.Provider, mode addr.Mode, typ string) *schema.Resource
}

// rule writes the line between sections, which is no longer than the terminal is wide.
func (p *printer) rule() {
	n := 77
	if p.width > 0 {
		n = min(n, p.width-1)
	}
	p.str("\n", strings.Repeat("─", n), "\n")
}

// Plan writes a plan for people. It hides sensitive values unless reveal is set.
func Plan(w io.Writer, style Style, p *plan.Plan, schemas Schemas, reveal bool) error {
	v := &planView{printer: newPrinter(w, style), plan: p, schemas: schemas, d: differ{reveal: reveal}}
	v.write()
	return v.Flush()
}

// Rule writes the line that ends a plan's text.
func Rule(w io.Writer, style Style) {
	p := newPrinter(w, style)
	p.rule()
	_ = p.Flush()
}

type planView struct {
	*printer
	d       differ
	plan    *plan.Plan
	schemas Schemas
}

func (v *planView) write() {
	defer func() {
		for i, line := range v.plan.Reads.Lines() {
			if i == 0 {
				v.str("\n")
			}
			v.sentences(0, line, ".\n")
		}
	}()
	drift := v.drift()
	changes := v.changes()
	outputs := v.outputs()
	if len(v.plan.Transfers) > 0 {
		v.sentences(0, "\n", v.names.Product(), " will move objects between the states of units:\n\n")
		for _, t := range v.plan.Transfers {
			v.transfer(t)
		}
		if len(changes) == 0 && len(outputs) == 0 && !drift {
			v.sentences(0, "\nYou can apply this plan to make these moves, without changing any real\ninfrastructure.\n")
			return
		}
	}
	if len(changes) == 0 && len(outputs) == 0 && len(v.plan.Deferred) == 0 {
		v.nothing(drift)
		return
	}
	if drift {
		v.rule()
	}
	if len(v.plan.Deferred) > 0 {
		defer v.deferred()
	}
	if len(changes) > 0 {
		v.legend(changes)
		if v.plan.Errored {
			v.sentences(0, "\n", v.names.Product(), " planned the following actions, but then encountered a problem:\n")
		} else {
			v.sentences(0, "\n", v.names.Product(), " will perform the following actions:\n")
		}
		v.all(changes)
		v.str("\n")
		v.dressed(bold, "Plan:")
		text := Summary(v.plan.Counts())
		if n := len(v.plan.Deferred); n > 0 {
			text = fmt.Sprintf("%s, %d deferred.", strings.TrimSuffix(text, "."), n)
		}
		v.sentences(len("Plan:"), " ", text, "\n")
	}
	if len(outputs) == 0 {
		return
	}
	v.str("\nChanges to Outputs:\n")
	v.outputLines(outputs)
	if !slices.ContainsFunc(changes, func(c *plan.Change) bool { return c.Op != plan.NoOp }) {
		v.sentences(0, "\nYou can apply this plan to save these new output values to the ", v.names.Product(), "\nstate, without changing any real infrastructure.\n")
	}
}

// deferred writes the objects that cannot be planned yet, with what they wait for.
func (v *planView) deferred() {
	v.sentences(0, "\n", v.names.Product(), " defers the following, which cannot be planned yet:\n")
	for _, d := range v.plan.Deferred {
		v.str("\n")
		v.dressed(bold, "  # "+d.Addr)
		v.str(" is deferred\n  # (", d.Reason.Text())
		if d.At.Filename != "" {
			v.str(": ", d.At.Filename, ":", strconv.Itoa(d.At.Start.Line))
		}
		v.str(")\n")
		if waits := d.Waits(); len(waits) > 0 {
			v.str("  # (waits for ", ShortList(waits), ")\n")
		}
		if c := d.Change; c != nil {
			v.body(c, v.compare(c, nil))
		}
	}
}

// transfer writes the line of a move between units.
func (v *planView) transfer(t plan.Transfer) {
	v.dressed(bold, "  # "+t.Addr.String())
	switch {
	case t.Out && t.Other == t.Addr:
		v.str(" is moved to the unit ", t.Unit, "\n")
	case t.Out:
		v.str(" is moved to the unit ", t.Unit, ", as ", t.Other.String(), "\n")
	case t.Other == t.Addr:
		v.str(" is moved from the unit ", t.Unit, "\n")
	default:
		v.str(" is moved from the unit ", t.Unit, ", where it is ", t.Other.String(), "\n")
	}
}

// Summary returns the text after "Plan:".
func Summary(n plan.Counts) string {
	s := strconv.Itoa(n.Add) + " to add, " + strconv.Itoa(n.Change) + " to change, " + strconv.Itoa(n.Destroy) + " to destroy"
	if n.Import > 0 {
		s = strconv.Itoa(n.Import) + " to import, " + s
	}
	if n.Forget > 0 {
		s += ", " + strconv.Itoa(n.Forget) + " to forget"
	}
	return s + "."
}

// Unchanged returns the sentence after "No changes." of a plan without changes.
func Unchanged(m plan.Mode) string {
	switch m {
	case plan.RefreshOnly:
		return "Your infrastructure still matches the configuration."
	case plan.Destroy:
		return "No objects need to be destroyed."
	}
	return "Your infrastructure matches the configuration."
}

// changes returns the changes to show: modules in order, and data sources first in each.
func (v *planView) changes() []*plan.Change {
	if v.plan.Mode == plan.RefreshOnly {
		return nil
	}
	var out []*plan.Change
	for _, c := range v.plan.Changes {
		if c.Op != plan.NoOp || c.Moved() || c.Import != nil {
			out = append(out, c)
		}
	}
	return plan.Shown(out)
}

var legendTexts = [...]struct {
	op   plan.Op
	text string
}{
	{plan.Create, "create"},
	{plan.Update, "update in-place (current -> planned)"},
	{plan.Delete, "destroy"},
	{plan.DeleteThenCreate, "destroy and then create replacement"},
	{plan.CreateThenDelete, "create replacement and then destroy"},
	{plan.ForgetThenCreate, "forget and then create replacement"},
	{plan.Read, "read (data resources)"},
	{plan.Forget, "forget"},
}

func (v *planView) legend(changes []*plan.Change) {
	var used [plan.ForgetThenCreate + 1]bool
	some := false
	for _, c := range changes {
		used[c.Op] = true
		some = some || c.Op != plan.NoOp
	}
	if !some {
		return
	}
	v.sentences(0, "\n", v.names.Product(), " used the selected providers to generate the following execution\n",
		"plan. Resource actions are indicated with the following symbols:\n")
	for _, l := range legendTexts {
		if used[l.op] {
			v.actionSymbol(l.op)
			v.str(l.text, "\n")
		}
	}
}

// actionSymbol writes the four columns before a resource.
func (v *planView) actionSymbol(o plan.Op) {
	switch o {
	case plan.Create:
		v.sign(green, "+")
	case plan.Read:
		v.str(" ")
		v.dressed(cyan, "<=")
		v.str(" ")
	case plan.Update:
		v.sign(yellow, "~")
	case plan.Delete:
		v.sign(red, "-")
	case plan.Forget:
		v.sign(red, ".")
	case plan.DeleteThenCreate:
		v.pairSign(red, "-", green, "+")
	case plan.CreateThenDelete:
		v.pairSign(green, "+", red, "-")
	case plan.ForgetThenCreate:
		v.pairSign(red, ".", green, "+")
	default:
		v.str("    ")
	}
}

func (v *planView) pairSign(s1, t1, s2, t2 string) {
	v.dressed(s1, t1)
	v.str("/")
	v.dressed(s2, t2)
	v.str(" ")
}

// page is the number of changes that a worker writes at a time. pages is the largest number of
// pages in memory.
const (
	page  = 64
	pages = 32
)

// all writes changes concurrently, in their order.
func (v *planView) all(changes []*plan.Change) {
	for len(changes) > page {
		n := min(len(changes), page*pages)
		for _, text := range parallel.Map((n+page-1)/page, 0, func(i int) []byte {
			var b bytes.Buffer
			some := &planView{printer: newPrinter(&b, Style{Color: v.color, Names: v.names}), plan: v.plan, schemas: v.schemas, d: differ{reveal: v.d.reveal}}
			for _, c := range changes[i*page : min((i+1)*page, n)] {
				some.change(c)
			}
			_ = some.Flush() // a write to a buffer cannot fail
			return b.Bytes()
		}) {
			_, _ = v.Write(text)
		}
		changes = changes[n:]
	}
	for _, c := range changes {
		v.change(c)
	}
}

// change writes one change with its comment lines.
func (v *planView) change(c *plan.Change) {
	v.str("\n")
	v.header(c, false)
	v.forcing(c.Causes)
	n := v.compare(c, nil)
	n.setCauses(c.Causes)
	v.body(c, n)
}

func (v *planView) body(c *plan.Change, n *node) {
	v.actionSymbol(c.Op)
	v.str(blockName(c.Addr.Resource.Mode), " ", quoted(c.Addr.Resource.Type), " ", quoted(c.Addr.Resource.Name), " ")
	v.node(n, 0, flags{plain: c.Op == plan.Forget, all: c.Op == plan.Forget || c.Op == plan.NoOp && c.Import != nil})
	v.str("\n")
}

func blockName(m addr.Mode) string {
	switch m {
	case addr.Data:
		return "data"
	case addr.Ephemeral:
		return "ephemeral"
	}
	return "resource"
}

// compare returns the node of a change. If only is not nil, arguments outside of it count as
// unchanged.
func (v *planView) compare(c *plan.Change, only *value.PathSet) *node {
	p := pair{
		before: present(c.Before), after: present(c.After),
		beforeS: value.NewPathSet(c.BeforeSensitive), afterS: value.NewPathSet(c.AfterSensitive), replace: value.NewPathSet(c.ReplacePaths),
	}
	switch c.Op {
	case plan.Create, plan.Read:
		p.before = cty.NilVal
	case plan.Delete:
		p.after = cty.NilVal
	case plan.NoOp, plan.Forget:
		p.after, p.afterS = p.before, p.beforeS
		if c.Op == plan.NoOp && p.after == cty.NilVal {
			p.before = present(c.After)
			p.after = p.before
		}
	}
	var s *schema.Resource
	if v.schemas != nil {
		s = v.schemas.Resource(c.Provider.Provider, c.Addr.Resource.Mode, c.Addr.Resource.Type)
	}
	return v.resource(p, s, only)
}

// resource compares values by the schema, or without a schema by their own types.
func (v *planView) resource(p pair, s *schema.Resource, only *value.PathSet) *node {
	var n *node
	if s != nil {
		n = v.d.block(p, s.Block)
	} else {
		n = &node{kind: blockBody, op: p.start(), showNull: true, empty: true}
		for _, name := range unionNames(elements(p.before), elements(p.after)) {
			k := p
			k.before, k.after = present(part(p.before, name)), present(part(p.after, name))
			k.beforeS, k.afterS, k.replace = p.beforeS.Attr(name), p.afterS.Attr(name), p.replace.Attr(name)
			if k.before != cty.NilVal || k.after != cty.NilVal {
				n.add(name, v.d.typed(k, cty.DynamicPseudoType))
			}
		}
	}
	if only != nil && !only.Marked() {
		n.keep(only)
	}
	return n
}

func part(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return v.GetAttr(name)
}

// keep marks every argument and block as unchanged that only does not contain. Write-only
// arguments do not count as changes.
func (n *node) keep(only *value.PathSet) {
	changed := false
	for i, k := range n.children {
		if k.node.kind == writeOnly {
			continue
		}
		if only.Attr(k.name) == nil {
			n.children[i].node = k.node.unchanged()
		}
		changed = changed || n.children[i].node.op != same
	}
	for _, g := range n.groups {
		for i, k := range g.children {
			if only.Attr(g.name) == nil {
				c := *k.node
				c.op = same
				g.children[i].node = &c
			}
			changed = changed || g.children[i].node.op != same
		}
	}
	if !changed {
		n.op = same
	}
}

// unchanged returns a copy of the node in which the value does not change.
func (n *node) unchanged() *node {
	c := *n
	c.op = same
	if c.after = c.before; c.after == cty.NilVal {
		c.after = n.after
	}
	return &c
}

// outputs returns the changed outputs, sorted by name.
func (v *planView) outputs() []child {
	var out []child
	for _, o := range v.plan.Outputs {
		p := pair{before: present(o.Before), after: present(o.After)}
		if o.Op == plan.NoOp || p.before == cty.NilVal && p.after == cty.NilVal {
			continue
		}
		p.beforeS, p.afterS = value.Whole(o.BeforeSensitive), value.Whole(o.AfterSensitive)
		if n := v.d.typed(p, cty.DynamicPseudoType); n.op != same {
			out = append(out, child{o.Name, n})
		}
	}
	slices.SortFunc(out, func(a, b child) int { return strings.Compare(a.name, b.name) })
	return out
}

func (v *planView) outputLines(outputs []child) {
	width := 0
	for _, o := range v.plan.Outputs { // unchanged outputs affect the alignment too
		if !o.Left {
			width = max(width, len(o.Name))
		}
	}
	for _, o := range outputs {
		v.child(o.node, o.name, width, -1, flags{})
		v.str("\n")
	}
}

// nothing writes the text of a plan without changes, or of a plan that failed.
func (v *planView) nothing(drift bool) {
	say := func(head, text string) {
		v.str("\n")
		if v.color {
			v.sentences(0, bold, green, "No changes.", reset, bold, " ", head, reset, "\n\n", text, "\n")
			return
		}
		v.sentences(0, "No changes. ", head, "\n\n", text, "\n")
	}
	if v.plan.Refused {
		return // planning ended before it read anything
	}
	if v.plan.Errored {
		v.sentences(0, "\nPlanning failed. ", v.names.Product(), " encountered an error while generating this plan.\n")
		return
	}
	if drift && v.plan.Mode != plan.RefreshOnly {
		v.rule()
	}
	switch {
	case v.plan.Mode == plan.RefreshOnly && drift: // the drift is the whole result
	case v.plan.Mode == plan.RefreshOnly:
		say(Unchanged(v.plan.Mode),
			v.names.Product()+" has checked that the real remote objects still match the result of\nyour most recent changes, and found no differences.")
	case v.plan.Mode == plan.Destroy:
		say(Unchanged(v.plan.Mode),
			"Either you have not created any objects yet or the existing objects were\nalready deleted outside of "+v.names.Product()+".")
	case drift:
		say(Unchanged(v.plan.Mode),
			"Your configuration already applies the changes detected above. If you'd like\nto update the "+v.names.Product()+" state to match, create and apply a refresh-only plan:\n  "+v.names.Program()+" apply -refresh-only")
	default:
		say(Unchanged(v.plan.Mode),
			v.names.Product()+" has compared your real infrastructure against your configuration and\nfound no differences, so no changes are needed.")
	}
}
