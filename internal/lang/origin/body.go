package origin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// blocks follows paths into blocks, up to an argument.
type blocks struct{ *account }

func (a *account) blocks() blocks { return blocks{a} }

// argument continues at an argument of a resource. path begins with the name of the argument.
func (r *replay) argument(res *eval.Resource, k addr.Key, path []step) cursor {
	what := res.Addr().String() + k.String()
	f := r.in.resourceFrame(res, k)
	r.nobody(res, f)
	if v := r.in.e.known(r.in.t, r.in.instance(res, k)); v != cty.NilVal { // the state may mark the value as sensitive
		r.weigh(evidence{value: v, path: path})
	}
	cfg := res.Config()
	if own := (ownBlock{blockType(cfg.Addr.Mode), cfg.At, cfg.Merged, what}); own.defines(res.Mod, path[0].name()) {
		return own.begin(f, path, r.in.running(res, k))(r)
	}
	return r.blocks().inBody(f, cfg.Body, path, what, func() cursor { return r.blocks().provided(res, k, path, what) })
}

// nobody adds a step if a repeated resource has no instances, which explains why its arguments have
// no values.
func (r *account) nobody(res *eval.Resource, f *frame) {
	if in, ok := res.Instances(r.in.t); f.repeat != nil && ok && !in.Unknown && len(in.All) == 0 {
		c := cursor{f: moduleFrame(res.Mod), x: f.repeat.Expr}
		r.add(&Step{Kind: Repetition, Text: res.Addr().String() + " has no instances", At: r.lines.place(f.repeat.Range, r.hidden(c)), Replaces: r.replaced(c.f, f.repeat, nil)})
	}
}

// running returns the frame of the connection and provisioner blocks of an instance.
func (r *reader) running(res *eval.Resource, k addr.Key) *frame {
	f := r.resourceFrame(res, k)
	f.self, f.guard = res, guard{byName: true}
	if d := r.instance(res, k); d != nil {
		f.scope = d.Scope(r.self(res, k))
	}
	return f
}

// self returns the value of an instance in the state. It is unknown if the state does not contain the
// instance.
func (r *reader) self(res *eval.Resource, k addr.Key) cty.Value {
	if v := r.e.known(r.t, r.instance(res, k)); v != cty.NilVal {
		return v
	}
	return cty.DynamicVal
}

// provided ends the replay at an attribute that the configuration does not set. The provider decides
// its value, which may be in the state.
func (r blocks) provided(res *eval.Resource, k addr.Key, path []step, what string) cursor {
	text := what + pathText(path) + " is not set in configuration: the provider decides"
	if v := r.in.e.known(r.in.t, r.in.instance(res, k)); v != cty.NilVal {
		if p, has := part(v, path); has {
			r.weigh(evidence{value: v, path: path})
			if r.value == cty.NilVal {
				r.out.FromState = true
			}
			r.learn(p)
			text = what + pathText(path) + " was decided by the provider; the value is that in state"
		}
	}
	r.add(&Step{Kind: Provider, Text: text, At: r.lines.header(res.Config().At)})
	return cursor{}
}

func blockType(m addr.Mode) string {
	switch m {
	case addr.Data:
		return "data"
	case addr.Ephemeral:
		return "ephemeral"
	}
	return "resource"
}

// ownBlock is a block with arguments or nested blocks that the language itself defines.
type ownBlock struct {
	typ    string
	at     source.Range
	merged []config.Overridden
	what   string // address of the block
}

// defines reports whether the language defines a name in the block, and the block contains it.
func (b ownBlock) defines(m *eval.Module, name string) bool {
	if !config.Defines(b.typ, name) {
		return false
	}
	o := m.Node.Config.Origin(b.at, b.merged)
	return o.Setting(name) != nil || slices.ContainsFunc(o.Blocks(), func(n config.NestedOrigin) bool { return n.Type == name })
}

// begin continues at an argument or nested block that the language defines. run is the frame of
// provisioners and connections; nil means f.
func (b ownBlock) begin(f *frame, path []step, run *frame) begin {
	if run == nil {
		run = f
	}
	return func(r *replay) cursor {
		next, _ := r.blocks().own(f.mod.Node.Config.Origin(b.at, b.merged), f, path, b.what, run)
		return next
	}
}

