package syntax

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// A File is one parsed file: its arguments and blocks with compiled expressions. It is
// immutable.
type File struct {
	Path  string // absolute
	Dir   string
	Src   *source.File
	Root  *Block                   // nil if nothing could be parsed
	Part  *Block                   // the valid part of a text with syntax errors; nil if there are none
	Cells int                      // the number of expressions with a cell
	Calls map[string]*source.Range // context functions that are called in the file, each with one range
	Diags diag.List

	Pseudo [parts]Expr
}

// An Attr is one argument.
type Attr struct {
	Name   string
	Expr   *Expr
	At     source.Range // the whole definition
	NameAt source.Range
}

// A Block is one block, or the top of a file.
type Block struct {
	Spec    *BlockSpec
	Label   string
	Labeled bool
	Attrs   []*Attr          // in the order of the file
	index   map[string]*Attr // for blocks with many attributes
	Blocks  []*Block
	At      source.Range // the header
	LabelAt source.Range
	Raw     hcl.Body // for blocks whose body is kept unread
}

// Attr returns the argument with a name, or nil. b may be nil.
func (b *Block) Attr(name string) *Attr {
	if b == nil {
		return nil
	}
	if b.index != nil {
		return b.index[name]
	}
	for _, a := range b.Attrs {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Of returns the blocks of one type.
func (b *Block) Of(name string) []*Block {
	if b == nil {
		return nil
	}
	var out []*Block
	for _, in := range b.Blocks {
		if in.Spec.Name == name {
			out = append(out, in)
		}
	}
	return out
}

// First returns the first nested block of a type, or nil. b may be nil.
func (b *Block) First(name string) *Block {
	if b == nil {
		return nil
	}
	for _, in := range b.Blocks {
		if in.Spec.Name == name {
			return in
		}
	}
	return nil
}

// publicInModule are the arguments of a module block that configure the block itself. The
// others are inputs, whose text messages do not show.
var publicInModule = []string{"source", "version", "for_each", "enabled", "depends_on"}

// Source returns the text of a unit, stack or values file for messages. Messages do not
// show parts of it that may contain handed-in values.
func Source(path string, text []byte) *source.File {
	f := &source.File{Path: path, Bytes: text, Private: Language().private, Open: publicInModule}
	if filepath.Base(path) == AutoIncludeName {
		f.Private, f.Open = Language().autoPrivate, nil
	}
	if filepath.Base(path) == ValuesName {
		f.Layer = &source.Layer{Kind: source.Values}
	}
	return f
}

// Parse parses a file by the schema of its kind.
func Parse(path string, text []byte, spec *BlockSpec) *File { return parse(path, text, spec, nil) }

// parse is Parse. seen is Parses.Seen.
func parse(path string, text []byte, spec *BlockSpec, seen func(string, []byte, *hcl.File)) *File {
	f := &File{Path: path, Dir: filepath.Dir(path), Src: Source(path, text)}
	r := &reader{f: f}
	if f.Diags = diag.TooDeep(path, text); f.Diags != nil {
		text = nil
	}
	if strings.HasSuffix(path, ".json") {
		if f.Diags != nil {
			text = []byte("{}")
		}
		parsed, diags := hcljson.Parse(text, path)
		f.Diags = append(f.Diags, diag.FromHCL(diags)...)
		if parsed != nil && !f.Diags.HasErrors() {
			r.json = true
			f.Root = r.Block(parsed.Body, spec)
		}
	} else {
		parsed, diags := hclnative.ParseConfig(text, path)
		f.Diags = append(f.Diags, diag.FromHCL(diags)...)
		if seen != nil && !f.Diags.HasErrors() {
			seen(path, text, parsed)
		}
		if body, ok := parsedBody(parsed); ok {
			f.Root = r.Block(body, spec)
		}
		if diags.HasErrors() { // other errors may be consequences
			f.Diags, f.Root, f.Part = diag.FromHCL(diags), nil, f.Root
		}
	}
	for _, b := range []*Block{f.Root, f.Part} {
		if b != nil {
			b.At = source.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos}
		}
	}
	f.Cells = int(r.next) + parts
	for i := range f.Pseudo {
		f.Pseudo[i] = Expr{Kind: Whole + exprKind(i), Cell: r.next + int32(i), Parts: none}
	}
	return f
}

func parsedBody(f *hcl.File) (hcl.Body, bool) {
	if f == nil {
		return nil, false
	}
	return f.Body, true
}

// reader converts HCL bodies to blocks.
type reader struct {
	f    *File
	json bool
	next int32 // the number of the next expression
}

func (r *reader) fail(at source.Range, code, summary, format string, args ...any) {
	ds := diag.Errorf(code, &at, summary, format, args...)
	r.f.Diags = append(r.f.Diags, ds...)
}

// Block reads a body by its schema.
func (r *reader) Block(body hcl.Body, spec *BlockSpec) *Block {
	b := &Block{Spec: spec}
	if spec.raw {
		b.Raw = body
		return b
	}
	if native, ok := body.(*hclsyntax.Body); ok {
		r.native(native, b)
	} else if spec.Open {
		attrs, diags := body.JustAttributes()
		r.f.Diags = append(r.f.Diags, diag.FromHCL(diags)...)
		r.addAttrs(b, attrs)
	} else {
		r.jsonBody(body, b)
	}
	if len(b.Attrs) > 8 {
		b.index = make(map[string]*Attr, len(b.Attrs))
		for _, a := range b.Attrs {
			b.index[a.Name] = a
		}
	}
	r.checkTwice(b)
	return b
}

func (r *reader) addAttrs(b *Block, attrs hcl.Attributes) {
	for _, a := range inOrder(attrs, func(a *hcl.Attribute) int { return a.Range.Start.Byte }) {
		b.Attrs = append(b.Attrs, r.Attr(a.Name, a.Expr, a.Range, a.NameRange))
	}
}

// inOrder returns the values of a map in the order of the file, so that expressions get the
// same numbers each time it is parsed.
func inOrder[V any](m map[string]V, at func(V) int) []V {
	return slices.SortedFunc(maps.Values(m), func(a, b V) int { return at(a) - at(b) })
}

func (r *reader) Attr(name string, x hcl.Expression, at, nameAt source.Range) *Attr {
	a := &Attr{Name: name, Expr: r.compile(x), At: at, NameAt: nameAt}
	if a.Expr.Kind == Reference && a.Expr.Cell < 0 {
		r.number(a.Expr) // chains of such arguments may be long, and only cells may be nested deeply
	}
	return a
}

// native reads a body in native syntax.
func (r *reader) native(body *hclsyntax.Body, b *Block) {
	for _, a := range inOrder(body.Attributes, func(a *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte }) {
		sub := b.Spec.Block(a.Name)
		if !b.Spec.Open && b.Spec.Arg(a.Name) == nil && (sub == nil || !sub.asAttr) {
			hint := ""
			if sub != nil {
				hint = fmt.Sprintf(" Did you mean to define a block of type %q?", a.Name)
			} else if near := Nearest(a.Name, b.Spec.Names()); near != "" {
				hint = fmt.Sprintf(" Did you mean %q?", near)
			}
			r.fail(a.NameRange, diag.CodeUnitUnsupportedArgument, "Unsupported argument", "An argument named %q is not expected here.%s", a.Name, hint)
			continue
		}
		b.Attrs = append(b.Attrs, r.Attr(a.Name, a.Expr, a.SrcRange, a.NameRange))
	}
	for _, in := range body.Blocks {
		r.nativeBlock(in, b)
	}
}

func (r *reader) nativeBlock(in *hclsyntax.Block, b *Block) {
	sub := b.Spec.Block(in.Type)
	if sub == nil {
		hint := ""
		if b.Spec.Arg(in.Type) != nil {
			hint = fmt.Sprintf(" Did you mean to define argument %q? If so, use the equals sign to assign it a value.", in.Type)
		} else if in.Type == "globals" {
			hint = " To share values between units, write them as locals or inputs of one file, and merge it into the units with an import or include block."
		} else if near := Nearest(in.Type, b.Spec.Names()); near != "" {
			hint = fmt.Sprintf(" Did you mean %q?", near)
		}
		r.fail(in.TypeRange, diag.CodeUnitUnsupportedBlock, "Unsupported block type", "Blocks of type %q are not expected here.%s", in.Type, hint)
		return
	}
	most := 1
	if sub.Label == NoLabel {
		most = 0
	}
	switch {
	case len(in.Labels) > most:
		r.fail(in.LabelRanges[most], diag.CodeUnitLabels, "Extraneous label for "+in.Type, "%s blocks have %s.", in.Type, labelCount(most))
		return
	case len(in.Labels) == 0 && sub.Label == OneLabel:
		r.fail(in.OpenBraceRange, diag.CodeUnitLabels, "Missing name for "+in.Type, "All %s blocks must have 1 label (name).", in.Type)
		return
	}
	nb := r.Block(in.Body, sub)
	nb.At = in.DefRange()
	nb.LabelAt = nb.At
	if len(in.Labels) > 0 {
		nb.Label, nb.Labeled, nb.LabelAt = in.Labels[0], true, in.LabelRanges[0]
	}
	b.Blocks = append(b.Blocks, nb)
}

func labelCount(n int) string {
	if n == 0 {
		return "no labels"
	}
	return "only 1 label"
}

// Names returns the names of the arguments and nested blocks.
func (s *BlockSpec) Names() []string {
	var out []string
	for _, a := range s.Args {
		out = append(out, a.Name)
	}
	for _, b := range s.Blocks {
		out = append(out, b.Name)
	}
	return out
}

// jsonBody reads a body in JSON syntax.
func (r *reader) jsonBody(body hcl.Body, b *Block) {
	all, _ := body.JustAttributes()
	schema := &hcl.BodySchema{}
	for _, a := range b.Spec.Args {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: a.Name})
	}
	for _, sub := range b.Spec.Blocks {
		if a := all[sub.Name]; a != nil && sub.asAttr && !isJSONObject(a.Expr) {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: sub.Name})
			continue
		}
		h := hcl.BlockHeaderSchema{Type: sub.Name}
		if sub.Label == OneLabel || sub.Label == maybeLabel && !bareInclude(all[sub.Name]) {
			h.LabelNames = []string{"name"}
		}
		schema.Blocks = append(schema.Blocks, h)
	}
	content, diags := body.Content(schema)
	r.f.Diags = append(r.f.Diags, diag.FromHCL(diags)...)
	r.addAttrs(b, content.Attributes)
	for _, in := range content.Blocks {
		nb := r.Block(in.Body, b.Spec.Block(in.Type))
		nb.At, nb.LabelAt = in.DefRange, in.DefRange
		if len(in.Labels) > 0 {
			nb.Label, nb.Labeled, nb.LabelAt = in.Labels[0], true, in.LabelRanges[0]
		}
		b.Blocks = append(b.Blocks, nb)
	}
}

