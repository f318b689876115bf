package hclnative

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxDepth is the maximum nesting of blocks and expressions. Deeper texts go to hclsyntax.
const maxDepth = 10000

// parser is a recursive descent parser with one token of lookahead. It has two modes: it
// checks a text without building anything, or it builds one expression.
type parser struct {
	scanner
	name  string
	prev  mark // the end of the last token
	lines bool // line breaks are tokens
	build bool
	depth int
	body  *bodies // collects blocks and attributes; nil while an expression is built
	parts []part  // the parts of the templates being built
	refs  *refs   // collects references; nil unless only they are needed
	code  *coder  // collects steps; nil unless they are needed
}

// peek returns the kind of the next token.
func (p *parser) peek() kind {
	if p.tok.kind == kNewline && !p.lines {
		for p.tok.kind == kNewline {
			p.scan()
		}
	}
	return p.tok.kind
}

// next consumes the next token.
func (p *parser) next() {
	p.prev = p.tok.endMark()
	p.scan()
}

// take consumes the next token if it has the kind k.
func (p *parser) take(k kind) bool {
	if p.peek() != k {
		return false
	}
	p.next()
	return true
}

func (p *parser) text() string { return p.src[p.tok.off:p.tok.end] }

// word reports whether the next token is the keyword w.
func (p *parser) word(w string) bool { return p.peek() == kIdent && p.text() == w }

func (p *parser) rng(from, to mark) hcl.Range { return p.between(from.pos(), to) }

func (p *parser) between(from hcl.Pos, to mark) hcl.Range {
	return hcl.Range{Filename: p.name, Start: from, End: to.pos()}
}

// tokRange returns the range of the next token.
func (p *parser) tokRange() hcl.Range { return p.rng(p.tok.mark, p.tok.endMark()) }

// expression parses an expression. In checking mode, it returns nil.
func (p *parser) expression() (hclsyntax.Expression, bool) {
	if p.depth++; p.depth > maxDepth {
		return nil, false
	}
	p.peek()
	start := p.tok.mark
	x, ok := p.binary(1)
	if ok && p.peek() == kQuestion {
		x, ok = p.conditional(start, x)
	}
	p.depth--
	return x, ok
}

func (p *parser) conditional(start mark, cond hclsyntax.Expression) (hclsyntax.Expression, bool) {
	p.next()
	yes, ok := p.expression()
	if !ok || !p.take(kColon) {
		return nil, false
	}
	no, ok := p.expression()
	if !ok || !p.build {
		p.code.emit(Cond, 0, 0)
		return nil, ok
	}
	return &hclsyntax.ConditionalExpr{
		Condition: cond, TrueResult: yes, FalseResult: no,
		SrcRange: hcl.Range{Filename: p.name, Start: start.pos(), End: no.Range().End},
	}, true
}

// binds is the precedence of each operator; 0 means that the token is no operator.
var binds = [kinds]uint8{
	kOr:      1,
	kAnd:     2,
	kEqualOp: 3, kNotEqual: 3,
	kGreater: 4, kGreaterEq: 4, kLess: 4, kLessEq: 4,
	kPlus: 5, kMinus: 5,
	kStar: 6, kSlash: 6, kPercent: 6,
}

func operation(k kind) *hclsyntax.Operation {
	switch k {
	case kOr:
		return hclsyntax.OpLogicalOr
	case kAnd:
		return hclsyntax.OpLogicalAnd
	case kEqualOp:
		return hclsyntax.OpEqual
	case kNotEqual:
		return hclsyntax.OpNotEqual
	case kGreater:
		return hclsyntax.OpGreaterThan
	case kGreaterEq:
		return hclsyntax.OpGreaterThanOrEqual
	case kLess:
		return hclsyntax.OpLessThan
	case kLessEq:
		return hclsyntax.OpLessThanOrEqual
	case kPlus:
		return hclsyntax.OpAdd
	case kMinus:
		return hclsyntax.OpSubtract
	case kStar:
		return hclsyntax.OpMultiply
	case kSlash:
		return hclsyntax.OpDivide
	default:
		return hclsyntax.OpModulo
	}
}

