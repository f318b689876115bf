package cliconfig

// CLI configuration files are written in JSON or in the first version of HCL, whose library is
// unmaintained. Settings only need a small part of that language: keys, `=` or labels, and values
// that are strings, numbers, booleans, lists or objects. Both forms are parsed into nodes.

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

type nodeKind uint8

const (
	stringNode nodeKind = iota
	numberNode
	boolNode
	listNode
	objectNode
)

// A node is a value with its source range.
type node struct {
	kind  nodeKind
	text  string // text of strings, numbers and booleans
	list  []*node
	items []item
	at    source.Range
}

// An item is one entry of an object: a name, labels, and the value. Without labels it may be
// written with "=" or as a block.
type item struct {
	keys    []string
	value   *node
	assign  bool
	at      source.Range // source range of the first key
	isBlock bool
}

const maxDepth = 100

type parser struct {
	src   []byte
	name  string
	pos   hcl.Pos
	depth int
}

// A syntaxError is a syntax error with its source range.
type syntaxError struct {
	at  source.Range
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// parseText parses a whole file in either form.
func parseText(src []byte, name string) (*node, *syntaxError) {
	p := &parser{src: src, name: name, pos: hcl.InitialPos}
	var root *node
	var err error
	if trimmed := strings.TrimLeft(string(src), " \t\r\n\ufeff"); strings.HasPrefix(trimmed, "{") {
		root, err = parseJSON(src, name)
	} else {
		root, err = p.object(false)
	}
	if err == nil {
		return root, nil
	}
	var se *syntaxError
	if !errors.As(err, &se) {
		se = &syntaxError{at: p.here(), msg: err.Error()}
	}
	return nil, se
}

func (p *parser) here() source.Range {
	return source.Range{Filename: p.name, Start: p.pos, End: p.pos}
}

func (p *parser) fail(format string, args ...any) error {
	return &syntaxError{at: p.here(), msg: fmt.Sprintf(format, args...)}
}

func (p *parser) peek() byte {
	if p.pos.Byte >= len(p.src) {
		return 0
	}
	return p.src[p.pos.Byte]
}

func (p *parser) at(prefix string) bool {
	return strings.HasPrefix(string(p.src[p.pos.Byte:min(len(p.src), p.pos.Byte+len(prefix))]), prefix)
}

func (p *parser) end() bool { return p.pos.Byte >= len(p.src) }

func (p *parser) advance(n int) {
	for range n {
		if p.end() {
			return
		}
		c := p.src[p.pos.Byte]
		p.pos.Byte++
		switch {
		case c == '\n':
			p.pos.Line++
			p.pos.Column = 1
		case utf8.RuneStart(c):
			p.pos.Column++
		}
	}
}

// space skips white space and comments.
func (p *parser) space() error {
	for !p.end() {
		switch c := p.peek(); {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || p.at("\ufeff"):
			p.advance(1)
		case c == '#' || p.at("//"):
			for !p.end() && p.peek() != '\n' {
				p.advance(1)
			}
		case p.at("/*"):
			p.advance(2)
			for !p.at("*/") {
				if p.end() {
					return p.fail("A comment is not closed.")
				}
				p.advance(1)
			}
			p.advance(2)
		default:
			return nil
		}
	}
	return nil
}

// object parses items up to the closing brace, or up to the end of the file.
func (p *parser) object(braces bool) (*node, error) {
	out := &node{kind: objectNode, at: p.here()}
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("Objects are nested too deeply.")
	}
	defer func() { p.depth-- }()
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		switch {
		case p.end() && braces:
			return nil, p.fail("The file ends inside of a block or object: a closing brace is missing.")
		case p.end():
			return out, nil
		case p.peek() == '}' && braces:
			p.advance(1)
			return out, nil
		case p.peek() == ',' && len(out.items) > 0:
			p.advance(1)
			continue
		}
		it, err := p.item()
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, it)
	}
}

func (p *parser) item() (item, error) {
	it := item{at: p.here()}
	for {
		if err := p.space(); err != nil {
			return it, err
		}
		switch c := p.peek(); {
		case c == '=' && len(it.keys) == 1:
			p.advance(1)
			if err := p.space(); err != nil {
				return it, err
			}
			it.assign = true
			var err error
			it.value, err = p.value()
			return it, err
		case c == '{' && len(it.keys) > 0:
			p.advance(1)
			it.isBlock = true
			var err error
			it.value, err = p.object(true)
			return it, err
		case c == '"':
			key, err := p.quoted()
			if err != nil {
				return it, err
			}
			it.keys = append(it.keys, key)
		case isIdent(c):
			it.keys = append(it.keys, p.ident())
		default:
			return it, p.fail("Expected the name of a setting, \"=\" or an opening brace here.")
		}
		if len(it.keys) == 1 {
			it.at.End = p.pos
		}
	}
}

func isIdent(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c == ':' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (p *parser) ident() string {
	start := p.pos.Byte
	for !p.end() && isIdent(p.peek()) {
		p.advance(1)
	}
	return string(p.src[start:p.pos.Byte])
}

func (p *parser) value() (*node, error) {
	out := &node{at: p.here()}
	var err error
	switch c := p.peek(); {
	case c == '"':
		out.text, err = p.quoted()
	case p.at("<<"):
		out.text, err = p.heredoc()
	case c == '{':
		p.advance(1)
		out, err = p.object(true)
	case c == '[':
		out, err = p.listOf()
	case isIdent(c) || c == '+':
		if c == '+' {
			p.advance(1)
		}
		out.text = p.ident()
		switch {
		case out.text == "true" || out.text == "false":
			out.kind = boolNode
		case out.text != "" && strings.ContainsAny(out.text[:1], "0123456789-."):
			out.kind = numberNode
		default:
			return nil, &syntaxError{at: out.at, msg: fmt.Sprintf("%q is not a value; put strings in quotes.", out.text)}
		}
	default:
		return nil, p.fail("Expected a value here.")
	}
	if err != nil {
		return nil, err
	}
	out.at.End = p.pos
	return out, nil
}

func (p *parser) listOf() (*node, error) {
	out := &node{kind: listNode, at: p.here()}
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("Lists are nested too deeply.")
	}
	defer func() { p.depth-- }()
	p.advance(1)
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.peek() == ']' {
			p.advance(1)
			return out, nil
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out.list = append(out.list, v)
		if err := p.space(); err != nil {
			return nil, err
		}
		switch p.peek() {
		case ',':
			p.advance(1)
		case ']':
		default:
			return nil, p.fail("Expected a comma or the end of the list here.")
		}
	}
}
