package run

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/moves"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// # Moves between units
//
// A plan shows what the estate's file of moves says and is still to be done, and plans on
// the state as it will be then. An apply makes the moves before it takes the state: each in
// one transaction over both states, whichever of the two units comes first.

// Moved is the state of the unit as it will be when the moves that it has a part in are
// made, and what these are.
func (t *Turn) Moved(ctx context.Context, own *state.State) (*state.State, []plan.Transfer, diag.List) {
	all, ds := t.Moves()
	if ds.HasErrors() {
		return own, nil, ds
	}
	var seen []plan.Transfer
	for _, other := range moves.Partners(all, t.Unit.ID) {
		_, theirs, more := t.partner(ctx, other)
		if ds = append(ds, more...); more.HasErrors() {
			return own, nil, ds
		}
		pair, more := moves.Pending(all, t.Unit.ID, other.ID, own, theirs)
		if ds = append(ds, more...); more.HasErrors() {
			return own, nil, ds
		}
		own = pair.Own
		seen = append(append(seen, pair.Out.Seen...), pair.In.Seen...)
	}
	return own, seen, ds
}

// partner is where another unit has its state, and that.
func (t *Turn) partner(ctx context.Context, other moves.End) (states.Place, *state.State, diag.List) {
	where, ds := t.PlaceOf(ctx, other.ID)
	if ds.HasErrors() {
		return where, nil, ds
	}
	s, more := t.States.Read(ctx, where)
	return where, s, append(ds, more...)
}

// Transfer makes the moves that the unit has a part in. own is its state, which the caller
// does not hold.
func (t *Turn) Transfer(ctx context.Context, own statemgr.Options) diag.List {
	all, ds := t.Moves()
	if ds.HasErrors() || len(moves.Partners(all, t.Unit.ID)) == 0 {
		return ds
	}
	t.moving.Lock() // the other unit may be about to do the same
	defer t.moving.Unlock()
	for _, other := range moves.Partners(all, t.Unit.ID) {
		mine, more := statemgr.Read(ctx, own)
		if more.HasErrors() {
			return append(ds, more...)
		}
		where, theirs, more := t.partner(ctx, other)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		if p, more := moves.Pending(all, t.Unit.ID, other.ID, mine, theirs); more.HasErrors() || len(p.Out.Leave)+len(p.In.Leave) == 0 {
			if ds = append(ds, more...); more.HasErrors() {
				return ds
			}
			continue
		}
		at, more := t.States.Options(ctx, where, arguments.Lock{Off: own.Lock == nil, Timeout: own.Timeout}, own.Run.Operation)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		if ds = append(ds, exchange(ctx, all, t.Unit.ID, other.ID, own, at)...); ds.HasErrors() {
			return ds
		}
	}
	return ds
}

// exchange moves what is still to be moved between two units.
func exchange(ctx context.Context, all []*moves.Move, id, other string, own, theirs statemgr.Options) diag.List {
	a, b, ds := statemgr.TakePair(ctx, own, theirs)
	if a == nil {
		return ds
	}
	p, more := moves.Pending(all, id, other, a.Current(), b.Current())
	if ds = append(ds, more...); !more.HasErrors() {
		if len(p.Out.Leave) > 0 {
			ds = append(ds, statemgr.Transfer(ctx, a, b, p.Out.Leave, p.Out.Come)...)
		}
		if len(p.In.Leave) > 0 && !ds.HasErrors() {
			ds = append(ds, statemgr.Transfer(ctx, b, a, p.In.Leave, p.In.Come)...)
		}
	}
	return append(append(ds, a.Release()...), b.Release()...)
}

// moveFirst makes the moves before an apply takes the state.
func (t *Turn) moveFirst(ctx context.Context, where states.Place) diag.List {
	if all, ds := t.Moves(); ds.HasErrors() || len(moves.Partners(all, t.Unit.ID)) == 0 {
		return ds
	}
	own, ds := t.States.Options(ctx, where, t.lock(), "OperationTypeApply")
	if ds.HasErrors() {
		return ds
	}
	return append(ds, t.Transfer(ctx, own)...)
}
