package unit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// A file is one parsed file: its arguments and blocks with their expressions
// compiled. It is never changed and knows nothing of who uses it.
type file struct {
	path  string // absolute
	dir   string
	src   *source.File
	root  *block                   // nil if nothing could be read
	part  *block                   // what could be read of a text with mistakes in it; nil if there are none
	xprs  int                      // how many expressions need a cell
	calls map[string]*source.Range // context functions that are called anywhere in the file, with one place
	ds    diag.List

	pseudo [parts]xpr
	table  func(*Loader) *hcl.EvalContext
}

// An attr is one argument.
type attr struct {
	name   string
	x      *xpr
	at     source.Range // of the whole definition
	nameAt source.Range
}

// A block is one block, or the top of a file.
type block struct {
	spec    *blockSpec
	label   string
	labeled bool
	attrs   []*attr          // in the order of the file
	index   map[string]*attr // of many attrs
	blocks  []*block
	at      source.Range // of the header
	labelAt source.Range
	raw     hcl.Body // of blocks that are kept unread
}

func (b *block) attr(name string) *attr {
	if b == nil {
		return nil
	}
	if b.index != nil {
		return b.index[name]
	}
	for _, a := range b.attrs {
		if a.name == name {
			return a
		}
	}
	return nil
}

// of returns the blocks of one type.
func (b *block) of(name string) []*block {
	if b == nil {
		return nil
	}
	var out []*block
	for _, in := range b.blocks {
		if in.spec.name == name {
			out = append(out, in)
		}
	}
	return out
}

func (b *block) first(name string) *block {
	if b == nil {
		return nil
	}
	for _, in := range b.blocks {
		if in.spec.name == name {
			return in
		}
	}
	return nil
}

// handedIn are the arguments of unit and stack files that hand values on: to a module, a
// backend, a child process. Their text is never shown.
var handedIn = []string{"inputs", "values", "config", "encryption", "env_vars", "arguments"}

// Source is the text of a unit, stack or values file, of which messages show nothing that
// is handed in.
func Source(path string, text []byte) *source.File {
	f := &source.File{Path: path, Bytes: text, Private: handedIn}
	if filepath.Base(path) == ValuesName {
		f.Layer = &source.Layer{Kind: source.Values}
	}
	return f
}

// parse reads a file by the schema of its kind.
func parse(path string, text []byte, spec *blockSpec) *file {
	f := &file{path: path, dir: filepath.Dir(path), src: Source(path, text)}
	r := &reader{f: f}
	if f.ds = diag.TooDeep(path, text); f.ds != nil {
		text = nil
	}
	if strings.HasSuffix(path, ".json") {
		if f.ds != nil {
			text = []byte("{}")
		}
		parsed, diags := hcljson.Parse(text, path)
		f.ds = append(f.ds, diag.FromHCL(diags)...)
		if parsed != nil && !f.ds.HasErrors() {
			r.json = true
			f.root = r.block(parsed.Body, spec)
		}
	} else {
		parsed, diags := hclsyntax.ParseConfig(text, path, hcl.InitialPos)
		f.ds = append(f.ds, diag.FromHCL(diags)...)
		if body, ok := parsedBody(parsed); ok {
			f.root = r.block(body, spec)
		}
		if diags.HasErrors() { // others may come of what is missing
			f.ds, f.root, f.part = diag.FromHCL(diags), nil, f.root
		}
	}
	for _, b := range []*block{f.root, f.part} {
		if b != nil {
			b.at = source.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos}
		}
	}
	f.xprs = r.next + parts
	for i := range f.pseudo {
		f.pseudo[i] = xpr{kind: whole + xkind(i), id: r.next + i}
	}
	var once sync.Once
	var ctx *hcl.EvalContext
	f.table = func(l *Loader) *hcl.EvalContext {
		once.Do(func() { ctx = &hcl.EvalContext{Functions: l.table(f.dir)} })
		return ctx
	}
	return f
}

