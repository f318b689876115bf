package hclnative

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// template is the quoted string or heredoc being parsed.
type template struct {
	marker    string // the end marker of a heredoc; "" for a quoted string
	lineStart bool   // a line of a heredoc begins here
}

type partKind uint8

const (
	pLiteral partKind = iota
	pInterp
	pIf
	pElse
	pEndIf
	pFor
	pEndFor
	pEnd
)

// part is a part of a template: literal text, an interpolation, or a directive.
type part struct {
	kind     partKind
	text     string // the text of a literal
	key, val string // the variables of a for directive
	x        hclsyntax.Expression
	at       hcl.Range
	value    int // the index of a literal among the steps
}

// stringLit is a string without interpolations, in one allocation.
type stringLit struct {
	t     hclsyntax.TemplateExpr
	l     hclsyntax.LiteralValueExpr
	parts [1]hclsyntax.Expression
}

// quoted parses a quoted template. Its opening quote is the next token.
func (p *parser) quoted() (hclsyntax.Expression, bool) {
	open := p.tok.mark
	if p.build || p.code != nil {
		// Most strings are a single literal.
		from := p.mark
		if s, end, ok := p.plainText(); ok {
			if p.code != nil {
				p.code.value(cty.StringVal(s))
				return nil, true
			}
			m := &stringLit{}
			m.l.Val = cty.StringVal(s)
			m.l.SrcRange = p.rng(from, mark{end, from.line, from.bol})
			m.parts[0] = &m.l
			m.t.Parts = m.parts[:]
			m.t.SrcRange = p.rng(open, p.prev)
			return &m.t, true
		}
	}
	return p.template(open, "", false)
}

// plainText parses a quoted template that is one ASCII literal. Its opening quote is the
// next token. end is the offset of the closing quote.
func (p *parser) plainText() (s string, end int, ok bool) {
	end, esc, ascii, ok := quotedRun(p.src, p.off)
	if !ok || !ascii || end == p.off || end >= len(p.src) || p.src[end] != '"' {
		return "", end, false
	}
	s = p.src[p.off:end]
	if esc {
		s = unescape(s)
	}
	p.off = end + 1
	p.prev = p.mark
	p.scan()
	return s, end, true
}

// heredoc parses a heredoc. Its first line is the next token.
func (p *parser) heredoc() (hclsyntax.Expression, bool) {
	open := p.tok.mark
	marker := p.src[p.tok.off+2 : p.tok.end-1]
	flush := marker[0] == '-'
	if flush {
		marker = marker[1:]
	}
	marker = strings.TrimSuffix(marker, "\r")
	return p.template(open, marker, flush)
}

// template parses a quoted template, or a heredoc with the given end marker.
func (p *parser) template(open mark, marker string, flush bool) (hclsyntax.Expression, bool) {
	if p.depth++; p.depth > maxDepth {
		return nil, false
	}
	around := len(p.parts)
	if !p.templateParts(&template{marker: marker, lineStart: marker != ""}) {
		return nil, false
	}
	parts := p.parts[around:]
	p.parts = p.parts[:around]
	p.prev = p.mark
	p.scan()
	p.depth--
	if !p.build && p.code == nil {
		return nil, true
	}
	if len(parts) == 0 && p.build {
		parts = append(parts, part{at: p.rng(p.prev, p.prev)})
	}
	if flush {
		p.flush(parts)
	}
	if p.code != nil {
		p.code.template(parts)
		return nil, true
	}
	parts = joinLiterals(parts)
	at := p.rng(open, p.prev)
	if len(parts) == 1 && parts[0].kind == pInterp {
		return &hclsyntax.TemplateWrapExpr{Wrapped: parts[0].x, SrcRange: at}, true
	}
	b := templateBuilder{parts: parts}
	return &hclsyntax.TemplateExpr{Parts: b.until(pEnd), SrcRange: at}, true
}

