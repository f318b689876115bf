package view

import (
	"bytes"
	"io"

	"github.com/terrace-iac/terrace/internal/plan"
)

// A Piece is the text of one change of a plan, for those who show many plans at
// once and each equal piece of them once.
type Piece struct {
	Kind PieceKind `json:"kind"`
	Op   plan.Op   `json:"op"`
	Text string    `json:"text"`
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
			out = append(out, Piece{kind, op, b.String()})
		}
		b.Reset()
	}
	v.drift()
	take(DriftPiece, plan.NoOp)
	for _, c := range v.changes() {
		v.change(c)
		take(ChangePiece, c.Op)
	}
	for _, o := range v.outputs() {
		v.outputLines([]kid{o})
		take(OutputPiece, plan.NoOp)
	}
	return out
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