// own continues at a meta-argument, or at a nested block that the language defines, such as lifecycle.
// Expressions in provisioner and connection blocks are evaluated in run. ok is false if the path begins
// with another name.
func (r blocks) own(o config.Origin, f *frame, path []step, what string, run *frame) (next cursor, ok bool) {
	name, rest := path[0].name(), path[1:]
	if s := o.Setting(name); s != nil {
		next := r.define(Argument, what+pathText(path[:1]), s, cursor{f, s.Expr, rest})
		if static(name) { // the argument contains references, and has no value
			r.out.Whole, r.value = true, cty.NilVal
			return cursor{}, true
		}
		return next, true
	}
	blocks := slices.DeleteFunc(o.Blocks(), func(b config.NestedOrigin) bool { return b.Type != name })
	if len(blocks) == 0 {
		return cursor{}, false
	}
	text := what + pathText(path[:1])
	if len(rest) == 0 && (len(blocks) > 1 || len(blocks[0].Labels) > 0) {
		r.out.Whole = true
		for _, b := range blocks {
			r.block(Block, strings.Join(append([]string{text}, b.Labels...), " "), b.Parts(), b.Replaced)
		}
		return cursor{}, true
	}
	i := 0
	if len(rest) > 0 && rest[0].brackets {
		if i, ok = rest[0].index(); !ok || i >= len(blocks) {
			r.add(&Step{Kind: NotSet, Text: "there is no block " + text + pathText(rest[:1]), At: r.lines.header(blocks[0].Parts()[0].At)})
			return cursor{}, true
		}
		text, rest = text+pathText(rest[:1]), rest[1:]
	}
	b := blocks[i]
	if len(rest) == 0 {
		r.wholeOf(whole{text: text, origin: b.Origin, gone: b.Replaced, f: run, body: b.Body()})
		return cursor{}, true
	}
	if next, ok := r.own(b.Origin, f, rest, text, run); ok {
		return next, true
	}
	if body := b.Body(); body != nil {
		return r.inBody(run, body, rest, text, nil), true
	}
	r.add(&Step{Kind: NotSet, Text: text + pathText(rest) + " is not set", At: r.lines.header(b.Parts()[0].At)})
	return cursor{}, true
}

// static reports whether a meta-argument contains references or keywords instead of a value.
func static(name string) bool {
	switch name {
	case "depends_on", "ignore_changes", "replace_triggered_by", "provider", "providers", "when", "on_failure":
		return true
	}
	return false
}

// inBody continues at an argument or nested block of a body. what is the address of the block. missing
// is called if the body contains neither; nil adds a step that the name is not set.
func (r blocks) inBody(f *frame, body hcl.Body, path []step, what string, missing func() cursor) cursor {
	name := path[0].name()
	if s := f.mod.Node.Config.Setting(body, name); s != nil {
		r.guarded(f, s, path)
		next := r.defineIn(Argument, what+pathText(path[:1]), s, cursor{f, s.Expr, path[1:]}, &guarded{f.guard, path[:1]})
		if s.Replaced == nil { // it may have replaced blocks
			r.last().Replaces = r.places(f.mod.Node.Config.Replaced(body, name))
		}
		return next
	}
	blocks := nestedBlocks(body, name)
	if len(blocks) > 0 {
		before := len(r.out.Steps)
		next := r.nested(f, blocks, path, what)
		r.overridden(r.places(f.mod.Node.Config.Replaced(body, name)), before, blocks[0], "the blocks "+what+"."+name)
		return next
	}
	if missing != nil {
		return missing()
	}
	at := r.lines.place(body.MissingItemRange(), nil)
	r.add(&Step{Kind: NotSet, Text: what + pathText(path) + " is not set", At: at})
	return cursor{}
}

// guarded decides whether an argument is secret. It must be called before a step shows its text.
func (r *account) guarded(f *frame, s *config.Setting, path []step) {
	if r.secret {
		return
	}
	e := evidence{guard: f.guard.loaded(), argument: path}
	if e.guard.byName {
		v, _ := r.in.eval(f, s.Expr)
		e.content, _ = part(v, path[1:])
		e.expr = s.Expr
	}
	r.weigh(e)
	r.follows(e.guard)
}

// overridden adds the blocks that an override file replaced to the step about a nested block. n is the
// number of steps before that step.
func (r *account) overridden(gone []SourceLine, n int, first *hcl.Block, text string) {
	if len(gone) == 0 {
		return
	}
	if len(r.out.Steps) == n || r.out.Steps[n].Kind != Block && r.out.Steps[n].Kind != Dynamic {
		s := &Step{Kind: Block, Text: text, At: r.lines.header(first.DefRange)}
		r.out.Steps = slices.Insert(r.out.Steps, n, s)
	}
	r.out.Steps[n].Replaces = append(r.out.Steps[n].Replaces, gone...)
}

// nestedBlocks returns the blocks of a type, including dynamic blocks, in source order.
func nestedBlocks(body hcl.Body, name string) hcl.Blocks {
	for _, labels := range [][]string{nil, {"key"}} {
		content, _, diags := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: name, LabelNames: labels}, {Type: "dynamic", LabelNames: []string{"type"}}}})
		var out hcl.Blocks
		for _, b := range content.Blocks {
			if b.Type == name || len(b.Labels) == 1 && b.Labels[0] == name {
				out = append(out, b)
			}
		}
		if len(out) > 0 && !diags.HasErrors() {
			return out
		}
	}
	return nil
}

