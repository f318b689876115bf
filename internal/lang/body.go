package lang

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

func quote(s string) string { return addr.Quote(s) }

// A Body is a body decoded with a schema: the expression of each attribute, and the nested
// blocks. It is created once for a block of configuration and evaluated once for each instance.
// It is immutable.
type Body struct {
	schema *schema.Reading
	attrs  []bodyAttr
	blocks []bodyBlocks
	at     source.Range
}

type bodyAttr struct {
	name     string
	ty       cty.Type
	expr     *Expr
	constant cty.Value // converted value of a constant expression; otherwise cty.NilVal
	readOnly bool      // only the provider sets it
}

// decided returns an error if v sets an attribute that only the provider may set.
func (a *bodyAttr) decided(v cty.Value) diag.List {
	v, _ = v.Unmark()
	if !a.readOnly || !v.IsKnown() || v.IsNull() {
		return nil
	}
	at := a.expr.Range()
	return inAttribute(diag.Errorf(diag.CodeLangReadOnly, &at, "Invalid value for a read-only argument", "The provider alone decides what %q is, so that configuration cannot set it. Remove the argument.", a.name), a.name)
}

func readOnly(a *schema.Attribute) bool { return a != nil && a.Computed && !a.Optional && !a.Required }

// bodyBlocks are the nested blocks of one type, in source order.
type bodyBlocks struct {
	name   string
	nb     *schema.NestedBlock
	asAttr *schema.Attribute // definition of an attribute that is written as blocks; otherwise nil
	items  []bodyItem
}

type bodyItem struct {
	label   string // key of a block that is nested as a map
	body    *Body
	dynamic *dynamic // nil for a static block
	at      source.Range
}

type dynamic struct {
	forEach  *Expr
	iterator string
	labels   []*Expr
}

// CompileBody decodes a body with a schema. Unknown arguments, missing required arguments and
// wrong numbers of blocks are errors with their source range.
func CompileBody(body hcl.Body, b *schema.Block) (*Body, diag.List) {
	p := b.Reading()
	out := &Body{schema: p, at: body.MissingItemRange()}
	content, diags := Content(body, p.HCL)
	ds := diag.FromHCL(diags)
	var byType map[string][]bodyItem
	for _, block := range content.Blocks {
		name, item, more := compileBlock(block, b, p.AsBlocks)
		ds = append(ds, more...)
		if item.body != nil {
			if byType == nil {
				byType = map[string][]bodyItem{}
			}
			byType[name] = append(byType[name], item)
		}
	}
	for name, x := range content.Attributes {
		attr := bodyAttr{name: name, ty: p.Types[name], expr: Compile(x.Expr), readOnly: readOnly(b.Attributes[name])}
		if attr.expr.Constant() {
			v, more := Eval(nil, nil, attr.expr, attr.ty)
			ds = append(ds, inAttribute(more, name)...)
			attr.constant = v
		}
		out.attrs = append(out.attrs, attr)
	}
	for name, items := range byType {
		a := b.Attributes[name]
		if a == nil {
			continue
		}
		if other := content.Attributes[name]; other != nil {
			ds = append(ds, diag.Errorf(diag.CodeLangUnsupportedBlock, &items[0].at, "Unsupported block type", "Blocks of type %q are not expected here, since the argument %q is set too. Write either the argument or blocks.", name, name).Note(&other.NameRange, "the argument is set here")...)
			continue
		}
		out.blocks = append(out.blocks, bodyBlocks{name: name, nb: p.AsBlocks[name], asAttr: a, items: items})
	}
	for _, name := range p.Required {
		if content.Attributes[name] == nil && len(byType[name]) == 0 {
			ds = append(ds, missing(name, content.MissingItemRange)...)
		}
	}
	for name, nb := range b.Blocks {
		items := byType[name]
		ds = append(ds, checkCount(name, nb, items, content.MissingItemRange)...)
		if len(items) > 0 {
			out.blocks = append(out.blocks, bodyBlocks{name: name, nb: nb, items: items})
		}
	}
	slices.SortFunc(out.attrs, func(a, b bodyAttr) int { return a.expr.Range().Start.Byte - b.expr.Range().Start.Byte })
	return out, ds
}

// Content returns the content of a body. If the body supports it, the expressions are not built
// yet.
func Content(body hcl.Body, schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	if b, ok := body.(interface {
		LateContent(*hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics)
	}); ok {
		return b.LateContent(schema)
	}
	return body.Content(schema)
}

func missing(name string, at source.Range) diag.List {
	return diag.List{{
		Code: diag.CodeLangMissingArgument, Summary: "Missing required argument", At: &at,
		Detail: fmt.Sprintf("The argument %q is required, but no definition was found.", name),
	}}
}

