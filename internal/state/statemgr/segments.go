package statemgr

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A journal in the store has the same bytes as the journal on this machine, divided into
// segments: objects of bounded size named PREFIX/RUN/000001 and so on. The last segment is
// written again as it grows. The concatenation of the segments is a journal, even if a record
// is divided. To remove a journal, its first segment is overwritten with a mark that it is
// done; an interrupted removal therefore leaves nothing that looks like a journal.

// Segments stores objects next to a state; see Blobs in package backend.
type Segments interface {
	PutBlob(ctx context.Context, name string, data []byte) error
	GetBlob(ctx context.Context, name string) ([]byte, error)
	ListBlobs(ctx context.Context, prefix string) ([]string, error)
	DeleteBlob(ctx context.Context, name string) error
}

const (
	segmentPrefix = "journal/"
	segmentSize   = 128 << 10 // segmentSize is the maximum size of a segment in bytes; every store accepts it
	doneSegment   = "done\n"
)

// A mirror is the copy of a run's journal in the store.
type mirror struct {
	ctx  context.Context
	to   Segments
	name string
	n    int    // number of the growing segment
	last []byte // content of the growing segment
	held func() error
}

// newMirror returns a mirror that writes nothing after held returns an error.
func newMirror(ctx context.Context, to Segments, run journal.Run, held func() error) *mirror {
	name := strings.ToLower(run.Since.UTC().Format("20060102t150405.000")) + "-" + store.NewID()[:8]
	return &mirror{ctx: ctx, to: to, name: segmentPrefix + name + "/", n: 1, held: held}
}

func (m *mirror) segment(n int) string { return fmt.Sprintf("%s%06d", m.name, n) }

// Append implements journal.Mirror.
func (m *mirror) Append(b []byte) error {
	m.last = append(m.last, b...)
	for {
		if err := m.held(); err != nil {
			return err
		}
		n := min(len(m.last), segmentSize)
		if err := m.to.PutBlob(m.ctx, m.segment(m.n), m.last[:n]); err != nil {
			return fmt.Errorf("the journal in the store cannot be written: %w", err)
		}
		if n < segmentSize {
			return nil
		}
		m.last = slices.Clone(m.last[n:])
		m.n++
	}
}

// Discard implements journal.Mirror.
func (m *mirror) Discard() error {
	if err := m.to.PutBlob(m.ctx, m.segment(1), []byte(doneSegment)); err != nil {
		return err
	}
	for n := m.n; n > 0; n-- {
		if err := m.to.DeleteBlob(m.ctx, m.segment(n)); err != nil {
			return err
		}
	}
	return nil
}

// A kept journal is a journal that was found in the store.
type kept struct {
	names []string // names of its segments, in order
	rec   *journal.Recovered
	bytes []byte
}

// place returns the location of the journal for messages.
func (k kept) place() string {
	return "in the store of the state, " + strings.TrimSuffix(k.names[0], "/000001")
}

// keptJournals reads the journals in the store, oldest first. Journals that are done have a nil
// rec.
func (o *Options) keptJournals(ctx context.Context) ([]kept, error) {
	from := o.Segments
	names, err := from.ListBlobs(ctx, segmentPrefix)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	runs := map[string][]string{}
	for _, name := range names {
		run, _, ok := strings.Cut(strings.TrimPrefix(name, segmentPrefix), "/")
		if ok {
			runs[run] = append(runs[run], name)
		}
	}
	var out []kept
	for _, names := range runs {
		slices.Sort(names)
		var all []byte
		for _, name := range names {
			b, err := from.GetBlob(ctx, name)
			if err != nil {
				return nil, err
			}
			if all = append(all, b...); bytes.Equal(all, []byte(doneSegment)) {
				break
			}
		}
		k := kept{names: names, bytes: all}
		if !bytes.HasPrefix(all, []byte(doneSegment)) {
			if k.rec, err = journal.Parse(all, o.Records, o.StateID); err != nil {
				return nil, fmt.Errorf("%s: %w", names[0], err)
			}
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b kept) int { return cmp.Compare(a.names[0], b.names[0]) })
	return out, nil
}