func parsedBody(f *hcl.File) (hcl.Body, bool) {
	if f == nil {
		return nil, false
	}
	return f.Body, true
}

// reader turns bodies into blocks.
type reader struct {
	f    *file
	json bool
	next int // the next expression's number
}

func (r *reader) fail(at source.Range, code, summary, format string, args ...any) {
	ds := diag.Errorf(&at, summary, format, args...)
	ds[0].Code = code
	r.f.ds = append(r.f.ds, ds...)
}

// block reads a body by its schema.
func (r *reader) block(body hcl.Body, spec *blockSpec) *block {
	b := &block{spec: spec}
	if spec.raw {
		b.raw = body
		return b
	}
	if native, ok := body.(*hclsyntax.Body); ok {
		r.native(native, b)
	} else if spec.open {
		attrs, diags := body.JustAttributes()
		r.f.ds = append(r.f.ds, diag.FromHCL(diags)...)
		r.addAttrs(b, attrs)
	} else {
		r.jsonBody(body, b)
	}
	slices.SortFunc(b.attrs, func(x, y *attr) int { return x.at.Start.Byte - y.at.Start.Byte })
	if len(b.attrs) > 8 {
		b.index = make(map[string]*attr, len(b.attrs))
		for _, a := range b.attrs {
			b.index[a.name] = a
		}
	}
	r.checkTwice(b)
	return b
}

func (r *reader) addAttrs(b *block, attrs hcl.Attributes) {
	for _, a := range attrs {
		b.attrs = append(b.attrs, r.attr(a.Name, a.Expr, a.Range, a.NameRange))
	}
}

func (r *reader) attr(name string, x hcl.Expression, at, nameAt source.Range) *attr {
	a := &attr{name: name, x: r.compile(x), at: at, nameAt: nameAt}
	if a.x.kind == reference && a.x.id < 0 {
		r.number(a.x) // chains of such arguments may be long, and only cells may nest deeply
	}
	return a
}

// native reads a body in native syntax.
func (r *reader) native(body *hclsyntax.Body, b *block) {
	for _, a := range body.Attributes {
		sub := b.spec.block(a.Name)
		if !b.spec.open && b.spec.arg(a.Name) == nil && (sub == nil || !sub.asAttr) {
			hint := ""
			if sub != nil {
				hint = fmt.Sprintf(" Did you mean to define a block of type %q?", a.Name)
			} else if near := nearest(a.Name, b.spec.names()); near != "" {
				hint = fmt.Sprintf(" Did you mean %q?", near)
			}
			r.fail(a.NameRange, "unit/unsupported-argument", "Unsupported argument", "An argument named %q is not expected here.%s", a.Name, hint)
			continue
		}
		b.attrs = append(b.attrs, r.attr(a.Name, a.Expr, a.SrcRange, a.NameRange))
	}
	for _, in := range body.Blocks {
		r.nativeBlock(in, b)
	}
}

func (r *reader) nativeBlock(in *hclsyntax.Block, b *block) {
	sub := b.spec.block(in.Type)
	if sub == nil {
		hint := ""
		if b.spec.arg(in.Type) != nil {
			hint = fmt.Sprintf(" Did you mean to define argument %q? If so, use the equals sign to assign it a value.", in.Type)
		} else if in.Type == "expansion" {
			hint = " Terragrunt 1.1.3 reserves them for an experiment. Write one " + b.spec.name + " block for each instance, or an environment file, whose module blocks know for_each."
		} else if near := nearest(in.Type, b.spec.names()); near != "" {
			hint = fmt.Sprintf(" Did you mean %q?", near)
		}
		r.fail(in.TypeRange, "unit/unsupported-block", "Unsupported block type", "Blocks of type %q are not expected here.%s", in.Type, hint)
		return
	}
	most := 1
	if sub.label == noLabel {
		most = 0
	}
	switch {
	case len(in.Labels) > most:
		r.fail(in.LabelRanges[most], "unit/labels", "Extraneous label for "+in.Type, "%s blocks have %s.", in.Type, labelCount(most))
		return
	case len(in.Labels) == 0 && sub.label == oneLabel:
		r.fail(in.OpenBraceRange, "unit/labels", "Missing name for "+in.Type, "All %s blocks must have 1 label (name).", in.Type)
		return
	}
	nb := r.block(in.Body, sub)
	nb.at = in.DefRange()
	nb.labelAt = nb.at
	if len(in.Labels) > 0 {
		nb.label, nb.labeled, nb.labelAt = in.Labels[0], true, in.LabelRanges[0]
	}
	b.blocks = append(b.blocks, nb)
}