// templateParts parses a template from the scanner's position to its end. In building
// mode, it adds the parts to the parser's stack.
func (p *parser) templateParts(t *template) bool {
	var open []partKind            // the directives that are still open
	ltrim, literal := false, false // the last part cuts the white space after it; the last part was a literal
	for {
		wasLiteral := literal
		literal = false
		from := p.mark
		piece, ok := p.piece(t)
		if !ok {
			return false
		}
		switch piece {
		case pieceEnd:
			return len(open) == 0
		case pieceLiteral:
			if p.build || p.code != nil {
				s := p.src[from.off:p.off]
				if t.marker == "" {
					s = unescape(s)
				} else if len(s) > 2 && s[2] == '{' && s[0] == s[1] && (s[0] == '$' || s[0] == '%') {
					s = s[1:]
				}
				if ltrim {
					s = strings.TrimLeftFunc(s, unicode.IsSpace)
				}
				p.part(part{text: s, at: p.rng(from, p.mark), value: p.code.later()})
			}
			ltrim, literal = false, true
			continue
		}
		if (p.build || p.code != nil) && wasLiteral && p.src[p.off-1] == '~' {
			last := &p.parts[len(p.parts)-1]
			last.text = strings.TrimRightFunc(last.text, unicode.IsSpace)
		}
		lines := p.lines
		p.lines = false
		p.scan()
		var made part
		if piece == pieceInterp {
			made.kind = pInterp
			made.x, ok = p.expression()
		} else if p.code == nil {
			made, open, ok = p.directive(open)
		} else {
			ok = false
		}
		k := p.peek()
		if !ok || k != kCBrace && k != kCBraceTrim {
			return false
		}
		if p.build || p.code != nil {
			made.at = p.rng(from, p.tok.endMark())
			p.part(made)
		}
		if p.rec != nil {
			(*p.rec)[len(*p.rec)-1].kind = kSeqEnd
		}
		ltrim = k == kCBraceTrim
		p.lines = lines
	}
}

// part adds a part of a template.
func (p *parser) part(t part) {
	if p.parts == nil {
		p.parts = make([]part, 0, 4)
	}
	p.parts = append(p.parts, t)
}

// directive parses the content of %{ } and opens or closes the directive.
func (p *parser) directive(open []partKind) (d part, _ []partKind, ok bool) {
	if p.peek() != kIdent {
		return d, open, false
	}
	word := p.text()
	p.next()
	top := pEnd
	if len(open) > 0 {
		top = open[len(open)-1]
	}
	switch word {
	case "if":
		d.kind = pIf
		d.x, ok = p.expression()
		return d, append(open, pIf), ok
	case "for":
		p.refs.loop()
		d.kind = pFor
		d.key, d.val, d.x, ok = p.loopHead()
		return d, append(open, pFor), ok
	case "else":
		if top != pIf {
			return d, open, false
		}
		open[len(open)-1] = pElse
		d.kind = pElse
		return d, open, true
	case "endif":
		if top != pIf && top != pElse {
			return d, open, false
		}
		d.kind = pEndIf
		return d, open[:len(open)-1], true
	case "endfor":
		if top != pFor {
			return d, open, false
		}
		d.kind = pEndFor
		return d, open[:len(open)-1], true
	}
	return d, open, false
}

type piece uint8

const (
	pieceLiteral piece = iota
	pieceInterp
	pieceControl
	pieceEnd
)

// piece moves after the next piece of a template: literal text, the opening of a sequence,
// or the end. It cuts literals like hclsyntax, because trimming depends on it.
func (p *parser) piece(t *template) (piece, bool) {
	from := p.off
	out, ok := p.cutPiece(t)
	if p.rec != nil {
		kinds := [...]kind{pieceLiteral: kQuotedLit, pieceInterp: kInterp, pieceControl: kControl, pieceEnd: kCQuote}
		if t.marker != "" {
			kinds[pieceLiteral], kinds[pieceEnd] = kStringLit, kCHeredoc
		}
		p.note(kinds[out], from, p.off)
	}
	return out, ok
}

func (p *parser) cutPiece(t *template) (piece, bool) {
	src, i := p.src, p.off
	if i == len(src) {
		return 0, false
	}
	c := src[i]
	if c == '$' || c == '%' {
		return p.sigil(t, c)
	}
	if t.marker != "" {
		return p.heredocLine(t)
	}
	if c == '"' {
		p.off++
		return pieceEnd, true
	}
	end, _, ascii, ok := quotedRun(src, i)
	if !ok || end == i {
		return 0, false
	}
	if ascii {
		p.off = end
	} else {
		p.cross(end)
	}
	return pieceLiteral, true
}

