package view

import (
	"bytes"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/plan"
)

// A Piece is the text of one change of a plan, for those who show many plans at
// once and each equal piece of them once.
type Piece struct {
	Kind PieceKind `json:"kind"`
	Op   plan.Op   `json:"op"`
	Text string    `json:"text"`
	// Head is what is shown instead where only details differ that do not change:
	// the first lines of Text, of a change that does no more than move an object.
	Head string `json:"head,omitempty"`
}

// PieceKind says what a piece is about.
type PieceKind uint8

// The kinds, in the order in which they are shown.
const (
	DriftPiece PieceKind = iota // what was found changed outside
	ChangePiece
	OutputPiece
)

// Pieces are the parts of a plan, in the order in which Plan shows them. Sensitive
// values are hidden unless reveal is set.
func Pieces(style Style, p *plan.Plan, schemas Schemas, reveal bool) []Piece {
	var b bytes.Buffer
	v := &planView{printer: newPrinter(&b, style), plan: p, schemas: schemas, d: differ{reveal: reveal}}
	var out []Piece
	take := func(kind PieceKind, op plan.Op) {
		_ = v.Flush() // a buffer takes everything
		if b.Len() > 0 {
			out = append(out, Piece{Kind: kind, Op: op, Text: b.String()})
		}
		b.Reset()
	}
	for c, n := range v.drifted() {
		v.driftChange(c, n)
		take(DriftPiece, plan.NoOp)
	}
	for _, t := range p.Transfers {
		v.transfer(t)
		take(ChangePiece, plan.NoOp)
	}
	for _, c := range v.changes() {
		v.change(c)
		take(ChangePiece, c.Op)
		if last := len(out) - 1; last >= 0 && c.Op == plan.NoOp && c.Moved() && c.Import == nil {
			out[last].Head = head(out[last].Text)
		}
	}
	for _, o := range v.outputs() {
		v.outputLines([]child{o})
		take(OutputPiece, plan.NoOp)
	}
	return out
}

// head are the lines of a change above the resource.
func head(text string) string {
	i := strings.Index(text, "resource \"")
	if i < 0 {
		return ""
	}
	return text[:strings.LastIndexByte(text[:i], '\n')+1]
}

// DriftTitle writes the line above changes that were found.
func DriftTitle(w io.Writer, style Style) {
	v := &planView{printer: newPrinter(w, style)}
	v.driftTitle()
	_ = v.Flush()
}

// Legend writes what the signs of the operations mean.
func Legend(w io.Writer, style Style, ops []plan.Op) {
	v := &planView{printer: newPrinter(w, style)}
	var changes []*plan.Change
	for _, op := range ops {
		changes = append(changes, &plan.Change{Op: op})
	}
	v.legend(changes)
	_ = v.Flush()
}
