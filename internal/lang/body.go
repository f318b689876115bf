package lang

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

func quote(s string) string { return addr.Quote(s) }

// A Body is a body read with a schema: which expression gives which attribute,
// and the nested blocks. It is made once for a block of configuration and
// evaluated once for each instance. It is immutable.
type Body struct {
	schema *prepared
	attrs  []bodyAttr
	blocks []bodyBlocks
	at     source.Range
}

type bodyAttr struct {
	name     string
	ty       cty.Type
	expr     *Expr
	constant cty.Value // the converted value of a constant expression, else cty.NilVal
	at       source.Range
	readOnly bool // the provider alone sets it
}

// decided is the message about a value for what the provider alone sets, if v is one.
func (a *bodyAttr) decided(v cty.Value) diag.List {
	v, _ = v.Unmark()
	if !a.readOnly || !v.IsKnown() || v.IsNull() {
		return nil
	}
	return inAttribute(diag.Errorf(&a.at, "Invalid value for a read-only argument", "The provider alone decides what %q is, so that configuration cannot set it. Remove the argument.", a.name), a.name)
}

func readOnly(a *schema.Attribute) bool { return a != nil && a.Computed && !a.Optional && !a.Required }

// bodyBlocks is the nested blocks of one type, in source order.
type bodyBlocks struct {
	name   string
	nb     *schema.NestedBlock
	asAttr *schema.Attribute // for an attribute written as blocks: its definition
	items  []bodyItem
}

type bodyItem struct {
	label   string // of a block nested as a map
	body    *Body
	dynamic *dynamic // nil for a plain block
	at      source.Range
}

type dynamic struct {
	forEach  *Expr
	iterator string
	labels   []*Expr
}