// sigil parses a piece that begins with $ or %.
func (p *parser) sigil(t *template, c byte) (piece, bool) {
	src, i := p.src, p.off
	if i+1 == len(src) {
		return 0, false
	}
	tilde := func(n int) int {
		if n < len(src) && src[n] == '~' {
			return n + 1
		}
		return n
	}
	if src[i+1] == '{' {
		p.off = tilde(i + 2)
		t.lineStart = false
		if c == '$' {
			return pieceInterp, true
		}
		return pieceControl, true
	}
	escaped := src[i+1] == c && i+2 < len(src) && src[i+2] == '{'
	end := i + 1
	if escaped {
		end = tilde(i + 3)
	}
	t.lineStart = false
	if t.marker != "" {
		// A sequence at the end of a line includes the line break. A sigil without a brace that
		// has one byte after it before the line break includes that byte.
		switch {
		case escaped && strings.HasPrefix(src[end:], "\n"):
			end++
			t.lineStart = true
		case escaped && strings.HasPrefix(src[end:], "\r\n"):
			end += 2
			t.lineStart = true
		case !escaped && i+2 < len(src) && src[i+2] == '\n':
			end++
			t.lineStart = true
		}
	}
	p.cross(end)
	return pieceLiteral, true
}

// heredocLine reads text of a heredoc, up to the end of the line at most.
func (p *parser) heredocLine(t *template) (piece, bool) {
	src, i := p.src, p.off
	ascii := true
	for i < len(src) {
		c := src[i]
		if c >= utf8.RuneSelf {
			n := wide(src, i)
			if n == 0 {
				return 0, false
			}
			ascii = false
			i += n
			continue
		}
		if c == '\n' || c == '\r' || c == '$' || c == '%' {
			break
		}
		i++
	}
	if i == len(src) {
		return 0, false
	}
	if src[i] == '$' || src[i] == '%' {
		t.lineStart = false
		if ascii {
			p.off = i
		} else {
			p.cross(i)
		}
		return pieceLiteral, true
	}
	text := i
	if src[i] == '\r' {
		i++
	}
	if i == len(src) || src[i] != '\n' {
		return 0, false
	}
	if t.lineStart && strings.TrimSpace(src[p.off:text]) == t.marker {
		p.cross(text)
		return pieceEnd, true
	}
	t.lineStart = true
	if !ascii {
		p.cross(i + 1)
		return pieceLiteral, true
	}
	p.line++
	p.off, p.bol = i+1, i+1
	return pieceLiteral, true
}

var quotedStop = [256]bool{'"': true, '$': true, '%': true, '\\': true, '\n': true, '\r': true}

// quotedRun returns the end of the literal text at i in a quoted template.
func quotedRun(src string, i int) (end int, escapes, ascii, ok bool) {
	ascii = true
	for i < len(src) {
		c := src[i]
		switch {
		case c >= utf8.RuneSelf:
			n := wide(src, i)
			if n == 0 {
				return i, escapes, ascii, false
			}
			ascii = false
			i += n
		case !quotedStop[c]:
			i++
		case c == '\\':
			if i+1 == len(src) || !escape(src[i:]) {
				return i, escapes, ascii, false
			}
			escapes = true
			i += 2
		case c == '\n' || c == '\r':
			return i, escapes, ascii, false
		default:
			return i, escapes, ascii, true
		}
	}
	return i, escapes, ascii, false
}

// escape reports whether s begins with an escape sequence.
func escape(s string) bool {
	switch s[1] {
	case 'n', 'r', 't', '"', '\\':
		return true
	case 'u':
		return hexRune(s, 4)
	case 'U':
		return hexRune(s, 8)
	}
	return false
}

func hexRune(s string, digits int) bool {
	if len(s) < 2+digits {
		return false
	}
	n, err := strconv.ParseUint(s[2:2+digits], 16, 32)
	return err == nil && utf8.RuneLen(rune(n)) >= 0
}

