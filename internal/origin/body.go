package origin

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// argument goes on at an argument of a resource, by its name and the path inside.
func (r *replay) argument(res *eval.Resource, k addr.Key, path []step) cursor {
	what := res.Addr().String() + k.String()
	f := r.resourceFrame(res, k)
	if r.e.Known != nil { // what state says is sensitive
		if v := r.e.Known(res.Addr().Instance(k)); v != cty.NilVal {
			r.secret = r.secret || secretAt(v, path)
		}
	}
	if s := resourceSetting(res.Config(), path); s != nil {
		return r.define(Argument, what+pathText(path[:len(path)-len(s.rest)]), s.Setting, cursor{f, s.Expr, s.rest})
	}
	if b := resourceBody(res.Config(), path); b != nil {
		f.self = res
		if d := r.instance(res, k); d != nil {
			f.scope = d.Scope(r.self(res, k))
		}
		return r.inBody(f, b.Body, b.rest, what+pathText(path[:len(path)-len(b.rest)]), nil)
	}
	return r.inBody(f, res.Config().Body, path, what, func() cursor { return r.provided(res, k, path, what) })
}

// self is the value of an instance as far as state has it.
func (r *replay) self(res *eval.Resource, k addr.Key) cty.Value {
	if r.e.Known != nil {
		if v := r.e.Known(res.Addr().Instance(k)); v != cty.NilVal {
			return v
		}
	}
	return cty.DynamicVal
}

// provided ends at what configuration does not set: the provider decides.
func (r *replay) provided(res *eval.Resource, k addr.Key, path []step, what string) cursor {
	text := what + pathText(path) + " is not set in configuration: the provider decides"
	if r.e.Known != nil {
		if v := r.e.Known(res.Addr().Instance(k)); v != cty.NilVal {
			if p, has := part(v, path); has {
				r.secret = r.secret || secretAt(v, path)
				if r.value == cty.NilVal {
					r.out.FromState = true
				}
				r.learn(p)
				text = what + pathText(path) + " was decided by the provider; the value is that in state"
			}
		}
	}
	r.add(&Step{Kind: Provider, Text: text, At: r.place(res.Config().At, nil)})
	return cursor{}
}

// found is a setting or block with what is left of the path.
type found struct {
	*config.Setting
	*config.Block
	rest []step
}

// resourceSetting finds meta-arguments.
func resourceSetting(cfg *config.Resource, path []step) *found {
	pick := func(s *config.Setting, rest []step) *found {
		if s == nil {
			return nil
		}
		return &found{Setting: s, rest: rest}
	}
	switch path[0].name() {
	case "count":
		return pick(cfg.Repeat.Count, path[1:])
	case "for_each":
		return pick(cfg.Repeat.ForEach, path[1:])
	case "lifecycle":
		if len(path) > 1 {
			return pick(cfg.Lifecycle.Settings[path[1].name()], path[2:])
		}
	}
	return nil
}

// resourceBody finds connection and provisioner blocks.
func resourceBody(cfg *config.Resource, path []step) *found {
	switch path[0].name() {
	case "connection":
		if cfg.Connection != nil && len(path) > 1 {
			return &found{Block: cfg.Connection, rest: path[1:]}
		}
	case "provisioner":
		if len(path) < 3 {
			return nil
		}
		if i, ok := path[1].index(); ok && i < len(cfg.Provisioners) {
			p := cfg.Provisioners[i]
			return &found{Block: &config.Block{Body: p.Body, At: p.At}, rest: path[2:]}
		}
	}
	return nil
}

// inBody goes on at an argument or nested block of a body. missing, if not nil,
// answers when there is neither; what is the block's address.
func (r *replay) inBody(f *frame, body hcl.Body, path []step, what string, missing func() cursor) cursor {
	name := path[0].name()
	if s := f.mod.Node.Config.Setting(body, name); s != nil {
		next := r.define(Argument, what+pathText(path[:1]), s, cursor{f, s.Expr, path[1:]})
		if s.Under == nil { // it may have taken the place of blocks
			r.last().Replaces = r.gone(f.mod.Node.Config, body, name)
		}
		return next
	}
	blocks := nestedBlocks(body, name)
	if len(blocks) > 0 {
		before := len(r.out.Steps)
		next := r.nested(f, blocks, path, what)
		r.overridden(f.mod.Node.Config, body, name, before, blocks[0], what)
		return next
	}
	if missing != nil {
		return missing()
	}
	at := r.place(body.MissingItemRange(), nil)
	r.add(&Step{Kind: NotSet, Text: what + pathText(path) + " is not set", At: at})
	return cursor{}
}

// overridden adds to the step about a nested block which blocks an override took
// away for it; n is how many steps there were before.
func (r *replay) overridden(m *config.Module, body hcl.Body, name string, n int, first *hcl.Block, what string) {
	gone := r.gone(m, body, name)
	if len(gone) == 0 {
		return
	}
	if len(r.out.Steps) == n || r.out.Steps[n].Kind != Block && r.out.Steps[n].Kind != Dynamic {
		s := &Step{Kind: Block, Text: "the blocks " + what + "." + name, At: r.place(first.DefRange, nil)}
		r.out.Steps = slices.Insert(r.out.Steps, n, s)
	}
	r.out.Steps[n].Replaces = append(r.out.Steps[n].Replaces, gone...)
}