// isJSONObject reports whether an expression is an object or a list of objects, and so a
// block.
func isJSONObject(x hcl.Expression) bool {
	if _, diags := hcl.ExprMap(x); !diags.HasErrors() {
		return true
	}
	_, diags := hcl.ExprList(x)
	return !diags.HasErrors()
}

// bareInclude distinguishes {"include": {"path": …}} from {"include": {"label": {…}}}.
func bareInclude(a *hcl.Attribute) bool {
	if a == nil {
		return false
	}
	pairs, diags := hcl.ExprMap(a.Expr)
	if diags.HasErrors() {
		return false
	}
	for _, p := range pairs {
		k, _ := p.Key.Value(nil)
		if IsString(k) && k.AsString() == "path" {
			_, diags := hcl.ExprMap(p.Value)
			return diags.HasErrors()
		}
	}
	return false
}

// checkTwice reports arguments and blocks that may occur only once.
func (r *reader) checkTwice(b *Block) {
	for i, in := range b.Blocks {
		if a := b.Attr(in.Spec.Name); a != nil {
			r.fail(in.At, diag.CodeUnitBlockAndArgument, "Block and argument of one name",
				"%q is set as an argument at %s and as a block here. Use one of the two.", a.Name, a.At)
		}
		if in.Spec.many {
			continue
		}
		for _, before := range b.Blocks[:i] {
			if before.Spec == in.Spec && before.Label == in.Label {
				what := in.Spec.Name + " block"
				detail := fmt.Sprintf("Only one %s block is allowed here; another one stands at %s.", in.Spec.Name, before.At)
				if in.Labeled {
					detail = fmt.Sprintf("Another %s block named %q stands at %s. The names must be different.", in.Spec.Name, in.Label, before.At)
				}
				r.fail(in.At, diag.CodeUnitDuplicateBlock, "Duplicate "+what, "%s", detail)
				break
			}
		}
	}
}