// unescape replaces the escape sequences in a piece of a quoted template.
func unescape(s string) string {
	if len(s) > 2 && s[2] == '{' && s[0] == s[1] && (s[0] == '$' || s[0] == '%') {
		return s[1:]
	}
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u', 'U':
			digits := 4
			if s[i] == 'U' {
				digits = 8
			}
			n, _ := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
			out = utf8.AppendRune(out, rune(n))
			i += digits
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

// flush removes the common indentation of the lines of a heredoc. A line begins with a
// literal that follows a line break. Blank lines are ignored, and a sequence at the start
// of a line has no indentation.
func (p *parser) flush(parts []part) {
	least := -1
	var lines []int
	begins := true
	for i := range parts {
		t := &parts[i]
		if begins {
			begins = false
			n := 0
			if t.kind == pLiteral {
				rest := strings.TrimLeftFunc(t.text, unicode.IsSpace)
				if rest == "" && strings.HasSuffix(t.text, "\n") {
					n = -1
				} else {
					n = clusters(t.text[:len(t.text)-len(rest)])
					lines = append(lines, i)
				}
			}
			if n >= 0 && (least < 0 || n < least) {
				least = n
			}
		}
		if t.kind == pLiteral && strings.HasSuffix(t.text, "\n") {
			begins = true
		}
	}
	for _, i := range lines {
		t := &parts[i]
		n := len(t.text)
		rest := []byte(t.text)
		for range least {
			rest = rest[nextCluster(rest):]
		}
		t.text = t.text[n-len(rest):]
		t.at.Start.Column += least
		t.at.Start.Byte += n - len(rest)
	}
}

func clusters(s string) int {
	if isASCII(s) && strings.IndexByte(s, '\r') < 0 {
		return len(s)
	}
	n := 0
	for b := []byte(s); len(b) > 0; n++ {
		b = b[nextCluster(b):]
	}
	return n
}

// joinLiterals joins consecutive literals.
func joinLiterals(parts []part) []part {
	out := parts[:0]
	for i := 0; i < len(parts); {
		t := parts[i]
		n := i + 1
		if t.kind == pLiteral {
			for n < len(parts) && parts[n].kind == pLiteral {
				n++
			}
			if n > i+1 {
				var b strings.Builder
				for _, more := range parts[i:n] {
					b.WriteString(more.text)
				}
				t.text = b.String()
				t.at.End = parts[n-1].at.End
			}
		}
		out = append(out, t)
		i = n
	}
	return out
}

// templateBuilder builds expressions from parts with balanced directives.
type templateBuilder struct {
	parts []part
	at    int
}

// until builds expressions up to the closing directive or else.
func (b *templateBuilder) until(shut partKind) []hclsyntax.Expression {
	var out []hclsyntax.Expression
	if shut == pEnd && len(b.parts) > 1 {
		out = make([]hclsyntax.Expression, 0, len(b.parts))
	}
	for b.at < len(b.parts) {
		t := &b.parts[b.at]
		switch t.kind {
		case pLiteral:
			out = append(out, &hclsyntax.LiteralValueExpr{Val: cty.StringVal(t.text), SrcRange: t.at})
		case pInterp:
			out = append(out, t.x)
		case pIf:
			out = append(out, b.conditional())
		case pFor:
			out = append(out, b.loop())
		default:
			return out
		}
		b.at++
	}
	return out
}

func (b *templateBuilder) conditional() hclsyntax.Expression {
	open := &b.parts[b.at]
	b.at++
	yes := b.until(pEndIf)
	var no []hclsyntax.Expression
	if b.parts[b.at].kind == pElse {
		b.at++
		no = b.until(pEndIf)
	}
	shut := b.parts[b.at].at
	return &hclsyntax.ConditionalExpr{
		Condition:   open.x,
		TrueResult:  sequence(yes, hcl.Range{Filename: open.at.Filename, Start: open.at.End, End: open.at.End}),
		FalseResult: sequence(no, hcl.Range{Filename: shut.Filename, Start: shut.Start, End: shut.Start}),
		SrcRange:    hcl.RangeBetween(open.at, shut),
	}
}

func (b *templateBuilder) loop() hclsyntax.Expression {
	open := &b.parts[b.at]
	b.at++
	body := b.until(pEndFor)
	shut := b.parts[b.at].at
	return &hclsyntax.TemplateJoinExpr{Tuple: &hclsyntax.ForExpr{
		KeyVar: open.key, ValVar: open.val, CollExpr: open.x,
		ValExpr:  sequence(body, hcl.Range{Filename: open.at.Filename, Start: open.at.End, End: open.at.End}),
		SrcRange: hcl.RangeBetween(open.at, shut), OpenRange: open.at, CloseRange: shut,
	}}
}

// sequence returns a nested template: an empty string at the range empty if it has no parts.
func sequence(parts []hclsyntax.Expression, empty hcl.Range) hclsyntax.Expression {
	if len(parts) == 0 {
		parts = []hclsyntax.Expression{&hclsyntax.LiteralValueExpr{Val: cty.StringVal(""), SrcRange: empty}}
	}
	return &hclsyntax.TemplateExpr{Parts: parts, SrcRange: hcl.RangeBetween(parts[0].Range(), parts[len(parts)-1].Range())}
}
