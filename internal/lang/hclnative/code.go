package hclnative

import (
	"math"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Code is an expression compiled to steps for a stack machine. It needs a tenth of the
// memory of the tree. It contains the ranges of references and no others: if a step fails,
// the tree is evaluated for the message.
type Code struct {
	Steps  []Step
	Values []cty.Value     // the operands of Const
	Refs   []Ref           // the operands of Refer, without duplicates, in source order
	Paths  []hcl.Traversal // the operands of Take, without ranges
	Names  []string        // the operands of Call and Object
}

// Step pops values from the stack and pushes one.
type Step struct {
	Op Op
	N  uint16
	A  uint32
}

// Op is the operation of a step.
type Op uint8

// The operations. A step pops the values that were pushed last, in source order.
const (
	Const    Op = iota // pushes Values[A]
	Refer              // pushes the value of Refs[A]
	Take               // pops a value and pushes the part at Paths[A]
	Index              // pops a collection and a key, pushes the element
	Binary             // pops two operands, pushes the result of Operator
	Unary              // pops an operand, pushes the result of Operator
	Cond               // pops a condition and the results for true and false, pushes one of them
	Call               // pops N arguments, pushes the result of the function Names[A]
	Object             // pops N values, pushes the object with the keys Names[A:A+N]
	Tuple              // pops A values, pushes the tuple
	Template           // pops A values, pushes the concatenated string
)

// Ref is a reference and its range. In a Code, its traversal has no ranges and may be
// shared with other references.
type Ref struct {
	hcl.Traversal
	At hcl.Range
}

// Operator returns the operation of a Binary or Unary step.
func (s Step) Operator() *hclsyntax.Operation {
	switch {
	case s.Op != Unary:
		return operation(kind(s.A))
	case kind(s.A) == kBang:
		return hclsyntax.OpLogicalNot
	}
	return hclsyntax.OpNegate
}

// Late is the expression of an argument that is built on each request and never kept.
type Late struct {
	in          *stretch
	start, stop place
}

var _ hcl.Expression = (*Late)(nil)

// Tree builds the expression as hclsyntax does.
func (x *Late) Tree() hclsyntax.Expression {
	p := x.parser()
	out, _ := p.expression()
	return out
}

// parser returns a parser at the start of the expression.
func (x *Late) parser() parser {
	var p parser
	p.from(x.in, x.start)
	return p
}

// coders is a pool, because a coder is needed for one expression only. The coder of a large
// expression is not reused, because its buffers would be cleared each time.
var coders = sync.Pool{New: func() any { return new(coder) }}

const (
	mostSteps = 1024
	mostParts = 64
)

// Code compiles the expression to steps. It returns false if there is no step for a part:
// a loop, a splat, a template directive, a computed key, or an expanded argument list.
func (x *Late) Code() (*Code, bool) {
	c := coders.Get().(*coder)
	c.reset(x.in.file)
	p := x.parser()
	p.build, p.code, p.parts = false, c, c.parts
	_, ok := p.expression()
	if c.parts = p.parts[:0]; cap(c.Steps) <= mostSteps && cap(c.parts) <= mostParts {
		defer coders.Put(c)
	}
	if !ok || c.full {
		return nil, false
	}
	return c.done(), true
}

// Value evaluates the expression with hclsyntax.
func (x *Late) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) { return x.Tree().Value(ctx) }

// Variables returns the references of the expression.
func (x *Late) Variables() []hcl.Traversal {
	var found refs
	x.refer(&found)
	return found.traversals()
}

// Range returns the range of the expression.
func (x *Late) Range() hcl.Range { return x.in.rng(x.start, x.stop) }

// StartRange returns the start range of the expression's tree.
func (x *Late) StartRange() hcl.Range { return x.Tree().StartRange() }

// UnwrapExpression returns the tree, for callers that inspect the kind of an expression.
func (x *Late) UnwrapExpression() hcl.Expression { return x.Tree() }

// LateContent is like Content, but each expression is a Late. If the body has errors,
// hclsyntax builds it.
func (b *Body) LateContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	if !b.fits(schema, true) {
		return b.Syntax().Content(schema)
	}
	return b.content(schema, (*Body).late), nil
}

func (b *Body) late(a *Attr) *hcl.Attribute {
	var p parser
	p.from(b.in, a.start)
	out := &hcl.Attribute{Name: a.Name, NameRange: p.tokRange(), Range: b.in.rng(a.start, a.end)}
	p.next()
	p.next()
	p.peek()
	out.Expr = &Late{b.in, p.tok.place().moved(-b.in.off, -b.in.line), a.end}
	return out
}

// coder collects the steps of an expression during parsing. A nil coder collects nothing.
type coder struct {
	Code
	file    *File
	literal int            // the number of steps after the last step that is only a literal
	full    bool           // the expression has a part without a step
	keys    []string       // the keys of the objects being parsed
	parts   []part         // a buffer for the parts of templates
	texts   []string       // the text of each reference
	known   map[string]int // the index of each reference by its text; nil if there are few
}

