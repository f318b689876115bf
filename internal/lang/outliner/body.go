package outliner

import (
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// maxNested is the number of nested maps and objects whose elements are separate parts.
const maxNested = 4

// body returns the parts of a body: its arguments, and those of its nested blocks. path is the
// path of the body. Without a schema, nested blocks are lists, and arguments have the types of
// their expressions.
func (p *printer) body(f *frame, cfg *config.Module, body hcl.Body, s *schema.Block, path string) []outline.Part {
	return p.bodyOf(f, cfg, body, s, path, nil)
}

// bodyOf is body for arguments whose values are known: all contains them by name, with the types of the schema.
// nil means that they are not known.
func (p *printer) bodyOf(f *frame, cfg *config.Module, body hcl.Body, s *schema.Block, path string, all map[string]cty.Value) (out []outline.Part) {
	in := p.o.Shared.body(cfg, body)
	for _, name := range in.names {
		var want *schema.Attribute
		if s != nil {
			want = s.Attributes[name]
		}
		if v, ok := all[name]; ok && want != nil && want.Type != cty.NilType {
			out = p.valued(out, f, in.attrs[name].Expr, v, want, path+"."+name)
			continue
		}
		out = p.argument(out, f, in.attrs[name].Expr, want, path+"."+name)
	}
	for i, typ := range in.types {
		var nested *schema.NestedBlock
		if s != nil {
			nested = s.Blocks[typ]
		}
		out = append(out, p.blocks(f, cfg, in.blocks[i], nested, path+"."+typ)...)
	}
	return out
}

// argument appends the parts of an argument. An argument that is null counts as not set.
func (p *printer) argument(out []outline.Part, f *frame, x hcl.Expression, want *schema.Attribute, path string) []outline.Part {
	v, ds := p.eval(f, x)
	if ds.HasErrors() {
		p.because(failure(ds))
		return append(out, outline.Part{Path: path, Print: p.expr(f, x, nil), Unknown: true, At: x.Range()})
	}
	if want != nil && want.Type != cty.NilType && !isNull(v) {
		if c, err := value.Convert(v, want.Type); err == nil {
			v = c
		}
	}
	return p.valued(out, f, x, v, want, path)
}

// valued appends the parts of an argument with a value. want may be nil.
func (p *printer) valued(out []outline.Part, f *frame, x hcl.Expression, v cty.Value, want *schema.Attribute, path string) []outline.Part {
	if isNull(v) {
		return out
	}
	if want != nil && want.Sensitive {
		v = v.Mark(value.Sensitive) // its keys are secret, too
	}
	return marked(p.split(out, f, x, v, nil, path), len(out), v)
}

// marked sets Marked of the parts from an index on if their value contains a secret.
func marked(out []outline.Part, from int, v cty.Value) []outline.Part {
	if value.ContainsSecret(v) {
		for i := from; i < len(out); i++ {
			out[i].Marked = true
		}
	}
	return out
}

// failure returns the reason for which an expression has no value.
func failure(ds diag.List) string {
	for _, m := range ds.Errors() {
		if m.Summary != "" {
			return "the expression cannot be evaluated: " + m.Summary
		}
	}
	return "a value that the expression refers to cannot be evaluated"
}

// split appends the parts of a value: the elements of maps and objects are separate parts. A value that is
// sensitive as a whole is one part, since its keys are secret too.
func (p *printer) split(out []outline.Part, f *frame, x hcl.Expression, v cty.Value, keys []step, path string) []outline.Part {
	bare, _ := v.Unmark()
	ty := bare.Type()
	var inside []outline.Part
	if bare.IsKnown() && !bare.IsNull() && (ty.IsMapType() || ty.IsObjectType()) && bare.LengthInt() > 0 && len(keys) < maxNested {
		secret := value.Secret(v)
		if secret {
			out, inside = nil, out
		}
		out = slices.Grow(out, bare.LengthInt())
		for it := bare.ElementIterator(); it.Next(); {
			k, el := it.Element()
			k, _ = k.Unmark()
			out = p.split(out, f, x, el, append(keys[:len(keys):len(keys)], k), path+keyPath(k.AsString()))
		}
		if !secret {
			return out
		}
		out, inside = inside, out
	}
	if v.IsWhollyKnown() {
		return append(out, outline.Part{Path: path, Print: p.value(v), Elements: elements(v, p.o.Rename), Inside: inside, At: x.Range()})
	}
	print := p.definition(f, x, keys) // and not expr, which would compute v again
	return append(out, outline.Part{Path: path, Print: print, Unknown: !p.exact, Elements: elements(v, p.o.Rename), Inside: inside, At: x.Range()})
}

func keyPath(name string) string {
	if value.IsIdentifier(name) {
		return "." + name
	}
	return "[" + value.Quote(name) + "]"
}

// nestedBlocks returns the blocks of a type, including dynamic blocks, in source order.
func nestedBlocks(body hcl.Body, name string) hcl.Blocks {
	for _, labels := range [][]string{nil, {"key"}} {
		content, _, diags := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: name, LabelNames: labels}, {Type: "dynamic", LabelNames: []string{"type"}}}})
		out := slices.DeleteFunc(slices.Clone(content.Blocks), func(b *hcl.Block) bool {
			return b.Type != name && (len(b.Labels) != 1 || b.Labels[0] != name)
		})
		if len(out) > 0 && !diags.HasErrors() {
			return out
		}
	}
	return nil
}

