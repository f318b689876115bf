// Package moves implements moves between the states of units. A file at the root of an estate
// lists them.
//
// Main types: Move, one block of the file, and Part, the changes in one direction between two
// units. The one rule: a move is pending as long as the state of the source unit contains an
// object at its address; nothing else is recorded.
package moves

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/terrace-iac/terrace/internal/state/stateedit"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// FileName is the name of the file that lists the moves.
const FileName = "estate.moves.hcl"

// A Move moves the objects at an address in one unit to an address in another unit.
type Move struct {
	From, To End
	At       source.Range
}

// An End is the source or the target of a move.
type End struct {
	Unit string // path as it is written in the file
	ID   string // ID of the unit, which is its path
	Addr addr.Target
}

var (
	fileSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "move"}}}
	moveSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "from_unit", Required: true}, {Name: "to_unit", Required: true}, {Name: "from", Required: true}, {Name: "to"},
	}}
)

// Load reads the file and adds its text to set. If the path is "" or the file does not exist,
// there are no moves.
func Load(path string, set *source.Set) ([]*Move, diag.List) {
	if path == "" {
		return nil, nil
	}
	text, err := readfile.Whole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Errorf(diag.CodeBackendReadFailed, nil, "Failed to read the moves between units", "%s.", err)
	}
	set.Add(&source.File{Path: path, Bytes: text, Layer: &source.Layer{Kind: source.Base, Name: path}})
	file, diags := hclnative.ParseConfig(text, path)
	if diags.HasErrors() {
		return nil, diag.FromHCL(diags)
	}
	content, diags := file.Body.Content(fileSchema)
	ds := diag.FromHCL(diags)
	var out []*Move
	for _, b := range content.Blocks {
		m, more := read(b, filepath.Dir(path))
		if ds = append(ds, more...); !more.HasErrors() {
			out = append(out, m)
		}
	}
	return out, ds
}

func read(b *hcl.Block, root string) (*Move, diag.List) {
	c, diags := b.Body.Content(moveSchema)
	ds := diag.FromHCL(diags)
	m := &Move{At: b.DefRange}
	end := func(e *End, unit, address string) {
		if a := c.Attributes[unit]; a != nil {
			v, diags := a.Expr.Value(nil)
			if ds = append(ds, diag.FromHCL(diags)...); diags.HasErrors() {
				return
			}
			if v.IsNull() || v.Type() != cty.String {
				at := a.Expr.Range()
				ds = append(ds, diag.Errorf(diag.CodeConfigUnsuitableValue, &at, "Unsuitable value type", "%q must be the path of a unit, as seen from this file.", unit)...)
				return
			}
			e.Unit = v.AsString()
			e.ID = filepath.Join(root, filepath.FromSlash(e.Unit))
		}
		if a := c.Attributes[address]; a != nil {
			var more diag.List
			e.Addr, more = refactoring.ReadAddress(a.Expr, nil)
			ds = append(ds, more...)
		}
	}
	end(&m.From, "from_unit", "from")
	end(&m.To, "to_unit", "to")
	if c.Attributes["to"] == nil {
		m.To.Addr = m.From.Addr
	}
	if !ds.HasErrors() && m.From.ID == m.To.ID {
		ds = append(ds, diag.Errorf(diag.CodeEstateMove, &m.At, "Move within one unit", "Both ends of the move are in the unit %s. Use a moved block in its module.", m.From.Unit)...)
	}
	return m, ds
}

// Partners returns the other units of the moves that involve a unit, in the order of the file.
func Partners(all []*Move, id string) []End {
	var out []End
	add := func(e End) {
		if !slices.ContainsFunc(out, func(o End) bool { return o.ID == e.ID }) {
			out = append(out, e)
		}
	}
	for _, m := range all {
		switch id {
		case m.From.ID:
			add(m.To)
		case m.To.ID:
			add(m.From)
		}
	}
	return out
}

// A Part contains the changes of a move from one unit to another: deletions in the source state
// and additions in the target state.
type Part struct {
	Leave, Come []state.Change
	Seen        []plan.Transfer // moves in the form that the plan of the unit shows
}

// A Pair contains the pending moves between a unit and another one.
type Pair struct {
	Out, In Part         // moves to the other unit, and from it
	Own     *state.State // state of the unit after the moves
}

// Pending returns the pending moves between a unit and another one with these states.
func Pending(all []*Move, id, other string, own, theirs *state.State) (Pair, diag.List) {
	p := Pair{Own: own}
	var ds diag.List
	for _, m := range all {
		out := m.From.ID == id && m.To.ID == other
		if !out && (m.From.ID != other || m.To.ID != id) {
			continue
		}
		from, to, part := p.Own, theirs, &p.Out
		if !out {
			from, to, part = theirs, p.Own, &p.In
		}
		if found, _ := stateedit.Matching(from, []addr.Target{m.From.Addr}); len(found) == 0 {
			continue // the object was already moved
		}
		if to == nil {
			to = state.New()
		}
		leave, come, more := stateedit.Transfer(from, to, m.From.Addr, m.To.Addr)
		if more.HasErrors() {
			ds = append(ds, more.Under(&m.At)...)
			continue
		}
		part.Leave, part.Come = append(part.Leave, leave...), append(part.Come, come...)
		from, to = apply(from, leave), apply(to, come)
		for i := range leave {
			a, b := leave[i].Object.Instance, come[i].Object.Instance
			t := plan.Transfer{Addr: a, Other: b, Unit: m.To.Unit, Out: true}
			if !out {
				t = plan.Transfer{Addr: b, Other: a, Unit: m.From.Unit}
			}
			if !slices.Contains(part.Seen, t) { // deposed objects have the same addresses
				part.Seen = append(part.Seen, t)
			}
		}
		if p.Own, theirs = from, to; !out {
			p.Own, theirs = to, from
		}
	}
	return p, ds
}

func apply(s *state.State, changes []state.Change) *state.State {
	d := s.Edit()
	for _, c := range changes {
		d.Apply(c)
	}
	return d.Freeze()
}