// nested continues in the nested block that a path selects.
func (r blocks) nested(f *frame, blocks hcl.Blocks, path []step, what string) cursor {
	name, rest := path[0].name(), path[1:]
	if len(rest) == 0 {
		r.out.Whole = true
		for _, b := range blocks {
			r.add(&Step{Kind: blockKind(b), Text: what + "." + name, At: r.lines.header(b.DefRange)})
		}
		return cursor{}
	}
	if rest[0].key.Type() == cty.String {
		if blocks[0].Type != "dynamic" && len(blocks[0].Labels) == 1 {
			return r.labeled(f, blocks, path, what)
		}
		if _, isIndex := rest[0].index(); !isIndex { // without an index, the path selects the only block of its type
			rest = join([]step{indexStep(0)}, rest)
		}
	}
	n, ok := rest[0].index()
	if !ok {
		return r.noBlock(blocks, path, what)
	}
	text := what + pathText(join(path[:1], rest[:1]))
	for _, b := range blocks {
		if b.Type != "dynamic" {
			if n == 0 {
				return r.enter(f, b, rest[1:], text)
			}
			n--
			continue
		}
		count, known := r.in.turns(f, b)
		if !known {
			return r.end(Unknown, cursor{f, forEachOf(b), nil}, "the number of blocks that this makes is not known from configuration")
		}
		if n < count {
			return r.turn(f, b, n, rest[1:], text)
		}
		n -= count
	}
	return r.noBlock(blocks, path, what)
}

func (r blocks) labeled(f *frame, blocks hcl.Blocks, path []step, what string) cursor {
	for _, b := range blocks {
		if b.Type != "dynamic" && b.Labels[0] == path[1].name() {
			return r.enter(f, b, path[2:], what+pathText(path[:2]))
		}
	}
	return r.noBlock(blocks, path, what)
}

func (r blocks) noBlock(blocks hcl.Blocks, path []step, what string) cursor {
	r.add(&Step{Kind: NotSet, Text: "there is no block " + what + pathText(path[:min(2, len(path))]), At: r.lines.header(blocks[0].DefRange)})
	return cursor{}
}

func blockKind(b *hcl.Block) Kind {
	if b.Type == "dynamic" {
		return Dynamic
	}
	return Block
}

// enter continues at a path inside a block.
func (r blocks) enter(f *frame, b *hcl.Block, path []step, text string) cursor {
	inner := *f
	inner.guard = f.guard.into(b.Type)
	if len(path) == 0 {
		r.wholeOf(whole{text: text, at: b.DefRange, f: &inner, body: b.Body})
		return cursor{}
	}
	return r.inBody(&inner, b.Body, path, text, nil)
}

// turns returns the number of blocks that a dynamic block creates, and whether that number is known.
func (r *reader) turns(f *frame, b *hcl.Block) (int, bool) {
	x := forEachOf(b)
	if x == nil {
		return 0, false
	}
	v, ds := r.eval(f, x)
	v, _ = v.Unmark()
	if ds.HasErrors() || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 0, false
	}
	return v.LengthInt(), true
}

var dynamicSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "for_each"}, {Name: "iterator"}, {Name: "labels"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "content"}},
}

func forEachOf(b *hcl.Block) hcl.Expression {
	content, _, _ := b.Body.PartialContent(dynamicSchema)
	if a := content.Attributes["for_each"]; a != nil {
		return a.Expr
	}
	return nil
}

// turn continues in block n that a dynamic block creates, from 0.
func (r blocks) turn(f *frame, b *hcl.Block, n int, path []step, text string) cursor {
	content, _, _ := b.Body.PartialContent(dynamicSchema)
	x := content.Attributes["for_each"].Expr
	it := &iteration{name: b.Labels[0], forEach: x, at: f, n: n}
	if a := content.Attributes["iterator"]; a != nil {
		it.name = hcl.ExprAsKeyword(a.Expr)
	}
	coll, _ := r.in.eval(f, x)
	bare, marks := coll.Unmark()
	value := cty.DynamicVal
	i := 0
	for el := bare.ElementIterator(); el.Next(); i++ {
		if i == n {
			k, v := el.Element()
			if bare.Type().IsSetType() {
				k = v
			} else {
				it.key = unmark(k)
			}
			value = cty.ObjectVal(map[string]cty.Value{"key": k.WithMarks(marks), "value": v.WithMarks(marks)})
		}
	}
	inner := f.inside(it, map[string]cty.Value{it.name: value})
	inner.guard = f.guard.into(b.Labels[0])
	r.add(&Step{Kind: Dynamic, Text: fmt.Sprintf("%s is block %d that this dynamic block makes", text, n), At: r.lines.header(b.DefRange)})
	switch {
	case len(content.Blocks) == 0:
		return cursor{}
	case len(path) == 0:
		r.wholeOf(whole{text: text, at: content.Blocks[0].DefRange, f: inner, body: content.Blocks[0].Body})
		return cursor{}
	}
	return r.inBody(inner, content.Blocks[0].Body, path, text, nil)
}