// Pseudo expressions are parts of an evaluation that have cells but no text.
const (
	WholePart = iota // the file as one object
	ImportsPart
	MergedPart
	parts
)

// NameOf returns the name of the local value or argument that contains an expression.
func (f *File) NameOf(x *Expr) string {
	if a, local := f.AttrOf(x); a != nil {
		if local {
			return "local." + a.Name
		}
		return a.Name
	}
	return f.Path
}

// AttrOf returns the local value, or the argument at the top, that contains an expression.
func (f *File) AttrOf(x *Expr) (a *Attr, local bool) {
	if x.Expression == nil || f.Root == nil {
		return nil, false
	}
	at := x.At()
	in := func(b *Block) *Attr {
		if b == nil {
			return nil
		}
		for _, a := range b.Attrs {
			if a.At.Start.Byte <= at.Start.Byte && at.End.Byte <= a.At.End.Byte {
				return a
			}
		}
		return nil
	}
	if a := in(f.Root.First("locals")); a != nil {
		return a, true
	}
	return in(f.Root), false
}

// ArgumentAt returns the expression of the argument whose definition contains a range.
func (f *File) ArgumentAt(at source.Range) *Expr {
	var in func(b *Block) *Expr
	in = func(b *Block) *Expr {
		if b == nil {
			return nil
		}
		for _, a := range b.Attrs {
			if a.At.Start.Byte <= at.Start.Byte && at.Start.Byte < a.At.End.Byte {
				return a.Expr
			}
		}
		for _, nb := range b.Blocks {
			if x := in(nb); x != nil {
				return x
			}
		}
		return nil
	}
	return in(f.Root)
}