// binary parses operands and operators with at least the given precedence.
func (p *parser) binary(least uint8) (hclsyntax.Expression, bool) {
	left, ok := p.operand()
	for ok {
		op := p.peek()
		b := binds[op]
		if b == 0 || b < least {
			break
		}
		p.next()
		right, rightOK := p.binary(b + 1)
		if ok = rightOK; !ok || !p.build {
			p.code.emit(Binary, int(op), 0)
			left = nil
			continue
		}
		left = &hclsyntax.BinaryOpExpr{
			LHS: left, Op: operation(op), RHS: right,
			SrcRange: hcl.RangeBetween(left.Range(), right.Range()),
		}
	}
	return left, ok
}

// operand parses a term with its attributes and indexes.
func (p *parser) operand() (hclsyntax.Expression, bool) {
	if p.code != nil {
		return nil, p.codeOperand()
	}
	k := p.peek()
	start := p.tok.mark
	x, ok := p.term()
	if !ok {
		return nil, false
	}
	if k == kMinus || k == kBang {
		return x, true
	}
	return p.steps(x, start)
}

// scopeRef is a reference with space for the steps of most references.
type scopeRef struct {
	x     hclsyntax.ScopeTraversalExpr
	steps [3]hcl.Traverser
}

func (p *parser) term() (hclsyntax.Expression, bool) {
	start := p.tok.mark
	switch p.tok.kind {
	case kIdent:
		return p.name1()

	case kQuote:
		return p.quoted()

	case kHeredoc:
		return p.heredoc()

	case kNumber:
		v, ok := p.number()
		at := p.tokRange()
		p.next()
		if !ok || !p.build {
			p.code.value(v)
			return nil, ok
		}
		return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: at}, true

	case kOParen:
		p.next()
		lines := p.lines
		p.lines = false
		x, ok := p.expression()
		ok = ok && p.take(kCParen)
		p.lines = lines
		if !ok || !p.build {
			p.code.computed()
			return nil, ok
		}
		return &hclsyntax.ParenthesesExpr{Expression: x, SrcRange: p.rng(start, p.prev)}, true

	case kMinus, kBang:
		op, sign := hclsyntax.OpNegate, p.tok.kind
		if sign == kBang {
			op = hclsyntax.OpLogicalNot
		}
		if p.depth++; p.depth > maxDepth {
			return nil, false
		}
		symbol := p.tokRange()
		p.next()
		x, ok := p.operand()
		p.depth--
		if !ok || !p.build {
			p.code.emit(Unary, int(sign), 0)
			return nil, ok
		}
		return &hclsyntax.UnaryOpExpr{Op: op, Val: x, SrcRange: hcl.RangeBetween(symbol, x.Range()), SymbolRange: symbol}, true

	case kOBrack:
		return p.tuple()

	case kOBrace:
		return p.object()
	}
	return nil, false
}

// name1 parses a term that begins with a name: a call, a constant, or a reference.
func (p *parser) name1() (hclsyntax.Expression, bool) {
	name := p.text()
	start, end := p.tok.mark, p.tok.endMark()
	p.next()
	if k := p.peek(); k == kOParen || k == kDoubleColon {
		return p.call(name, start, end)
	}
	if !p.build && p.refs == nil {
		return nil, true
	}
	at := p.rng(start, end)
	if v, ok := constant(name); ok {
		return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: at}, true
	}
	ref := &scopeRef{}
	ref.x.SrcRange = at
	ref.x.Traversal = append(ref.steps[:0], hcl.TraverseRoot{Name: name, SrcRange: at})
	if p.refs != nil {
		p.refs.all = append(p.refs.all, &ref.x)
	}
	return &ref.x, true
}

// number checks the next token, a number, and returns its value in building mode.
func (p *parser) number() (cty.Value, bool) {
	s := p.text()
	if !p.build && p.refs == nil && p.code == nil && plainNumber(s) {
		return cty.NilVal, true
	}
	v, err := cty.ParseNumberVal(s)
	return v, err == nil
}

// plainNumber reports whether a number token consists of digits with at most one point
// between them.
func plainNumber(s string) bool {
	points := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
		case c == '.':
			points++
		default:
			return false
		}
	}
	return points < 2
}