func compileBlock(block *hcl.Block, b *schema.Block, asBlocks map[string]*schema.NestedBlock) (string, bodyItem, diag.List) {
	find := func(name string) *schema.NestedBlock {
		if nb := b.Blocks[name]; nb != nil {
			return nb
		}
		return asBlocks[name]
	}
	if block.Type != "dynamic" {
		nb := find(block.Type)
		inner, ds := CompileBody(block.Body, nb.Block)
		item := bodyItem{body: inner, at: block.DefRange}
		if len(block.Labels) > 0 {
			item.label = block.Labels[0]
		}
		return block.Type, item, ds
	}
	name := block.Labels[0]
	nb := find(name)
	if nb == nil {
		at := block.LabelRanges[0]
		return "", bodyItem{}, diag.Errorf(diag.CodeLangUnsupportedBlock, &at, "Unsupported block type", "Blocks of type %q are not expected here.", name)
	}
	content, diags := block.Body.Content(dynamicSchema)
	ds := diag.FromHCL(diags)
	if ds.HasErrors() {
		return "", bodyItem{}, ds
	}
	d := &dynamic{iterator: name, forEach: Compile(content.Attributes["for_each"].Expr)}
	if it := content.Attributes["iterator"]; it != nil {
		word := hcl.ExprAsKeyword(it.Expr)
		if word == "" {
			at := it.Expr.Range()
			return "", bodyItem{}, append(ds, diag.Errorf(diag.CodeLangDynamicBlock, &at, "Invalid dynamic block iterator", "The iterator must be a single name.")...)
		}
		d.iterator = word
	}
	if l := content.Attributes["labels"]; l != nil {
		if nb.Nesting != schema.Map {
			at := l.NameRange
			return "", bodyItem{}, append(ds, diag.Errorf(diag.CodeLangUnsupportedArgument, &at, "Unsupported argument", "Blocks of type %q have no label, so \"labels\" is not expected here.", name)...)
		}
		exprs, diags := hcl.ExprList(l.Expr)
		ds = append(ds, diag.FromHCL(diags)...)
		for _, x := range exprs {
			d.labels = append(d.labels, Compile(x))
		}
	}
	if nb.Nesting == schema.Map && len(d.labels) != 1 {
		at := block.DefRange
		return "", bodyItem{}, append(ds, diag.Errorf(diag.CodeLangDynamicBlock, &at, "Wrong number of dynamic block labels", "Blocks of type %q have one label, so \"labels\" must be a list of one element.", name)...)
	}
	if len(content.Blocks) != 1 {
		at := block.DefRange
		return "", bodyItem{}, append(ds, diag.Errorf(diag.CodeLangDynamicBlock, &at, "Missing dynamic content block", "A dynamic block must hold exactly one block of type \"content\".")...)
	}
	inner, more := CompileBody(content.Blocks[0].Body, nb.Block)
	return name, bodyItem{body: inner, dynamic: d, at: block.DefRange}, append(ds, more...)
}

var dynamicSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "for_each", Required: true}, {Name: "iterator"}, {Name: "labels"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "content"}},
}

func checkCount(name string, nb *schema.NestedBlock, items []bodyItem, at source.Range) diag.List {
	plain, dyn := 0, false
	for _, it := range items {
		if it.dynamic != nil {
			dyn = true
			continue
		}
		plain++
	}
	maxItems := nb.MaxItems
	if single(nb) {
		maxItems = 1
	}
	if maxItems > 0 && plain > maxItems {
		place := items[maxItems].at
		if maxItems == 1 {
			return diag.Errorf(diag.CodeConfigDuplicateBlock, &place, "Duplicate "+name+" block", "Only one %s block is allowed here.", name)
		}
		return diag.Errorf(diag.CodeLangBlockCount, &place, fmt.Sprintf("Too many %s blocks", name), "No more than %d %q blocks are allowed.", maxItems, name)
	}
	if plain < nb.MinItems && !dyn {
		if nb.MinItems == 1 {
			return diag.Errorf(diag.CodeLangBlockCount, &at, "Missing "+name+" block", "A block of type %q is required here.", name)
		}
		return diag.Errorf(diag.CodeLangBlockCount, &at, "Insufficient "+name+" blocks", "At least %d %q blocks are required.", nb.MinItems, name)
	}
	return nil
}

func inAttribute(ds diag.List, name string) diag.List {
	for _, m := range ds {
		if m.Code == diag.CodeLangWrongType {
			m.Summary = "Incorrect attribute value type"
			m.Detail = fmt.Sprintf("Inappropriate value for attribute %q: %s", name, m.Detail[len("Invalid expression value: "):])
		}
	}
	return ds
}

// Small reports whether all expressions of the body are compiled to steps, which need hardly
// more memory than their text.
func (b *Body) Small() bool {
	small := true
	b.Exprs(func(x *Expr) {
		x.Refs()
		small = small && x.tree == nil
	})
	return small
}

// Exprs calls f for every expression of the body.
func (b *Body) Exprs(f func(*Expr)) {
	for _, a := range b.attrs {
		f(a.expr)
	}
	for _, bb := range b.blocks {
		for _, it := range bb.items {
			if it.dynamic != nil {
				f(it.dynamic.forEach)
				for _, l := range it.dynamic.labels {
					f(l)
				}
			}
			it.body.Exprs(f)
		}
	}
}

// AttrRange returns the range of the expression of an attribute, given the first steps of a
// path. If the attribute is not set, it returns the range of the body.
func (b *Body) AttrRange(p cty.Path) source.Range {
	if len(p) > 0 {
		if step, ok := p[0].(cty.GetAttrStep); ok {
			for _, a := range b.attrs {
				if a.name == step.Name {
					return a.expr.Range()
				}
			}
			for _, bb := range b.blocks {
				if bb.name != step.Name {
					continue
				}
				rest := p[1:]
				i := 0
				if len(rest) > 0 {
					if idx, ok := rest[0].(cty.IndexStep); ok && idx.Key.IsKnown() && idx.Key.Type() == cty.Number {
						n, _ := idx.Key.AsBigFloat().Int64()
						i, rest = int(n), rest[1:]
					}
				}
				if i < len(bb.items) && bb.items[i].dynamic == nil {
					return bb.items[i].body.AttrRange(rest)
				}
				return bb.items[0].at
			}
		}
	}
	return b.at
}