func (c *coder) reset(f *File) {
	clear(c.Values)
	clear(c.Refs)
	clear(c.Names)
	clear(c.texts)
	clear(c.parts[:cap(c.parts)])
	c.Steps, c.Values, c.Refs, c.Paths, c.Names = c.Steps[:0], c.Values[:0], c.Refs[:0], c.Paths[:0], c.Names[:0]
	c.file, c.literal, c.full, c.keys, c.texts, c.known = f, 0, false, c.keys[:0], c.texts[:0], nil
}

// done returns the collected steps, without spare capacity.
func (c *coder) done() *Code {
	return &Code{exact(c.Steps), exact(c.Values), exact(c.Refs), exact(c.Paths), exact(c.Names)}
}

func (c *coder) emit(op Op, a, n int) {
	if c == nil {
		return
	}
	c.full = c.full || n > math.MaxUint16
	c.Steps = append(c.Steps, Step{op, uint16(n), uint32(a)})
}

// value adds a literal.
func (c *coder) value(v cty.Value) {
	if c == nil {
		return
	}
	c.Values = append(c.Values, v)
	c.emit(Const, len(c.Values)-1, 0)
	c.literal = len(c.Steps)
}

// computed marks the last expression as not literal, although its value is constant.
func (c *coder) computed() {
	if c != nil {
		c.literal = -1
	}
}

// call adds a function call after its arguments.
func (c *coder) call(name string, args int) {
	if c != nil {
		c.Names = append(c.Names, name)
		c.emit(Call, len(c.Names)-1, args)
	}
}

// takeLiteral removes the last step if it is the only one after n and a literal.
func (c *coder) takeLiteral(n int) (cty.Value, bool) {
	if len(c.Steps) != n+1 || c.literal != n+1 {
		return cty.NilVal, false
	}
	v := c.Values[len(c.Values)-1]
	c.Steps, c.Values, c.literal = c.Steps[:n], c.Values[:len(c.Values)-1], -1
	return v, true
}

// object adds an object after its values. Its keys are those after from.
func (c *coder) object(from int) {
	if c == nil {
		return
	}
	c.Names = append(c.Names, c.keys[from:]...)
	n := len(c.keys) - from
	c.keys = c.keys[:from]
	c.emit(Object, len(c.Names)-n, n)
}

func (c *coder) countKeys() int {
	if c == nil {
		return 0
	}
	return len(c.keys)
}

// later adds a literal whose text is not known yet. It returns the index of its value.
func (c *coder) later() int {
	if c == nil {
		return 0
	}
	c.value(cty.NilVal)
	return len(c.Values) - 1
}

// template adds a template after its parts. Consecutive literals are not joined: the step
// concatenates them anyway.
func (c *coder) template(parts []part) {
	texts := 0
	for i := range parts {
		if t := &parts[i]; t.kind == pLiteral {
			c.Values[t.value] = cty.StringVal(t.text)
			texts++
		}
	}
	switch {
	case texts == len(parts):
		var all strings.Builder
		for i := range parts {
			all.WriteString(parts[i].text)
		}
		c.Steps, c.Values = c.Steps[:len(c.Steps)-texts], c.Values[:len(c.Values)-texts]
		c.value(cty.StringVal(all.String()))
	case len(parts) == 1:
		c.computed()
	default:
		c.emit(Template, len(parts), 0)
	}
}

// codeKey parses the key of an object item: a name or a literal string.
func (p *parser) codeKey() bool {
	c := p.code
	if p.peek() == kIdent {
		c.keys = append(c.keys, p.text())
		p.next()
		k := p.peek()
		return k == kEqual || k == kColon
	}
	n := len(c.Steps)
	if _, ok := p.expression(); !ok {
		return false
	}
	v, ok := c.takeLiteral(n)
	if !ok || v.Type() != cty.String || v.IsNull() {
		return false
	}
	c.keys = append(c.keys, v.AsString())
	return true
}

// codeOperand is like operand, for steps.
func (p *parser) codeOperand() bool {
	k := p.peek()
	start := p.tok.mark
	if k != kIdent {
		_, ok := p.term()
		if !ok || k == kMinus || k == kBang {
			return ok
		}
		return p.codeSteps("", start)
	}
	name, end := p.text(), p.tok.endMark()
	p.next()
	if k := p.peek(); k == kOParen || k == kDoubleColon {
		if _, ok := p.call(name, start, end); !ok {
			return false
		}
		return p.codeSteps("", start)
	}
	if v, ok := constant(name); ok {
		p.code.value(v)
		return p.codeSteps("", start)
	}
	return p.codeSteps(name, start)
}