func (p *parser) call(name string, start, end mark) (hclsyntax.Expression, bool) {
	for p.take(kDoubleColon) {
		if p.peek() != kIdent {
			return nil, false
		}
		if p.build || p.code != nil || p.refs != nil {
			name += "::" + p.text()
		}
		p.next()
		end = p.prev
	}
	if p.peek() != kOParen {
		return nil, false
	}
	open := p.tokRange()
	p.next()
	lines := p.lines
	p.lines = false
	var room [4]hclsyntax.Expression
	args := room[:0]
	count := 0
	var expand bool
	for p.peek() != kCParen {
		x, ok := p.expression()
		if !ok {
			return nil, false
		}
		count++
		typ := count == 2 && takesType(name)
		if typ && !p.build && (p.code != nil || p.refs != nil) {
			return nil, false // a type constraint has neither steps nor references
		}
		if p.build {
			if typ {
				x = typeLiteral(x)
			}
			args = append(args, x)
		}
		if p.take(kEllipsis) {
			expand = true
			break
		}
		if !p.take(kComma) {
			break
		}
	}
	if p.peek() != kCParen {
		return nil, false
	}
	shut := p.tokRange()
	p.next()
	p.lines = lines
	if !p.build {
		p.code.call(name, count)
		return nil, !expand || p.code == nil
	}
	return &hclsyntax.FunctionCallExpr{
		Name: name, Args: exact(args), ExpandFinal: expand,
		NameRange: p.rng(start, end), OpenParenRange: open, CloseParenRange: shut,
	}, true
}

func (p *parser) tuple() (hclsyntax.Expression, bool) {
	open := p.tok.mark
	openRange := p.tokRange()
	p.next()
	lines := p.lines
	p.lines = false
	if p.word("for") {
		x, ok := p.forExpr(openRange, kCBrack)
		p.lines = lines
		return x, ok
	}
	var room [8]hclsyntax.Expression
	items := room[:0]
	count := 0
	for p.peek() != kCBrack {
		x, ok := p.expression()
		if !ok {
			return nil, false
		}
		count++
		if p.build {
			items = append(items, x)
		}
		if !p.take(kComma) {
			break
		}
	}
	if !p.take(kCBrack) {
		return nil, false
	}
	p.lines = lines
	if !p.build {
		p.code.emit(Tuple, count, 0)
		return nil, true
	}
	return &hclsyntax.TupleConsExpr{Exprs: exact(items), SrcRange: p.rng(open, p.prev), OpenRange: openRange}, true
}

func (p *parser) object() (hclsyntax.Expression, bool) {
	open := p.tok.mark
	openRange := p.tokRange()
	p.next()
	lines := p.lines
	p.lines = false // line breaks before "for" are ignored
	if p.word("for") {
		x, ok := p.forExpr(openRange, kCBrace)
		p.lines = lines
		return x, ok
	}
	p.lines = true
	var room [8]hclsyntax.ObjectConsItem
	items := room[:0]
	keys := p.code.countKeys()
	for {
		k := p.peek()
		if k == kNewline {
			p.next()
			continue
		}
		if k == kCBrace {
			break
		}
		key, ok := p.key(k)
		if !ok {
			return nil, false
		}
		if !p.take(kEqual) && !p.take(kColon) {
			return nil, false
		}
		value, ok := p.expression()
		if !ok {
			return nil, false
		}
		if p.build {
			items = append(items, hclsyntax.ObjectConsItem{KeyExpr: key, ValueExpr: value})
		}
		if p.peek() == kCBrace {
			break
		}
		if !p.take(kComma) && !p.take(kNewline) {
			return nil, false
		}
	}
	p.next()
	p.lines = lines
	if !p.build {
		p.code.object(keys)
		return nil, true
	}
	return &hclsyntax.ObjectConsExpr{Items: exact(items), SrcRange: p.rng(open, p.prev), OpenRange: openRange}, true
}

// exact returns a copy without spare capacity, so that the buffer can be reused.
func exact[T any](all []T) []T {
	if len(all) == 0 {
		return nil
	}
	out := make([]T, len(all))
	copy(out, all)
	return out
}

// nameKey is an object key that is a plain name, in one allocation.
type nameKey struct {
	key   hclsyntax.ObjectConsKeyExpr
	x     hclsyntax.ScopeTraversalExpr
	steps [1]hcl.Traverser
}