// discard removes a journal from the store.
func (k kept) discard(ctx context.Context, from Segments) error {
	if err := from.PutBlob(ctx, k.names[0], []byte(doneSegment)); err != nil {
		return err
	}
	for _, name := range slices.Backward(k.names) {
		if err := from.DeleteBlob(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// maxJournals is the number of journals in a store above which something must be wrong.
const maxJournals = 100

// grown reads a journal again, and reports whether it has grown.
func (k kept) grown(ctx context.Context, o *Options) (kept, bool) {
	if k.rec == nil {
		return k, false
	}
	all, err := o.keptJournals(ctx)
	if err != nil {
		return k, false
	}
	for _, now := range all {
		if now.names[0] == k.names[0] && now.rec != nil && !bytes.Equal(now.bytes, k.bytes) {
			return now, true
		}
	}
	return k, false
}

// apartPrefix begins the names of journals that do not continue the state.
const apartPrefix = "journal-apart/"

// keepApart copies a journal to a name in the store where no run reads it.
func (k kept) keepApart(ctx context.Context, in Segments) (name string, err error) {
	name = apartPrefix + strings.TrimPrefix(k.names[0], segmentPrefix)
	for i, b := range slices.Collect(slices.Chunk(k.bytes, segmentSize)) {
		run, _, _ := strings.Cut(strings.TrimPrefix(k.names[0], segmentPrefix), "/")
		if err := in.PutBlob(ctx, fmt.Sprintf("%s%s/%06d", apartPrefix, run, i+1), b); err != nil {
			return "", err
		}
	}
	return name, nil
}

// recoverSegments merges the journals in the store into the state. mine is the run whose
// journal on this machine was merged before; the store may have a copy of it. The caller holds
// the lock, so that no run is writing a journal. If a journal does not continue the state, its
// objects are saved to a file on this machine. It is also kept under another name in the store,
// since this machine may be lost, too. mineApart means that this happened to the journal on
// this machine.
func (h *State) recoverSegments(ctx context.Context, mine journal.Run, mineApart bool) diag.List {
	if h.o.Segments == nil {
		return nil
	}
	all, err := h.o.keptJournals(ctx)
	if err != nil {
		return diag.Errorf(diag.CodeJournalFiles, store.PlaceOf(err), "Failed to read the journal of an interrupted run", "The journal that an interrupted run left in the store of the state cannot be read: %s. Nothing was changed. If a newer version wrote it, or it was encrypted, use that version, or that encryption. Otherwise copy its objects to another place, so that they are kept, remove them, and run the command again; then compare a plan with what exists, and import what the state lacks.", err)
	}
	var ds diag.List
	for i := 0; i < len(all); i++ {
		k := all[i]
		apart := mineApart
		if k.rec != nil {
			if more := h.o.mayUse(k.place(), k.rec); more.HasErrors() {
				return append(ds, more...)
			}
		}
		if k.rec != nil && !sameRun(k.rec.Run, mine) {
			var more diag.List
			apart, more = h.fold(ctx, k.rec)
			if ds = append(ds, more...); more.HasErrors() {
				return ds
			}
		}
		if k.rec != nil && apart {
			name, err := k.keepApart(ctx, h.o.Segments)
			if err != nil {
				return append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to keep the journal of an interrupted run", "What the journal holds was saved on this machine, but the journal in the store of the state cannot be given another name there: %s.", err)...)
			}
			ds = append(ds, diag.Warnf(diag.CodeJournalInStore, nil, "Journal kept in the store", "The journal of which objects were saved apart stays beside the state in its store, as %s. Remove it there once nothing in it is needed any more.", name)...)
		}
		if k.rec != nil && k.rec.Damaged() {
			aside, err := journal.KeepCopy(h.o.Journal, k.bytes)
			if err != nil {
				return append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to keep the journal of an interrupted run", "%s It is in the store of the state. What can be read is safe now, but a copy of it cannot be made in this directory: %s.", k.rec.Damage(), err)...)
			}
			ds = append(ds, diag.Warnf(diag.CodeJournalDamaged, nil, "Damaged journal", "%s It was in the store of the state and is kept as %s. Make a plan, which looks at what there really is, and import what the state lacks; then the file can be removed.", k.rec.Damage(), aside)...)
		}
		if now, grown := k.grown(ctx, &h.o); grown && i < 2*maxJournals { // its run lost the lock and is still working
			all = append(all, now)
			mine = journal.Run{}
			continue
		}
		if err := k.discard(ctx, h.o.Segments); err != nil {
			return append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to remove the journal of an interrupted run", "What the journal holds is safe now, but it cannot be removed from the store: %s.", err)...)
		}
	}
	return ds
}

// wholeCopy returns the copy in the store of a journal that is damaged on this machine. If
// there is none, it returns rec.
func (h *State) wholeCopy(ctx context.Context, rec *journal.Recovered) (best *journal.Recovered, copied bool) {
	if h.o.Segments == nil || !rec.Damaged() {
		return rec, false
	}
	all, err := h.o.keptJournals(ctx)
	if err != nil { // recoverSegments reports the error
		return rec, false
	}
	for _, k := range all {
		if k.rec != nil && k.rec.Foreign == nil && sameRun(k.rec.Run, rec.Run) && !k.rec.Damaged() && len(k.rec.Changes) >= len(rec.Changes) {
			return k.rec, true
		}
	}
	return rec, false
}

func sameRun(a, b journal.Run) bool {
	return a.Process == b.Process && a.Who == b.Who && a.Operation == b.Operation && a.Since.Equal(b.Since) && !a.Since.IsZero()
}

// lookIntoSegments merges the journals in the store into the state in out, in memory. It cannot
// determine whether their runs are still working.
func lookIntoSegments(ctx context.Context, o Options, out seen, ds diag.List) (seen, diag.List) {
	all, err := o.keptJournals(ctx)
	if err != nil {
		return out, append(ds, diag.Warnf(diag.CodeJournalFiles, nil, "Failed to read the journal of an interrupted run", "The journal that a run left in the store of the state cannot be read: %s. What it did since the state was written last is not shown.", err)...)
	}
	for _, k := range all {
		if k.rec == nil {
			continue
		}
		if k.rec.Foreign != nil {
			out.foreign = append(out.foreign, foreign(k.place(), k.rec)...)
			continue
		}
		k.rec.Live = true
		if k.rec.Damaged() {
			ds = append(ds, diag.Warnf(diag.CodeJournalDamaged, nil, "Damaged journal", "%s It is in the store of the state.%s", k.rec.Damage(), journal.InFlight(k.rec.Pending))...)
		}
		s := out.stored
		if out.folded != nil {
			s = out.folded
		}
		if next, fits, _ := journal.Fold(s, k.rec); fits && len(k.rec.Changes) > 0 {
			out.folded, out.segments = next, true
			ds = append(ds, diag.Warnf(diag.CodeStateJournalInStore, nil, "Journal in the store", "A run that has not ended, or was interrupted, left a journal in the store of the state: %s. What it did so far is taken into account.", k.rec.Run)...)
		}
	}
	return out, ds
}
