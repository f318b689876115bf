package hclnative

import (
	"math"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// Update changes f to the result of Scan for a changed text. It compares the texts and
// parses only the top-level blocks and arguments that changed, with their neighbors. If the
// new text is not HCL, it returns false and does not change f.
//
// Blocks and bodies that a caller took from f before keep their content if their text
// changed. All others have their new positions. f must not be in use during the call, and
// neither text may change afterwards.
func (f *File) Update(src []byte) bool {
	if len(src) >= math.MaxInt32 {
		return false
	}
	text := unsafe.String(unsafe.SliceData(src), len(src))
	e := edit{old: f, text: text}
	e.bounds()
	if !e.read() {
		anew, ok := Scan(src, f.Name)
		if !ok {
			return false
		}
		before := &File{Name: f.Name, text: f.text}
		freeze(before, f.Body, f.Body.Blocks)
		f.text, f.Body = text, anew.Body
		anew.Body.in.file = f
		for _, b := range anew.Body.Blocks {
			b.Body.in.file = f
		}
		return true
	}
	e.join()
	return true
}

// edit is a change of a text. The top-level arguments and blocks before and after it stay,
// and the text between is parsed again.
type edit struct {
	old  *File
	text string // the new text

	from, to                mark // the part to parse again, in the old text
	attrs, blocks           int  // the number before the edit that stay
	laterAttrs, laterBlocks int  // the first index after the edit that stays
	end                     mark // the end of the edit in the new text
	between                 *Body
}

// bounds computes the part to parse again. It starts after the line of the last argument or
// block before the first difference. It ends with the line of the first one that ends after
// the last difference. At both positions a line begins and no bracket is open.
func (e *edit) bounds() {
	body, old := e.old.Body, e.old.text
	first := sameStart(old, e.text)
	last := len(old) - sameEnd(old[first:], e.text[first:])

	e.from = firstMark("")
	e.attrs = sort.Search(len(body.Attrs), func(i int) bool { return body.in.mark(body.Attrs[i].end).off >= first })
	e.blocks = sort.Search(len(body.Blocks), func(i int) bool { return body.Blocks[i].end().off >= first })
	for e.attrs > 0 || e.blocks > 0 {
		var at mark
		var count *int
		if e.blocks == 0 || e.attrs > 0 && body.in.mark(body.Attrs[e.attrs-1].start).off > body.Blocks[e.blocks-1].begin().off {
			at, count = body.in.mark(body.Attrs[e.attrs-1].end), &e.attrs
		} else {
			at, count = body.Blocks[e.blocks-1].end(), &e.blocks
		}
		if end := lineEnd(old, at); end.off < first {
			e.from = end
			break
		}
		*count--
	}

	e.laterAttrs = sort.Search(len(body.Attrs), func(i int) bool { return body.in.mark(body.Attrs[i].end).off >= last })
	e.laterBlocks = sort.Search(len(body.Blocks), func(i int) bool { return body.Blocks[i].end().off >= last })
	e.to = mark{off: len(old)}
	switch hasAttr, hasBlock := e.laterAttrs < len(body.Attrs), e.laterBlocks < len(body.Blocks); {
	case hasAttr && (!hasBlock || body.in.mark(body.Attrs[e.laterAttrs].start).off < body.Blocks[e.laterBlocks].begin().off):
		e.to = lineEnd(old, body.in.mark(body.Attrs[e.laterAttrs].end))
		e.laterAttrs++
	case hasBlock:
		e.to = lineEnd(old, body.Blocks[e.laterBlocks].end())
		e.laterBlocks++
	}
}

// begin and end return the start of a top-level block, and the end of its closing brace or
// only argument.
func (b *Block) begin() mark { return b.Body.in.mark(b.start) }

func (b *Block) end() mark { return b.Body.in.mark(b.Body.end) }

// lineEnd returns the start of the next line after an argument or block.
func lineEnd(text string, from mark) mark {
	s := scanner{src: text, mark: from}
	for {
		if s.scan(); s.tok.kind == kNewline || s.tok.kind == kEOF {
			return s.mark
		}
	}
}

// read parses the part between the bounds. It returns false if that part is incomplete.
func (e *edit) read() bool {
	body := e.old.Body
	p := newParser(e.old)
	p.src, p.mark = e.text[:e.to.off+len(e.text)-len(e.old.text)], e.from
	if e.from.off == 0 {
		p.mark = firstMark(p.src)
	}
	p.scan()
	e.between = p.items(p.tok.mark, kEOF)
	if e.between == nil {
		return false
	}
	e.end = p.mark
	names := make(map[string]bool, len(e.between.Attrs))
	for i := range e.between.Attrs {
		names[e.between.Attrs[i].Name] = true
	}
	has := func(a Attr) bool { return names[a.Name] }
	return !slices.ContainsFunc(body.Attrs[:e.attrs], has) && !slices.ContainsFunc(body.Attrs[e.laterAttrs:], has)
}

// join updates the file.
func (e *edit) join() {
	f, body := e.old, e.old.Body
	off := int32(len(e.text) - len(f.text))
	line := int32(e.end.line - e.to.line)
	before := &File{Name: f.Name, text: f.text}
	freeze(before, body, body.Blocks[e.blocks:e.laterBlocks])
	f.text = e.text

	next := &Body{in: &stretch{file: f}, start: e.start(), end: e.between.end}
	if e.to.off < len(before.text) {
		next.end = body.in.mark(body.end).place().moved(off, line)
	}
	own(e.between.Attrs, e.between.Blocks)
	next.Attrs = slices.Concat(body.Attrs[:e.attrs], e.between.Attrs, body.Attrs[e.laterAttrs:])
	for i := e.attrs + len(e.between.Attrs); i < len(next.Attrs); i++ {
		a := &next.Attrs[i]
		a.start, a.end = a.start.moved(off, line), a.end.moved(off, line)
	}
	next.Blocks = slices.Concat(body.Blocks[:e.blocks], e.between.Blocks, body.Blocks[e.laterBlocks:])
	for _, b := range next.Blocks[e.blocks+len(e.between.Blocks):] {
		b.Body.in.off += off
		b.Body.in.line += line
	}
	f.Body = next
}

// start returns the position of the first token of the new text.
func (e *edit) start() place {
	s := scanner{src: e.text, mark: firstMark(e.text)}
	s.scan()
	return s.tok.place()
}

// freeze lets a body and the replaced blocks keep their old text.
func freeze(before *File, body *Body, replaced []*Block) {
	body.in.file = before
	for _, b := range replaced {
		b.Body.in.file = before
	}
}

// own copies names, so that a file that changes often does not keep its old texts.
func own(attrs []Attr, blocks []*Block) {
	for i := range attrs {
		attrs[i].Name = strings.Clone(attrs[i].Name)
	}
	for _, b := range blocks {
		b.Type = strings.Clone(b.Type)
		for i := range b.Labels {
			b.Labels[i] = strings.Clone(b.Labels[i])
		}
		own(b.Body.Attrs, b.Body.Blocks)
	}
}

// atOnce is the number of bytes compared at once.
const atOnce = 1 << 10

// sameStart returns the length of the common prefix of two texts.
func sameStart(a, b string) int {
	n, most := 0, min(len(a), len(b))
	for n+atOnce <= most && a[n:n+atOnce] == b[n:n+atOnce] {
		n += atOnce
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// sameEnd returns the length of the common suffix of two texts.
func sameEnd(a, b string) int {
	n, most := 0, min(len(a), len(b))
	for n+atOnce <= most && a[len(a)-n-atOnce:len(a)-n] == b[len(b)-n-atOnce:len(b)-n] {
		n += atOnce
	}
	for n < most && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