// key parses the key of an object item. k is the kind of its first token.
func (p *parser) key(k kind) (hclsyntax.Expression, bool) {
	if p.code != nil {
		return nil, p.codeKey()
	}
	if p.build && k == kIdent {
		before := *p
		name, at := p.text(), p.tokRange()
		p.next()
		if next := p.peek(); (next == kEqual || next == kColon) && name != "true" && name != "false" && name != "null" {
			out := &nameKey{x: hclsyntax.ScopeTraversalExpr{SrcRange: at}}
			out.steps[0] = hcl.TraverseRoot{Name: name, SrcRange: at}
			out.x.Traversal = out.steps[:]
			out.key.Wrapped = &out.x
			return &out.key, true
		}
		*p = before
	}
	before := p.refs.count()
	x, ok := p.expression()
	if !ok || !p.build {
		if k == kIdent {
			p.refs.dropName(before, x)
		}
		return nil, ok
	}
	return &hclsyntax.ObjectConsKeyExpr{Wrapped: x, ForceNonLiteral: k == kOParen}, true
}

// loopHead parses the names and the collection of a for expression.
func (p *parser) loopHead() (key, value string, coll hclsyntax.Expression, ok bool) {
	if p.peek() != kIdent {
		return "", "", nil, false
	}
	value = p.text()
	p.next()
	if p.take(kComma) {
		if p.peek() != kIdent {
			return "", "", nil, false
		}
		key, value = value, p.text()
		p.next()
	}
	if !p.word("in") {
		return "", "", nil, false
	}
	p.next()
	coll, ok = p.expression()
	return key, value, coll, ok
}

func (p *parser) forExpr(open hcl.Range, shut kind) (hclsyntax.Expression, bool) {
	if p.code != nil {
		return nil, false
	}
	p.next() // for
	keyVar, valVar, coll, ok := p.loopHead()
	if !ok || !p.take(kColon) {
		return nil, false
	}
	object := shut == kCBrace
	before := p.refs.count()
	var key, cond hclsyntax.Expression
	value, ok := p.expression()
	if !ok || p.take(kFatArrow) != object {
		return nil, false
	}
	if object {
		key = value
		if value, ok = p.expression(); !ok {
			return nil, false
		}
	}
	group := p.take(kEllipsis)
	if group && !object {
		return nil, false
	}
	if p.word("if") {
		p.next()
		if cond, ok = p.expression(); !ok {
			return nil, false
		}
	}
	if p.peek() != shut {
		return nil, false
	}
	last := p.tokRange()
	p.next()
	if !p.build {
		p.refs.dropLocal(before, keyVar, valVar)
		return nil, true
	}
	return &hclsyntax.ForExpr{
		KeyVar: keyVar, ValVar: valVar, CollExpr: coll, KeyExpr: key, ValExpr: value, CondExpr: cond, Group: group,
		SrcRange: hcl.RangeBetween(open, last), OpenRange: open, CloseRange: last,
	}, true
}

// steps parses the attributes, indexes and splats after a term that begins at start.
func (p *parser) steps(x hclsyntax.Expression, start mark) (hclsyntax.Expression, bool) {
	for {
		switch p.peek() {
		case kDot:
			at := p.tok.mark
			p.next()
			switch p.peek() {
			case kIdent:
				name := p.text()
				p.next()
				if x != nil {
					r := p.rng(at, p.prev)
					x = step(x, hcl.TraverseAttr{Name: name, SrcRange: r}, r)
				}
			case kNumber:
				s, ok := p.legacyIndex(at)
				if !ok {
					return nil, false
				}
				if x != nil {
					x = step(x, s, s.SrcRange)
				}
			case kStar:
				var ok bool
				if x, ok = p.attrSplat(x, start, at); !ok {
					return nil, false
				}
			default:
				return nil, false
			}
		case kOBrack:
			at := p.tok.mark
			open := p.tokRange()
			p.next()
			if p.peek() == kStar {
				p.next()
				if !p.take(kCBrack) {
					return nil, false
				}
				return p.fullSplat(x, start, at)
			}
			lines := p.lines
			p.lines = false
			key, ok := p.indexKey()
			ok = ok && p.take(kCBrack)
			p.lines = lines
			if !ok {
				return nil, false
			}
			if x != nil {
				x = p.index(x, key, start, open, p.rng(at, p.prev))
			}
		default:
			return x, true
		}
	}
}

