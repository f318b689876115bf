package hclnative

import (
	"math"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A Code is an expression as steps that a machine with a stack takes in turn, in a tenth of
// the memory of its tree. It knows where references stand and no other place: what fails is
// for the tree to tell.
type Code struct {
	Steps  []Step
	Values []cty.Value     // of Const
	Refs   []Ref           // of Refer, each once, in the order of the text
	Paths  []hcl.Traversal // of Take, without places
	Names  []string        // of Call and Object
}

// A Step takes values from the stack and puts one there.
type Step struct {
	Op Op
	N  uint16
	A  uint32
}

// Op is what a step does.
type Op uint8

// The operations. What a step takes is what was put there last, in the order of the text.
const (
	Const    Op = iota // puts Values[A]
	Refer              // puts what Refs[A] refers to
	Take               // takes a value and goes Paths[A] into it
	Index              // takes a collection and a key
	Binary             // takes two operands; Operator(A) of them
	Unary              // takes one; Operator(A) of it
	Cond               // takes a condition and what holds if it is true and if it is false
	Call               // takes N arguments and calls Names[A]
	Object             // takes N values, whose keys are Names[A:A+N]
	Tuple              // takes A values
	Template           // takes A values and writes them one behind the other
)

// A Ref is a reference and its place. That of a Code has no places in its steps, and may
// share them with others.
type Ref struct {
	hcl.Traversal
	At hcl.Range
}

// Operator is the operation of a Binary or Unary step.
func (s Step) Operator() *hclsyntax.Operation {
	switch {
	case s.Op != Unary:
		return operation(kind(s.A))
	case kind(s.A) == kBang:
		return hclsyntax.OpLogicalNot
	}
	return hclsyntax.OpNegate
}

// Late is the expression of an argument, of which nothing is built before it is asked for,
// and nothing is kept.
type Late struct {
	in          *stretch
	start, stop place
}

var _ hcl.Expression = (*Late)(nil)

// Tree builds the expression as hclsyntax makes it.
func (x *Late) Tree() hclsyntax.Expression {
	p := x.parser()
	out, _ := p.expression()
	return out
}

// parser stands before the expression, and builds it.
func (x *Late) parser() parser {
	var p parser
	p.from(x.in, x.start)
	return p
}

// coders are used again: each is needed for one expression alone. Those of large expressions
// are not: others would go through their room each time.
var coders = sync.Pool{New: func() any { return new(coder) }}

const (
	mostSteps = 1024
	mostParts = 64
)

// Code reads the expression into steps; false if it has what there is no step for: a loop, a
// splat, a directive of a template, a key that is computed, or a list of arguments.
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

// Value has hclsyntax evaluate the expression.
func (x *Late) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) { return x.Tree().Value(ctx) }

// Variables are the references of the expression.
func (x *Late) Variables() []hcl.Traversal {
	var found refs
	x.refer(&found)
	return found.traversals()
}

// Range is where the expression stands.
func (x *Late) Range() hcl.Range { return x.in.rng(x.start, x.stop) }

// StartRange is where the expression begins, as its tree says.
func (x *Late) StartRange() hcl.Range { return x.Tree().StartRange() }

// UnwrapExpression builds the tree for those who look at what an expression is.
func (x *Late) UnwrapExpression() hcl.Expression { return x.Tree() }

// LateContent is Content with expressions that are not built: each is a Late, but for those
// of a body that hclsyntax has to complain of.
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

// coder collects the steps of an expression while it is read. Methods that note something
// may be called of nil, where nothing is to be noted.
type coder struct {
	Code
	file    *File
	literal int            // how many steps there were behind the last that is a literal and nothing else
	full    bool           // whether there was more than a step can say
	keys    []string       // of the objects that are read at present
	parts   []part         // room for those of templates
	texts   []string       // of the references
	known   map[string]int // the index of each reference by its text; nil where there are few
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

// done is what was collected, without room for more.
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

// value notes a literal.
func (c *coder) value(v cty.Value) {
	if c == nil {
		return
	}
	c.Values = append(c.Values, v)
	c.emit(Const, len(c.Values)-1, 0)
	c.literal = len(c.Steps)
}

// computed says that what was read last is no literal, though it may have the value of one.
func (c *coder) computed() {
	if c != nil {
		c.literal = -1
	}
}

// call notes a call of a function whose arguments were read.
func (c *coder) call(name string, args int) {
	if c != nil {
		c.Names = append(c.Names, name)
		c.emit(Call, len(c.Names)-1, args)
	}
}

// takeLiteral takes the last step back if it is the only one behind n and a literal.
func (c *coder) takeLiteral(n int) (cty.Value, bool) {
	if len(c.Steps) != n+1 || c.literal != n+1 {
		return cty.NilVal, false
	}
	v := c.Values[len(c.Values)-1]
	c.Steps, c.Values, c.literal = c.Steps[:n], c.Values[:len(c.Values)-1], -1
	return v, true
}

// object notes an object whose values were read, with the keys behind from.
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

// later puts a literal of which the text is not known yet, and yields the index of its value.
func (c *coder) later() int {
	if c == nil {
		return 0
	}
	c.value(cty.NilVal)
	return len(c.Values) - 1
}

// template notes a template whose parts were read. Literals that follow one another are
// not joined: all is written as one text.
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

// codeKey reads the key of an item of an object, which is a name or a text that is written
// out.
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

// codeOperand is operand for steps.
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

// constant is the value of a name that stands for one.
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

// codeSteps reads the attributes and indexes behind a term that begins at start: a reference
// if it has a name.
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
				return false // of a literal that is not plain
			}
			p.code.emit(Index, 0, 0)
		default:
			flush()
			return true
		}
		end = p.prev
	}
}

// literalKey reads a number or a text without interpolations.
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

// fewRefs is how many references are looked through to find one again.
const fewRefs = 8

// ref notes a reference with its text.
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

// shared are the paths that a file repeats, by their text.
type shared struct {
	mu    sync.Mutex
	paths map[string]hcl.Traversal
}

// path makes the path of a reference. Short ones, which a file repeats, are made once.
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
