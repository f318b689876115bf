package view

import (
	"io"
	"strings"

	"github.com/terrace-iac/terrace/plan"
)

// A Piece is the text of one change of a plan. Callers that print many plans use it to print
// equal changes once.
type Piece struct {
	Kind PieceKind `json:"kind"`
	Op   plan.Op   `json:"op"`
	Type string    `json:"type,omitempty"` // the type of the resource; "" for outputs
	Text string    `json:"text"`
	// Head is a shorter text: the first lines of Text. Callers print it for several pieces
	// that differ only in details that do not change. It is set if the change only moves an
	// object.
	Head string `json:"head,omitempty"`
	// Causes are the causes of lines of Text, in the order of the lines. WithCauses adds them.
	Causes []LineCause `json:"causes,omitempty"`
}

// PieceKind is the kind of a piece.
type PieceKind uint8

// Kinds of pieces, in the order in which they are printed.
const (
	DriftPiece PieceKind = iota // a change made outside of the program
	ChangePiece
	OutputPiece
)

// Pieces returns the changes of a plan, in the order in which Plan prints them. It hides
// sensitive values unless reveal is set. The texts do not contain the lines that name causes.
func Pieces(style Style, p *plan.Plan, schemas Schemas, reveal bool) []Piece {
	var b lineCounter
	v := &planView{printer: newPrinter(&b, style), plan: p, schemas: schemas, d: differ{reveal: reveal}}
	var out []Piece
	take := func(kind PieceKind, op plan.Op, typ string) {
		_ = v.Flush() // a write to a buffer cannot fail
		if b.text.Len() > 0 {
			out = append(out, Piece{Kind: kind, Op: op, Type: typ, Text: b.text.String(), Causes: v.causes})
		}
		b, v.causes = lineCounter{}, nil
	}
	for c, n := range v.drifted() {
		v.driftChange(c, n)
		take(DriftPiece, plan.NoOp, c.Addr.Resource.Type)
	}
	for _, t := range p.Transfers {
		v.transfer(t)
		take(ChangePiece, plan.NoOp, t.Addr.Resource.Type)
	}
	for _, c := range v.changes() {
		v.change(c)
		take(ChangePiece, c.Op, c.Addr.Resource.Type)
		if last := len(out) - 1; last >= 0 && c.Op == plan.NoOp && c.Moved() && c.Import == nil {
			out[last].Head = head(out[last].Text)
		}
	}
	for _, o := range v.outputs() {
		v.outputLines([]child{o})
		take(OutputPiece, plan.NoOp, "")
	}
	return out
}

// head returns the lines of a change above the resource.
func head(text string) string {
	i := strings.Index(text, "resource \"")
	if i < 0 {
		return ""
	}
	return text[:strings.LastIndexByte(text[:i], '\n')+1]
}

// DriftTitle writes the line above changes made outside of the program.
func DriftTitle(w io.Writer, style Style) {
	v := &planView{printer: newPrinter(w, style)}
	v.driftTitle()
	_ = v.Flush()
}

// Legend writes the meaning of the symbols of operations.
func Legend(w io.Writer, style Style, ops []plan.Op) {
	v := &planView{printer: newPrinter(w, style)}
	var changes []*plan.Change
	for _, op := range ops {
		changes = append(changes, &plan.Change{Op: op})
	}
	v.legend(changes)
	_ = v.Flush()
}