// step adds an attribute or a constant index to an expression.
func step(x hclsyntax.Expression, next hcl.Traverser, at hcl.Range) hclsyntax.Expression {
	switch x := x.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		x.Traversal = append(x.Traversal, next)
		x.SrcRange.End = at.End
		return x
	case *hclsyntax.RelativeTraversalExpr:
		x.Traversal = append(x.Traversal, next)
		x.SrcRange.End = at.End
		return x
	}
	return &hclsyntax.RelativeTraversalExpr{Source: x, Traversal: hcl.Traversal{next}, SrcRange: hcl.RangeBetween(x.Range(), at)}
}

// legacyIndex parses an index that is written as an attribute, as in a.0.
func (p *parser) legacyIndex(dot mark) (hcl.TraverseIndex, bool) {
	for _, c := range []byte(p.text()) {
		if c == '.' {
			return hcl.TraverseIndex{}, false
		}
	}
	v, ok := p.number()
	p.next()
	return hcl.TraverseIndex{Key: v, SrcRange: p.rng(dot, p.prev)}, ok
}

// attrSplat parses .* and the attributes after it.
func (p *parser) attrSplat(x hclsyntax.Expression, start, dot mark) (hclsyntax.Expression, bool) {
	p.next()
	marker := p.rng(dot, p.prev)
	p.peek()
	first := p.tok.mark
	var each hcl.Traversal
	for p.peek() == kDot {
		at := p.tok.mark
		p.next()
		switch p.peek() {
		case kNumber:
			s, ok := p.legacyIndex(at)
			if !ok {
				return nil, false
			}
			if p.build {
				each = append(each, s)
			}
		case kIdent:
			name := p.text()
			p.next()
			if p.build {
				each = append(each, hcl.TraverseAttr{Name: name, SrcRange: p.rng(at, p.prev)})
			}
		default:
			return nil, false
		}
	}
	if !p.build {
		return nil, true
	}
	item := &hclsyntax.AnonSymbolExpr{SrcRange: marker}
	out := &hclsyntax.SplatExpr{Source: x, Each: item, Item: item, SrcRange: p.rng(start, p.prev), MarkerRange: marker}
	if len(each) > 0 {
		out.Each = &hclsyntax.RelativeTraversalExpr{Source: item, Traversal: each, SrcRange: p.rng(first, p.prev)}
	}
	return out, true
}

// fullSplat parses the attributes and indexes after [*], which apply to each element.
func (p *parser) fullSplat(x hclsyntax.Expression, start, open mark) (hclsyntax.Expression, bool) {
	if p.depth++; p.depth > maxDepth {
		return nil, false
	}
	var item hclsyntax.Expression
	marker := p.rng(open, p.prev)
	anon := &hclsyntax.AnonSymbolExpr{SrcRange: marker}
	if p.build {
		item = anon
	}
	each, ok := p.steps(item, open)
	p.depth--
	if !ok || !p.build {
		return nil, ok
	}
	return &hclsyntax.SplatExpr{
		Source: x, Each: each, Item: anon,
		SrcRange:    hcl.Range{Filename: p.name, Start: start.pos(), End: each.Range().End},
		MarkerRange: marker,
	}, true
}

// indexKey parses the key in brackets. It builds a literal key also in checking mode,
// because it extends the reference.
func (p *parser) indexKey() (hclsyntax.Expression, bool) {
	if p.refs == nil {
		return p.expression()
	}
	noted := p.refs
	p.refs, p.build = nil, true
	key, ok := p.expression()
	p.refs, p.build = noted, false
	if ok {
		noted.of(key)
	}
	return key, ok
}

func (p *parser) index(x, key hclsyntax.Expression, start mark, open, brackets hcl.Range) hclsyntax.Expression {
	switch k := key.(type) {
	case *hclsyntax.LiteralValueExpr:
		return step(x, hcl.TraverseIndex{Key: k.Val, SrcRange: brackets}, brackets)
	case *hclsyntax.TemplateExpr:
		if k.IsStringLiteral() {
			v, _ := k.Value(nil)
			return step(x, hcl.TraverseIndex{Key: v, SrcRange: brackets}, brackets)
		}
	}
	if !p.build {
		return nil
	}
	return &hclsyntax.IndexExpr{
		Collection: x, Key: key,
		SrcRange:  hcl.Range{Filename: p.name, Start: start.pos(), End: brackets.End},
		OpenRange: open, BracketRange: brackets,
	}
}