// gone lists what overrides took away of a name.
func (r *replay) gone(m *config.Module, body hcl.Body, name string) (out []Place) {
	for _, g := range m.Replaced(body, name) {
		var hide []source.Range
		if r.secret {
			hide = []source.Range{g.At} // it may be an argument
		}
		p := r.place(g.At, hide)
		p.Layer = g.Layer.String()
		out = append(out, *p)
	}
	return out
}

// nestedBlocks lists the blocks of a type, dynamic ones too, in their order.
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

// nested picks the block that a path means and goes on inside it.
func (r *replay) nested(f *frame, blocks hcl.Blocks, path []step, what string) cursor {
	name, rest := path[0].name(), path[1:]
	if len(rest) == 0 {
		r.out.Whole = true
		for _, b := range blocks {
			r.add(&Step{Kind: blockKind(b), Text: what + "." + name, At: r.place(b.DefRange, nil)})
		}
		return cursor{}
	}
	if rest[0].key.Type() == cty.String {
		if blocks[0].Type != "dynamic" && len(blocks[0].Labels) == 1 {
			return r.labeled(f, blocks, path, what)
		}
		if _, isIndex := rest[0].index(); !isIndex { // the one block of its type
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
		count, known := r.turns(f, b)
		if !known {
			return r.end(Undecided, cursor{f, forEachOf(b), nil}, "the number of blocks that this makes is not known from configuration")
		}
		if n < count {
			return r.turn(f, b, n, rest[1:], text)
		}
		n -= count
	}
	return r.noBlock(blocks, path, what)
}

func (r *replay) labeled(f *frame, blocks hcl.Blocks, path []step, what string) cursor {
	for _, b := range blocks {
		if b.Type != "dynamic" && b.Labels[0] == path[1].name() {
			return r.enter(f, b, path[2:], what+pathText(path[:2]))
		}
	}
	return r.noBlock(blocks, path, what)
}

func (r *replay) noBlock(blocks hcl.Blocks, path []step, what string) cursor {
	r.add(&Step{Kind: NotSet, Text: "there is no block " + what + pathText(path[:min(2, len(path))]), At: r.place(blocks[0].DefRange, nil)})
	return cursor{}
}

func blockKind(b *hcl.Block) Kind {
	if b.Type == "dynamic" {
		return Dynamic
	}
	return Block
}

// enter goes on inside a block.
func (r *replay) enter(f *frame, b *hcl.Block, path []step, text string) cursor {
	if len(path) == 0 {
		r.whole(text, b.DefRange, f, b.Body, nil)
		return cursor{}
	}
	return r.inBody(f, b.Body, path, text, nil)
}

// turns is how many blocks a dynamic block makes.
func (r *replay) turns(f *frame, b *hcl.Block) (int, bool) {
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

// turn goes on inside the nth block that a dynamic block makes.
func (r *replay) turn(f *frame, b *hcl.Block, n int, path []step, text string) cursor {
	content, _, _ := b.Body.PartialContent(dynamicSchema)
	x := content.Attributes["for_each"].Expr
	it := &iteration{name: b.Labels[0], forEach: x, at: f, n: n, under: f.iter}
	if a := content.Attributes["iterator"]; a != nil {
		it.name = hcl.ExprAsKeyword(a.Expr)
	}
	coll, _ := r.eval(f, x)
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
	inner := *f
	inner.iter, inner.scope = it, iterScope{f.scope, it.name, value}
	r.add(&Step{Kind: Dynamic, Text: fmt.Sprintf("%s is block %d that this dynamic block makes", text, n), At: r.place(b.DefRange, nil)})
	switch {
	case len(content.Blocks) == 0:
		return cursor{}
	case len(path) == 0:
		r.whole(text, content.Blocks[0].DefRange, &inner, content.Blocks[0].Body, nil)
		return cursor{}
	}
	return r.inBody(&inner, content.Blocks[0].Body, path, text, nil)
}

// whole tells of a block as a whole: where it stands and what its arguments are.
// secret tells of an argument that it must not be shown whatever its value is.
func (r *replay) whole(text string, at source.Range, f *frame, body hcl.Body, secret func(name string) bool) {
	r.out.Whole = true
	r.add(&Step{Kind: Block, Text: text, At: r.place(at, nil)})
	attrs, _ := body.JustAttributes()
	for name, a := range attrs { // sorted below
		hide := sensitiveArguments(a.Expr)
		v, _ := r.eval(f, a.Expr)
		if !isReference(a.Expr) && (secretAt(v, nil) || secret != nil && secret(name)) {
			hide = []source.Range{a.Expr.Range()}
		}
		p := r.place(a.Range, hide)
		r.out.Parts = append(r.out.Parts, Part{name, *p})
	}
	for _, name := range f.mod.Node.Config.BlockTypes(body) {
		for _, b := range nestedBlocks(body, name) {
			r.out.Parts = append(r.out.Parts, Part{name, *r.place(b.DefRange, nil)})
		}
	}
	slices.SortFunc(r.out.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
}