// constant returns the value of true, false or null.
func constant(name string) (cty.Value, bool) {
	switch name {
	case "true":
		return cty.True, true
	case "false":
		return cty.False, true
	case "null":
		return cty.NullVal(cty.DynamicPseudoType), true
	}
	return cty.NilVal, false
}

// codeSteps parses the attributes and indexes after a term that begins at start. The term
// is a reference if root is not "".
func (p *parser) codeSteps(root string, start mark) bool {
	var room [4]pathStep
	path, end := room[:0], p.prev
	if root != "" {
		path = append(path, pathStep{name: root})
	}
	flush := func() {
		if len(path) == 0 {
			return
		}
		if root != "" {
			p.code.ref(path, p.src[start.off:end.off], p.rng(start, end))
		} else {
			p.code.Paths = append(p.code.Paths, traversal(path, false))
			p.code.emit(Take, len(p.code.Paths)-1, 0)
		}
		root, path = "", path[:0]
	}
	for {
		switch p.peek() {
		case kDot:
			at := p.tok.mark
			p.next()
			switch p.peek() {
			case kIdent:
				path = append(path, pathStep{name: p.text()})
				p.next()
			case kNumber:
				s, ok := p.legacyIndex(at)
				if !ok {
					return false
				}
				path = append(path, pathStep{key: s.Key})
			default:
				return false // a splat
			}
		case kOBrack:
			p.next()
			lines := p.lines
			p.lines = false
			before := *p
			if key, ok := p.literalKey(); ok && p.take(kCBrack) {
				p.lines = lines
				path = append(path, pathStep{key: key})
				break
			}
			*p = before
			flush()
			n := len(p.code.Steps)
			_, ok := p.expression()
			ok = ok && p.take(kCBrack)
			p.lines = lines
			if _, literal := p.code.takeLiteral(n); !ok || literal {
				return false // of a literal that is not plain text
			}
			p.code.emit(Index, 0, 0)
		default:
			flush()
			return true
		}
		end = p.prev
	}
}

// literalKey parses a number or a string without interpolations.
func (p *parser) literalKey() (v cty.Value, ok bool) {
	switch p.peek() {
	case kNumber:
		v, ok = p.number()
		p.next()
	case kQuote:
		var s string
		if s, _, ok = p.plainText(); ok {
			v = cty.StringVal(s)
		}
	}
	return v, ok
}

// pathStep is a step of a path: a name or a key.
type pathStep struct {
	name string
	key  cty.Value
}

func traversal(path []pathStep, root bool) hcl.Traversal {
	out := make(hcl.Traversal, len(path))
	for i := range path {
		switch s := &path[i]; {
		case s.key != cty.NilVal:
			out[i] = hcl.TraverseIndex{Key: s.key}
		case root && i == 0:
			out[i] = hcl.TraverseRoot{Name: s.name}
		default:
			out[i] = hcl.TraverseAttr{Name: s.name}
		}
	}
	return out
}

// fewRefs is the number of references up to which a linear search is used.
const fewRefs = 8

// ref adds a reference with its text.
func (c *coder) ref(path []pathStep, text string, at hcl.Range) {
	i := len(c.Refs)
	if c.known == nil && i < fewRefs {
		for j := range c.Refs {
			if samePath(c.Refs[j].Traversal, path) {
				i = j
				break
			}
		}
	} else {
		if c.known == nil {
			c.known = make(map[string]int, 2*fewRefs)
			for j, had := range c.texts {
				c.known[had] = j
			}
		}
		if j, ok := c.known[text]; ok {
			i = j
		} else {
			c.known[text] = i
		}
	}
	if i == len(c.Refs) {
		c.texts = append(c.texts, text)
		c.Refs = append(c.Refs, Ref{c.file.path(path, text), at})
	}
	c.emit(Refer, i, 0)
}

func samePath(a hcl.Traversal, b []pathStep) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		switch x := a[i].(type) {
		case hcl.TraverseRoot:
			if x.Name != b[i].name {
				return false
			}
		case hcl.TraverseAttr:
			if b[i].key != cty.NilVal || x.Name != b[i].name {
				return false
			}
		case hcl.TraverseIndex:
			if b[i].key == cty.NilVal || !x.Key.RawEquals(b[i].key) {
				return false
			}
		}
	}
	return true
}

// shared contains the paths that a file repeats, by their text.
type shared struct {
	mu    sync.Mutex
	paths map[string]hcl.Traversal
}

// path returns the path of a reference. A short path, which files often repeat, is built once.
func (f *File) path(path []pathStep, text string) hcl.Traversal {
	if len(path) > 2 {
		return traversal(path, true)
	}
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	if had, ok := f.shared.paths[text]; ok {
		return had
	}
	if f.shared.paths == nil {
		f.shared.paths = map[string]hcl.Traversal{}
	}
	made := traversal(path, true)
	f.shared.paths[text] = made
	return made
}