func labelCount(n int) string {
	if n == 0 {
		return "no labels"
	}
	return "only 1 label"
}

func (s *blockSpec) names() []string {
	var out []string
	for _, a := range s.args {
		out = append(out, a.name)
	}
	for _, b := range s.blocks {
		out = append(out, b.name)
	}
	return out
}

// jsonBody reads a body in JSON syntax.
func (r *reader) jsonBody(body hcl.Body, b *block) {
	all, _ := body.JustAttributes()
	schema := &hcl.BodySchema{}
	for _, a := range b.spec.args {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: a.name})
	}
	for _, sub := range b.spec.blocks {
		if a := all[sub.name]; a != nil && sub.asAttr && !isJSONObject(a.Expr) {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: sub.name})
			continue
		}
		h := hcl.BlockHeaderSchema{Type: sub.name}
		if sub.label == oneLabel || sub.label == maybeLabel && !bareInclude(all[sub.name]) {
			h.LabelNames = []string{"name"}
		}
		schema.Blocks = append(schema.Blocks, h)
	}
	content, diags := body.Content(schema)
	r.f.ds = append(r.f.ds, diag.FromHCL(diags)...)
	r.addAttrs(b, content.Attributes)
	for _, in := range content.Blocks {
		nb := r.block(in.Body, b.spec.block(in.Type))
		nb.at, nb.labelAt = in.DefRange, in.DefRange
		if len(in.Labels) > 0 {
			nb.label, nb.labeled, nb.labelAt = in.Labels[0], true, in.LabelRanges[0]
		}
		b.blocks = append(b.blocks, nb)
	}
}

// isJSONObject tells a block from an attribute: an object, or a list of objects.
func isJSONObject(x hcl.Expression) bool {
	if _, diags := hcl.ExprMap(x); !diags.HasErrors() {
		return true
	}
	_, diags := hcl.ExprList(x)
	return !diags.HasErrors()
}

// bareInclude tells {"include": {"path": …}} from {"include": {"label": {…}}}.
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
		if isString(k) && k.AsString() == "path" {
			_, diags := hcl.ExprMap(p.Value)
			return diags.HasErrors()
		}
	}
	return false
}

// checkTwice reports what may stand only once.
func (r *reader) checkTwice(b *block) {
	for i, in := range b.blocks {
		if a := b.attr(in.spec.name); a != nil {
			r.fail(in.at, "unit/block-and-argument", "Block and argument of one name",
				"%q is set as an argument at %s and as a block here. Use one of the two.", a.name, a.at)
		}
		if in.spec.many {
			continue
		}
		for _, before := range b.blocks[:i] {
			if before.spec == in.spec && before.label == in.label {
				what := in.spec.name + " block"
				detail := fmt.Sprintf("Only one %s block is allowed here; another one stands at %s.", in.spec.name, before.at)
				if in.labeled {
					detail = fmt.Sprintf("Another %s block named %q stands at %s. The names must be different.", in.spec.name, in.label, before.at)
				}
				r.fail(in.at, "unit/duplicate-block", "Duplicate "+what, "%s", detail)
				break
			}
		}
	}
}