// blocks returns the parts of all nested blocks of one type.
func (p *printer) blocks(f *frame, cfg *config.Module, all hcl.Blocks, s *schema.NestedBlock, path string) (out []outline.Part) {
	var inner *schema.Block
	if s != nil {
		inner = s.Block
	}
	n := 0
	var members [][]outline.Part
	one := func(f *frame, body hcl.Body, at string, r source.Range) {
		parts := p.body(f, cfg, body, inner, at)
		parts = append(parts, outline.Part{Path: at, Print: newDigest("block").sum(), At: r, Block: true})
		members = append(members, parts)
		n++
	}
	for _, b := range all {
		switch {
		case b.Type == "dynamic" && len(b.Labels) == 1:
			out = append(out, p.dynamic(f, b, path, &n, one)...)
		case len(b.Labels) == 1:
			one(f, b.Body, path+"["+value.Quote(b.Labels[0])+"]", b.DefRange)
		default:
			one(f, b.Body, path+"["+strconv.Itoa(n)+"]", b.DefRange)
		}
	}
	if s == nil || s.Nesting != schema.Set || len(members) < 2 {
		return append(out, slices.Concat(members...)...)
	}
	return append(out, setOf(members, path))
}

// setOf returns one part for a set of blocks, whose order does not count.
func setOf(members [][]outline.Part, path string) outline.Part {
	set := outline.Part{Path: path}
	prints := make([]outline.Print, len(members))
	for i, parts := range members {
		at := parts[len(parts)-1]
		d := newDigest("member")
		d.parts(parts, len(at.Path))
		for _, b := range parts {
			set.Unknown = set.Unknown || b.Unknown
		}
		prints[i] = d.sum()
		if i == 0 {
			set.At = at.At
		}
	}
	slices.SortFunc(prints, func(a, b outline.Print) int { return slices.Compare(a[:], b[:]) })
	d := newDigest("set")
	for _, x := range prints {
		d.print(x)
	}
	set.Print = d.sum()
	return set
}

// dynamic calls one for each block that a dynamic block creates. If their number is unknown, it
// returns one part that represents all.
func (p *printer) dynamic(f *frame, b *hcl.Block, path string, n *int, one func(*frame, hcl.Body, string, source.Range)) []outline.Part {
	args := p.o.Shared.body(f.mod.Node.Config, b.Body) // validation reports errors
	each, body := args.attrs["for_each"], args.block("content")
	if each == nil || body == nil {
		return nil
	}
	name := b.Labels[0]
	if it := args.attrs["iterator"]; it != nil {
		name = hcl.ExprAsKeyword(it.Expr)
	}
	inside := func(key, value, known cty.Value) *frame {
		in := *f
		in.loops = append(f.loops[:len(f.loops):len(f.loops)], &loop{name: name, forEach: each.Expr, in: f, key: known})
		if f.scope != nil {
			in.scope = loopScope{f.scope, name, cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		}
		return &in
	}
	coll, ds := p.eval(f, each.Expr)
	coll, marks := coll.Unmark()
	if ds.HasErrors() || !coll.IsKnown() || coll.IsNull() || !coll.CanIterateElements() {
		if isNull(coll) {
			return nil
		}
		some := inside(cty.DynamicVal, cty.DynamicVal, cty.NilVal)
		d := newDigest("dynamic").print(p.expr(f, each.Expr, nil))
		d.parts(p.body(some, f.mod.Node.Config, body.Body, nil, ""), 0)
		return []outline.Part{{Path: path, Print: d.sum(), Unknown: true, At: each.Expr.Range()}}
	}
	for it := coll.ElementIterator(); it.Next(); {
		k, v := it.Element()
		known, _ := k.Unmark()
		if coll.Type().IsSetType() {
			k, known = v, cty.NilVal
		}
		one(inside(k.WithMarks(marks), v.WithMarks(marks), known), body.Body, path+"["+strconv.Itoa(*n)+"]", body.DefRange)
	}
	return nil
}

// loopScope adds the iterator of a dynamic block to a scope.
type loopScope struct {
	lang.Scope
	name  string
	value cty.Value
}

// Resolve implements lang.Scope.
func (s loopScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if ref.RootName() == s.name {
		return s.value, 1, nil
	}
	return s.Scope.Resolve(t, ref, at)
}

func convertString(v cty.Value) (string, error) {
	s, err := value.Convert(v, cty.String)
	if err != nil {
		return "", err
	}
	return s.AsString(), nil
}
