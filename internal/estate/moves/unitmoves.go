package moves

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// # Moves between units
//
// A plan shows the pending moves of the estate's file, and plans with the state after them. An
// apply makes the moves before it takes the state. Each is one transaction over both states,
// whichever of the two units runs first.

// Between makes the moves between units. Its fields are required. Its methods may be called
// concurrently.
type Between struct {
	All     func() ([]*Move, diag.List) // returns the moves of the file
	PlaceOf func(ctx context.Context, id string) (states.Location, diag.List)
	States  *states.Keeper

	making sync.Mutex // held while objects are moved
}

// Of returns the moves that involve a unit.
func (b *Between) Of(id string) UnitMoves { return UnitMoves{b, id} }

// UnitMoves contains the moves that involve one unit. It implements workdir.Moves.
type UnitMoves struct {
	b  *Between
	id string
}

// Moved returns the state of the unit after all pending moves, and these moves.
func (x UnitMoves) Moved(ctx context.Context, own *state.State) (*state.State, []plan.Transfer, diag.List) {
	all, ds := x.b.All()
	if ds.HasErrors() {
		return own, nil, ds
	}
	var seen []plan.Transfer
	for _, other := range Partners(all, x.id) {
		_, theirs, more := x.partner(ctx, other)
		if ds = append(ds, more...); more.HasErrors() {
			return own, nil, ds
		}
		pair, more := Pending(all, x.id, other.ID, own, theirs)
		if ds = append(ds, more...); more.HasErrors() {
			return own, nil, ds
		}
		own = pair.Own
		seen = append(append(seen, pair.Out.Seen...), pair.In.Seen...)
	}
	return own, seen, ds
}

// partner returns the location of another unit's state, and that state.
func (x UnitMoves) partner(ctx context.Context, other End) (states.Location, *state.State, diag.List) {
	where, ds := x.b.PlaceOf(ctx, other.ID)
	if ds.HasErrors() {
		return where, nil, ds
	}
	s, more := x.b.States.Read(ctx, where)
	return where, s, append(ds, more...)
}

// Transfer makes the pending moves that involve the unit. own opens its state, which the caller
// must not hold.
func (x UnitMoves) Transfer(ctx context.Context, own statemgr.Options) diag.List {
	all, ds := x.b.All()
	if ds.HasErrors() || len(Partners(all, x.id)) == 0 {
		return ds
	}
	x.b.making.Lock() // the other unit may make the same moves concurrently
	defer x.b.making.Unlock()
	for _, other := range Partners(all, x.id) {
		mine, more := statemgr.Read(ctx, own)
		if more.HasErrors() {
			return append(ds, more...)
		}
		where, theirs, more := x.partner(ctx, other)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		if p, more := Pending(all, x.id, other.ID, mine, theirs); more.HasErrors() || len(p.Out.Leave)+len(p.In.Leave) == 0 {
			if ds = append(ds, more...); more.HasErrors() {
				return ds
			}
			continue
		}
		at, more := x.b.States.Options(ctx, where, arguments.Lock{Off: own.Lock == nil, Timeout: own.Timeout}, own.Run.Operation)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		if ds = append(ds, exchange(ctx, all, x.id, other.ID, own, at)...); ds.HasErrors() {
			return ds
		}
	}
	return ds
}

// exchange makes the pending moves between two units.
func exchange(ctx context.Context, all []*Move, id, other string, own, theirs statemgr.Options) diag.List {
	a, b, ds := statemgr.TakePair(ctx, own, theirs)
	if a == nil {
		return ds
	}
	p, more := Pending(all, id, other, a.Current(), b.Current())
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
