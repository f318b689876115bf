package affected

import (
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/revision"
	"github.com/terrace-iac/terrace/source"
)

// warnings collects the warnings about both revisions.
type warnings struct{ base, head revisionWarnings }

// revisionWarnings contains the warnings about a revision, and the files to which they refer.
type revisionWarnings struct {
	set   source.Set
	all   failures
	units failures // those about units and their modules
}

// messages returns the warnings with the names of their directories or units.
func (r *revisionWarnings) messages() diag.List {
	r.units.units = true
	return append(r.all.messages(), r.units.messages().Sort()...)
}

// side returns the collector for a revision. w may be nil: then the result is discarded.
func (w *warnings) side(head bool) (*source.Set, *failures) {
	r := &revisionWarnings{}
	if w != nil {
		if r = &w.base; head {
			r = &w.head
		}
	}
	return &r.set, &r.all
}

// of returns the function that receives the warnings about the units of two revisions.
func (w *warnings) of(pair *revision.Pair) units.Warn {
	return func(r *revision.Revision, unit string, set *source.Set, ds diag.List) {
		to := &w.base
		if r == pair.Head {
			to = &w.head
		}
		adopt := func(at *source.Range) {
			if at != nil {
				to.set.Adopt(at.Filename, set, at.Filename)
			}
		}
		for _, m := range ds {
			adopt(m.At)
			for _, n := range m.Notes {
				adopt(n.At)
			}
		}
		to.units.add(unit, ds)
	}
}

// lists returns the warnings about the base and those about the head. Warnings that are about both belong to the
// head, where they may be in another line. dir is the directory to which names of files are relative.
func (w *warnings) lists(dir string, pair *revision.Pair) (base, head diag.List) {
	seen := map[string]bool{}
	key := func(r *revision.Revision, m *diag.Message) string {
		file := ""
		if m.At != nil {
			if file = m.At.Filename; !filepath.IsAbs(file) {
				file = filepath.Join(dir, file)
			}
			file = r.Rename(file) // equal files of two directories have equal names
		}
		return m.Summary + "\x00" + m.Detail + "\x00" + file
	}
	head = slices.Clone(w.head.messages())
	for _, m := range head {
		seen[key(pair.Head, m)] = true
	}
	both := map[string]bool{}
	for _, m := range w.base.messages() {
		if k := key(pair.Base, m); seen[k] {
			both[k] = true
		} else {
			base = append(base, m)
		}
	}
	for i, m := range head {
		if m.At == nil && both[key(pair.Head, m)] { // it is about no file of a revision
			n := *m
			n.Notes = slices.DeleteFunc(slices.Clone(m.Notes), func(x diag.Note) bool { return x.Text == units.AboutRevision(pair.Head) })
			head[i] = &n
		}
	}
	return base, head
}

// print reports the warnings.
func (w *warnings) print(c *command.Call, base, head diag.List) {
	c.Report.TellFrom(&w.head.set, head)
	c.Report.TellFrom(&w.base.set, base)
	if len(head)+len(base) > 0 {
		c.Report.Say("\n")
	}
}
