package cliconfig

import (
	"strings"
)

// quoted parses a string. It keeps ${…} unchanged.
func (p *parser) quoted() (string, error) {
	start := p.here()
	p.advance(1)
	var b strings.Builder
	depth := 0
	for {
		switch c := p.peek(); {
		case p.end() || c == '\n' && depth == 0:
			return "", &syntaxError{at: start, msg: "A string is not closed."}
		case depth == 0 && c == '"':
			p.advance(1)
			return b.String(), nil
		case p.at("${"):
			depth++
			b.WriteString("${")
			p.advance(2)
			continue
		case depth > 0 && (c == '{' || c == '}'):
			depth += map[byte]int{'{': 1, '}': -1}[c]
			b.WriteByte(c)
		case depth == 0 && c == '\\':
			p.advance(1)
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteString(r)
			continue
		default:
			b.WriteByte(c)
		}
		p.advance(1)
	}
}

func (p *parser) escape() (string, error) {
	c := p.peek()
	digits := map[byte]int{'u': 4, 'U': 8, 'x': 2}[c]
	if digits == 0 {
		plain, ok := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '"': `"`, '\\': `\`, 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v"}[c]
		if !ok {
			return "", p.fail("There is no escape sequence \\%c; write a backslash as \\\\.", c)
		}
		p.advance(1)
		return plain, nil
	}
	p.advance(1)
	var r rune
	for range digits {
		d := strings.IndexByte("0123456789abcdef", p.peek()|0x20)
		if d < 0 || p.end() {
			return "", p.fail("Expected %d hexadecimal digits in the escape sequence.", digits)
		}
		r = r<<4 | rune(d)
		p.advance(1)
	}
	return string(r), nil
}

func (p *parser) heredoc() (string, error) {
	start := p.here()
	p.advance(2)
	indent := p.peek() == '-'
	if indent {
		p.advance(1)
	}
	marker := p.ident()
	if p.peek() == '\r' {
		p.advance(1)
	}
	if marker == "" || p.peek() != '\n' {
		return "", p.fail("Expected a marker and a line break after \"<<\".")
	}
	p.advance(1)
	var lines []string
	for !p.end() {
		from := p.pos.Byte
		for !p.end() && p.peek() != '\n' {
			p.advance(1)
		}
		line := string(p.src[from:p.pos.Byte])
		if strings.TrimSpace(line) == marker {
			return joinHeredoc(lines, indent), nil
		}
		p.advance(1)
		lines = append(lines, line)
	}
	return "", &syntaxError{at: start, msg: "The text that starts here is not closed."}
}

func joinHeredoc(lines []string, indent bool) string {
	if indent {
		least := -1
		for _, l := range lines {
			if n := len(l) - len(strings.TrimLeft(l, " \t")); strings.TrimSpace(l) != "" && (least < 0 || n < least) {
				least = n
			}
		}
		for i, l := range lines {
			lines[i] = l[min(max(least, 0), len(l)):]
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return b.String()
}
