package syntax

import (
	"slices"

	"github.com/terrace-iac/terrace/source"
)

// Changes contains the expressions of a file that have another text in another version of the file. The
// versions have the same blocks, and the blocks have the same arguments, except that local values may be
// added and removed.
type Changes struct {
	at     []span
	locals bool
}

// Locals reports whether local values were added or removed. c may be nil.
func (c *Changes) Locals() bool { return c != nil && c.locals }

// A span is a range of bytes. end is not in it.
type span struct{ start, end int }

// comparableBlocks are the blocks, and the arguments at the top, whose values Changes can describe. What
// depends on others, such as import blocks, is not traced.
var comparableBlocks = []string{"locals", "inputs", "generate", "remote_state", "terraform"}

// Compare returns the expressions of the file now that differ from those of the file old. Both have the
// same path and specification. ok is false if they differ in more than expressions.
func Compare(old, now *File) (c *Changes, ok bool) {
	if old.Root == nil || now.Root == nil || len(old.Diags) > 0 || len(now.Diags) > 0 || old.Src == nil || now.Src == nil {
		return nil, false
	}
	w := &comparison{old: old.Src.Bytes, now: now.Src.Bytes, out: &Changes{}}
	if !w.block(old.Root, now.Root, now.Root.Spec.Open) {
		return nil, false
	}
	return w.out, true
}

// Within reports whether an expression is one of the changed ones, or a part of one. c may be nil.
func (c *Changes) Within(x *Expr) bool {
	return c.any(x, func(s, of span) bool { return s.start <= of.start && of.end <= s.end })
}

// Touch reports whether an expression contains a changed one, or is a part of one. c may be nil.
func (c *Changes) Touch(x *Expr) bool {
	return c.any(x, func(s, of span) bool { return s.start < of.end && of.start < s.end })
}

func (c *Changes) any(x *Expr, is func(s, of span) bool) bool {
	if c == nil || len(c.at) == 0 {
		return false
	}
	of := spanOf(x.At())
	return slices.ContainsFunc(c.at, func(s span) bool { return is(s, of) })
}

func spanOf(r source.Range) span { return span{r.Start.Byte, r.End.Byte} }

// A comparison compares two versions of a file.
type comparison struct {
	old, now []byte
	out      *Changes
}

// block compares two blocks. change means that their expressions may differ.
func (w *comparison) block(a, b *Block, change bool) bool {
	if a.Spec != b.Spec || a.Label != b.Label || a.Labeled != b.Labeled || len(a.Blocks) != len(b.Blocks) || a.Raw != nil || b.Raw != nil {
		return false
	}
	if b.Spec.Name == "locals" && len(a.Attrs) > 0 && len(b.Attrs) > 0 && len(a.Blocks) == 0 {
		w.locals(a, b)
		return true
	}
	if len(a.Attrs) != len(b.Attrs) {
		return false
	}
	top := b.Spec == Language().Unit
	for i, x := range b.Attrs {
		if a.Attrs[i].Name != x.Name {
			return false
		}
		before := len(w.out.at)
		w.expr(a.Attrs[i].Expr, x.Expr)
		if len(w.out.at) > before && !change && !(top && slices.Contains(comparableBlocks, x.Name)) {
			return false
		}
	}
	for i, x := range b.Blocks {
		if !w.block(a.Blocks[i], x, change || top && slices.Contains(comparableBlocks, x.Spec.Name)) {
			return false
		}
	}
	return true
}

// locals compares two blocks with local values.
func (w *comparison) locals(a, b *Block) {
	n := 0
	for _, x := range b.Attrs {
		if old := a.Attr(x.Name); old != nil {
			n++
			w.expr(old.Expr, x.Expr)
		}
	}
	w.out.locals = w.out.locals || n < len(a.Attrs) || n < len(b.Attrs)
}

// expr compares two expressions. The parts of objects and of calls of merge are compared separately.
func (w *comparison) expr(a, b *Expr) {
	from, at := spanOf(a.At()), spanOf(b.At())
	if text(w.old, from) == text(w.now, at) {
		return
	}
	switch {
	case a.Kind != b.Kind || len(a.Items) != len(b.Items) || len(a.Args) != len(b.Args):
	case b.Kind == Object || b.Kind == Constant && len(b.Items) > 0:
		if !slices.EqualFunc(a.Items, b.Items, func(x, y item) bool { return x.Key == y.Key && x.KeyX == nil && y.KeyX == nil }) {
			break
		}
		for i := range b.Items {
			w.expr(a.Items[i].X, b.Items[i].X)
		}
		return
	case b.Kind == MergeCall || b.Kind == DeepCall:
		for i := range b.Args {
			w.expr(a.Args[i], b.Args[i])
		}
		return
	}
	w.out.at = append(w.out.at, at)
}

// text returns the text of a span.
func text(src []byte, s span) string {
	if s.start < 0 || s.end > len(src) || s.start > s.end {
		return ""
	}
	return string(src[s.start:s.end])
}