// CompileBody reads a body with a schema. Unknown arguments, missing required
// arguments and wrong numbers of blocks are errors at their place.
func CompileBody(body hcl.Body, b *schema.Block) (*Body, diag.List) {
	p := prepare(b)
	out := &Body{schema: p, at: body.MissingItemRange()}
	content, diags := body.Content(p.hcl)
	ds := diag.FromHCL(diags)
	var byType map[string][]bodyItem
	for _, block := range content.Blocks {
		name, item, more := compileBlock(block, b, p.asBlocks)
		ds = append(ds, more...)
		if item.body != nil {
			if byType == nil {
				byType = map[string][]bodyItem{}
			}
			byType[name] = append(byType[name], item)
		}
	}
	for name, x := range content.Attributes {
		attr := bodyAttr{name: name, ty: p.types[name], expr: Compile(x.Expr), at: x.Expr.Range(), readOnly: readOnly(b.Attributes[name])}
		if attr.expr.Constant() {
			v, more := Eval(nil, nil, attr.expr, attr.ty)
			ds = append(ds, inAttribute(more, name)...)
			attr.constant = v
		}
		out.attrs = append(out.attrs, attr)
	}
	for name, items := range byType {
		if a := b.Attributes[name]; a != nil && content.Attributes[name] == nil {
			out.blocks = append(out.blocks, bodyBlocks{name: name, nb: p.asBlocks[name], asAttr: a, items: items})
		}
	}
	for _, name := range p.required {
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
	slices.SortFunc(out.attrs, func(a, b bodyAttr) int { return a.at.Start.Byte - b.at.Start.Byte })
	return out, ds
}

func missing(name string, at source.Range) diag.List {
	return diag.List{{
		Code: "lang/missing-argument", Summary: "Missing required argument", At: &at,
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
		return "", bodyItem{}, diag.Errorf(&at, "Unsupported block type", "Blocks of type %q are not expected here.", name)
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
			return "", bodyItem{}, append(ds, diag.Errorf(&at, "Invalid dynamic block iterator", "The iterator must be a single name.")...)
		}
		d.iterator = word
	}
	if l := content.Attributes["labels"]; l != nil {
		if nb.Nesting != schema.Map {
			at := l.NameRange
			return "", bodyItem{}, append(ds, diag.Errorf(&at, "Unsupported argument", "Blocks of type %q have no label, so \"labels\" is not expected here.", name)...)
		}
		exprs, diags := hcl.ExprList(l.Expr)
		ds = append(ds, diag.FromHCL(diags)...)
		for _, x := range exprs {
			d.labels = append(d.labels, Compile(x))
		}
	}
	if nb.Nesting == schema.Map && len(d.labels) != 1 {
		at := block.DefRange
		return "", bodyItem{}, append(ds, diag.Errorf(&at, "Wrong number of dynamic block labels", "Blocks of type %q have one label, so \"labels\" must be a list of one element.", name)...)
	}
	if len(content.Blocks) != 1 {
		at := block.DefRange
		return "", bodyItem{}, append(ds, diag.Errorf(&at, "Missing dynamic content block", "A dynamic block must hold exactly one block of type \"content\".")...)
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
		summary := fmt.Sprintf("Too many %s blocks", name)
		if maxItems == 1 {
			return diag.Errorf(&place, "Duplicate "+name+" block", "Only one %s block is allowed here.", name)
		}
		return diag.Errorf(&place, summary, "No more than %d %q blocks are allowed.", maxItems, name)
	}
	if plain < nb.MinItems && !dyn {
		if nb.MinItems == 1 {
			return diag.Errorf(&at, "Missing "+name+" block", "A block of type %q is required here.", name)
		}
		return diag.Errorf(&at, "Insufficient "+name+" blocks", "At least %d %q blocks are required.", nb.MinItems, name)
	}
	return nil
}

func inAttribute(ds diag.List, name string) diag.List {
	for _, m := range ds {
		if m.Code == "lang/wrong-type" {
			m.Summary = "Incorrect attribute value type"
			m.Detail = fmt.Sprintf("Inappropriate value for attribute %q: %s", name, m.Detail[len("Invalid expression value: "):])
		}
	}
	return ds
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

// AttrRange returns the place of the expression that gives an attribute, by the
// first steps of a path, or of the body where nothing gives it.
func (b *Body) AttrRange(p cty.Path) source.Range {
	if len(p) > 0 {
		if step, ok := p[0].(cty.GetAttrStep); ok {
			for _, a := range b.attrs {
				if a.name == step.Name {
					return a.at
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

// Eval evaluates the body in a scope to an object of the schema's implied type,
// with marks. With errors the value holds unknowns in their place.
func (b *Body) Eval(t *demand.Task, s Scope) (cty.Value, diag.List) {
	vals := maps.Clone(b.schema.absent)
	var ds diag.List
	for i := range b.attrs {
		a := &b.attrs[i]
		if a.constant != cty.NilVal {
			vals[a.name] = a.constant
			if a.readOnly {
				ds = append(ds, a.decided(a.constant)...)
			}
			continue
		}
		v, more := Eval(t, s, a.expr, a.ty)
		if len(more) > 0 {
			ds = append(ds, inAttribute(more, a.name)...)
		}
		if a.readOnly {
			ds = append(ds, a.decided(v)...)
		}
		vals[a.name] = v
	}
	for i := range b.blocks {
		v, more := b.blocks[i].eval(t, s)
		ds = append(ds, more...)
		vals[b.blocks[i].name] = v
	}
	return cty.ObjectVal(vals), ds
}

// element is one evaluated nested block.
type element struct {
	label string
	value cty.Value
}

func (bb *bodyBlocks) eval(t *demand.Task, s Scope) (cty.Value, diag.List) {
	var elems []element
	var ds diag.List
	marks := cty.ValueMarks{}
	unknown := false
	for i := range bb.items {
		it := &bb.items[i]
		if it.dynamic == nil {
			v, more := it.body.Eval(t, s)
			ds = append(ds, more...)
			elems = append(elems, element{it.label, v})
			continue
		}
		more, u, m, moreDiags := it.expand(t, s)
		ds = append(ds, moreDiags...)
		elems = append(elems, more...)
		unknown = unknown || u
		for k := range m {
			marks[k] = struct{}{}
		}
	}
	v, more := bb.collect(elems, unknown)
	if unknown && single(bb.nb) {
		v = bb.unknown()
	}
	if len(marks) > 0 {
		v = v.WithMarks(marks)
	}
	return v, append(ds, more...)
}

// couldIterate reports whether a value of a type may have elements.
func couldIterate(ty cty.Type) bool {
	return ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType()
}

func (it *bodyItem) expand(t *demand.Task, s Scope) (out []element, unknown bool, marks cty.ValueMarks, ds diag.List) {
	coll, ds := Eval(t, s, it.dynamic.forEach, cty.DynamicPseudoType)
	coll, marks = coll.Unmark()
	at := it.dynamic.forEach.Range()
	switch {
	case ds.HasErrors() || !coll.IsKnown() && couldIterate(coll.Type()):
		return nil, true, marks, ds
	case coll.IsKnown() && coll.IsNull():
		return nil, false, marks, append(ds, diag.Errorf(&at, "Invalid dynamic for_each value", "Cannot use a null value in for_each.")...)
	case !coll.CanIterateElements():
		return nil, false, marks, append(ds, diag.Errorf(&at, "Invalid dynamic for_each value", "Cannot use a %s value in for_each. An iterable collection is required.", coll.Type().FriendlyName())...)
	}
	isSet := coll.Type().IsSetType()
	for el := coll.ElementIterator(); el.Next(); {
		k, v := el.Element()
		if isSet {
			k = v
		}
		child := iteration{Scope: s, name: it.dynamic.iterator, value: cty.ObjectVal(map[string]cty.Value{"key": k.WithMarks(marks), "value": v.WithMarks(marks)})}
		e := element{}
		for _, l := range it.dynamic.labels {
			lv, more := Eval(t, child, l, cty.String)
			ds = append(ds, more...)
			lv, _ = lv.Unmark()
			if !lv.IsKnown() {
				return nil, true, marks, ds
			}
			if lv.IsNull() {
				at := l.Range()
				return nil, false, marks, append(ds, diag.Errorf(&at, "Invalid dynamic block label", "Cannot use a null value as a dynamic block label.")...)
			}
			e.label = lv.AsString()
		}
		var more diag.List
		e.value, more = it.body.Eval(t, child)
		ds = append(ds, more...)
		out = append(out, e)
	}
	return out, false, marks, ds
}

// iteration is the scope of a dynamic block's content.
type iteration struct {
	Scope
	name  string
	value cty.Value
}

func (s iteration) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if ref.RootName() == s.name {
		return s.value, 1, nil
	}
	return s.Scope.Resolve(t, ref, at)
}

// collect makes the value of a nested block type from its blocks.
func (bb *bodyBlocks) collect(elems []element, unknown bool) (cty.Value, diag.List) {
	nb := bb.nb
	ty := nb.Block.ImpliedType()
	dyn := ty.HasDynamicTypes()
	if unknown {
		switch {
		case single(nb):
			return cty.UnknownVal(ty), nil
		case dyn && nb.Nesting != schema.Set:
			return cty.DynamicVal, nil
		case nb.Nesting == schema.List:
			return cty.UnknownVal(cty.List(ty)), nil
		case nb.Nesting == schema.Map:
			return cty.UnknownVal(cty.Map(ty)), nil
		default:
			return cty.UnknownVal(cty.Set(ty)), nil
		}
	}
	at := bb.items[len(bb.items)-1].at
	if n := nb.MaxItems; n > 0 && len(elems) > n || len(elems) > 1 && single(nb) {
		return cty.UnknownVal(ty), diag.Errorf(&at, "Too many "+bb.name+" blocks", "No more than %d %q blocks are allowed.", max(n, 1), bb.name)
	}
	if len(elems) < nb.MinItems {
		return nb.EmptyValue(), diag.Errorf(&at, "Insufficient "+bb.name+" blocks", "At least %d %q blocks are required.", nb.MinItems, bb.name)
	}
	if len(elems) == 0 {
		if bb.asAttr != nil {
			return emptyOf(bb.asAttr.Type), nil
		}
		return nb.EmptyValue(), nil
	}
	vals := make([]cty.Value, len(elems))
	for i, e := range elems {
		vals[i] = e.value
	}
	switch nb.Nesting {
	case schema.Single, schema.Group:
		return vals[0], nil
	case schema.List:
		if dyn {
			return cty.TupleVal(vals), nil
		}
		return cty.ListVal(vals), nil
	case schema.Set:
		if dyn {
			return unifiedSet(vals, at)
		}
		return cty.SetVal(vals), nil
	default:
		m := make(map[string]cty.Value, len(elems))
		for _, e := range elems {
			if _, dup := m[e.label]; dup {
				return nb.EmptyValue(), diag.Errorf(&at, "Duplicate "+bb.name+" block", "A block of type %q with the label %q was already defined.", bb.name, e.label)
			}
			m[e.label] = e.value
		}
		if dyn {
			return cty.ObjectVal(m), nil
		}
		return cty.MapVal(m), nil
	}
}

func unifiedSet(vals []cty.Value, at source.Range) (cty.Value, diag.List) {
	types := make([]cty.Type, len(vals))
	for i, v := range vals {
		types[i] = v.Type()
	}
	ty, convs := convert.UnifyUnsafe(types)
	if ty == cty.NilType {
		return cty.DynamicVal, diag.Errorf(&at, "Inconsistent types", "The elements of a set must all be of the same type.")
	}
	for i, c := range convs {
		if c == nil {
			continue
		}
		v, err := c(vals[i])
		if err != nil {
			return cty.DynamicVal, diag.Errorf(&at, "Inconsistent types", "The elements of a set must all be of the same type: %s.", ErrorText(err))
		}
		vals[i] = v
	}
	return cty.SetVal(vals), nil
}

func emptyOf(ty cty.Type) cty.Value {
	if ty.IsSetType() {
		return cty.SetValEmpty(ty.ElementType())
	}
	return cty.ListValEmpty(ty.ElementType())
}

// IsSensitive reports whether a value carries the sensitive mark on its top.
func IsSensitive(v cty.Value) bool { return value.HasMark(v, value.Sensitive) }
