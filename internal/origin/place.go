package origin

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
)

// longestLine is how much of a line of source is shown.
const longestLine = 160

// place shows the line on which a range starts. hide lists the ranges whose text
// must not be shown.
func (r *replay) place(at source.Range, hide []source.Range) *Place {
	p := &Place{File: at.Filename, Line: at.Start.Line, Column: at.Start.Column, Layer: r.e.Set.LayerOf(at).String()}
	f := r.e.Set.File(at.Filename)
	if f == nil || f.Bytes == nil {
		return p
	}
	line := f.Line(at.Start.Line)
	start := f.LineStart(at.Start.Line)
	from, to := 0, len(line)
	if strings.HasSuffix(at.Filename, ".json") { // a line may be the whole file
		from = min(max(at.Start.Byte-start, 0), len(line))
		to = max(min(at.End.Byte-start, len(line)), from)
	}
	p.Source = shorten(masked(line, start, hide, from, to))
	return p
}

// masked cuts [from, to) out of a line that starts at an offset of its file and puts a
// placeholder in the place of what must be hidden.
func masked(line string, start int, hide []source.Range, from, to int) string {
	hide = slices.Clone(hide)
	slices.SortFunc(hide, func(a, b source.Range) int { return a.Start.Byte - b.Start.Byte })
	var b strings.Builder
	at := from
	for _, h := range hide {
		lo, hi := max(h.Start.Byte-start, at), min(h.End.Byte-start, to)
		if lo >= hi {
			continue
		}
		b.WriteString(line[at:lo])
		b.WriteString(value.SecretText)
		at = hi
	}
	b.WriteString(line[at:to])
	return strings.TrimSpace(b.String())
}

func shorten(s string) string {
	if len(s) <= longestLine {
		return s
	}
	cut := longestLine
	for cut > 0 && s[cut]&0xc0 == 0x80 { // not within a letter
		cut--
	}
	return s[:cut] + "…"
}

// hidden lists what of a setting must not be shown: all of its expression where
// the value is secret and the expression is more than a reference, else the
// arguments of the function sensitive.
func (r *replay) hidden(c cursor) []source.Range {
	if c.x == nil {
		return nil
	}
	if r.secret && !isReference(c.x) {
		return []source.Range{c.x.Range()}
	}
	return sensitiveArguments(c.x)
}

// isReference reports whether the text of an expression names a value and tells
// nothing of it.
func isReference(x any) bool {
	switch x := unwrap(x).(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return true
	case *hclsyntax.RelativeTraversalExpr:
		return isReference(x.Source)
	case *hclsyntax.IndexExpr:
		return isReference(x.Collection)
	case *hclsyntax.SplatExpr:
		return isReference(x.Source)
	}
	return false
}

// sensitiveArguments finds literals that the text itself calls sensitive.
func sensitiveArguments(x any) []source.Range {
	node, ok := unwrap(x).(hclsyntax.Node)
	if !ok {
		return nil
	}
	var out []source.Range
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && baseName(call.Name) == "sensitive" {
			for _, a := range call.Args {
				if !isReference(a) {
					out = append(out, a.Range())
				}
			}
		}
		return nil
	})
	return out
}

// replaced lists what a setting replaced, nearest first.
func (r *replay) replaced(s *config.Setting) (out []Place) {
	if s == nil {
		return nil
	}
	for u := s.Under; u != nil; u = u.Under {
		p := r.place(u.Range, r.hidden(cursor{x: u.Expr}))
		p.Layer = u.Layer.String()
		out = append(out, *p)
	}
	return out
}
