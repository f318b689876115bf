// Package readlog records when commands last read objects from their providers, so that a plan
// need not read them again.
//
// Main type: Log. The one rule: a log is only an optimization. If it is missing, unreadable or
// belongs to another state, everything is read. It contains no values, only digests of stored
// objects and of the inputs of data sources.
package readlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

const version = 2

// A Log contains the readings of the objects of one state.
type Log struct {
	dir     string
	entries map[string]entry // by address
}

type entry struct {
	At     time.Time `json:"at"`
	Stored []byte    `json:"stored"` // digest of the stored object
	With   []byte    `json:"with"`   // digest of the inputs of the read
}

type file struct {
	Version int              `json:"version"`
	Objects map[string]entry `json:"objects"`
}

// Open reads the log of a state from dir, which contains the logs of all states. of may be nil
// or without a lineage. A log that is missing or unusable is empty. dir "" disables logs.
func Open(dir string, of *state.State) *Log {
	l := &Log{dir: dir, entries: map[string]entry{}}
	if dir == "" || of == nil || of.Lineage == "" {
		return l
	}
	text, err := readfile.Whole(l.path(of.Lineage))
	if err != nil {
		return l
	}
	var f file
	if json.Unmarshal(text, &f) == nil && f.Version == version && f.Objects != nil {
		l.entries = f.Objects
	}
	return l
}

// path returns the file of the log for a lineage. Copies of a state share a log, since they
// contain the same objects.
func (l *Log) path(lineage string) string {
	sum := sha256.Sum256([]byte(lineage))
	return filepath.Join(l.dir, hex.EncodeToString(sum[:])+".json")
}

// Recent returns the readings between since and now that agree with state.
func (l *Log) Recent(since, now time.Time) map[addr.Object]plan.Reading {
	return l.readings(func(_ addr.Instance, e entry) bool { return !e.At.Before(since) && !e.At.After(now) })
}

// Data returns the readings of data sources, of any age.
func (l *Log) Data() map[addr.Object]plan.Reading {
	return l.readings(func(a addr.Instance, _ entry) bool { return a.Resource.Mode == addr.Data })
}

func (l *Log) readings(of func(addr.Instance, entry) bool) map[addr.Object]plan.Reading {
	out := map[addr.Object]plan.Reading{}
	for name, e := range l.entries {
		a, err := addr.ParseInstance(name)
		if err != nil || len(e.Stored) != len(state.Digest{}) || len(e.With) != len(state.Digest{}) || !of(a, e) {
			continue
		}
		o := addr.Object{Instance: a}
		out[o] = plan.Reading{Object: o, Stored: state.Digest(e.Stored), With: state.Digest(e.With)}
	}
	return out
}

func (l *Log) note(a addr.Instance, stored, with state.Digest, at time.Time) {
	delete(l.entries, a.String())
	if with != (state.Digest{}) {
		l.entries[a.String()] = entry{At: at.UTC(), Stored: stored[:], With: with[:]}
	}
}

// Read records the readings of a plan. now is the current state. A managed object that differs
// from state is removed from the log, because the plan has not been applied. A data source is
// recorded with the digest of its result, unless the log already contains the inputs with which
// the result in state was read. All readings have the time begun, since the user may take hours
// to approve the plan.
func (l *Log) Read(readings []plan.Reading, now *state.State, begun time.Time) {
	for _, r := range readings {
		a := r.Object.Instance
		switch {
		case a.Resource.Mode == addr.Data:
			stored, _, _ := now.Object(r.Object)
			has, e := state.DigestOf(stored), l.entries[a.String()]
			if r.Stored == has || !bytes.Equal(e.Stored, has[:]) || bytes.Equal(e.With, r.With[:]) {
				l.note(a, r.Stored, r.With, begun)
			}
		case r.Object.Deposed == "" && r.Found == nil && !r.Gone:
			l.note(a, r.Stored, r.With, begun)
		default:
			delete(l.entries, a.String())
		}
	}
}

// Applied records the result of an apply. Changed objects, and objects that the plan found to
// differ, are now in state as the providers returned them. If the apply failed, nothing is
// known about the objects that it changed, and they are removed from the log. Objects that
// depend on a changed block are removed, too.
func (l *Log) Applied(p *plan.Plan, done Applied) {
	note := func(a addr.Instance, at time.Time) {
		delete(l.entries, a.String())
		if obj, pc, ok := done.State.Object(addr.Object{Instance: a}); ok && !obj.Tainted && !pc.Provider.IsBuiltIn() {
			l.note(a, state.DigestOf(obj), done.Providers[pc], at)
		}
	}
	for _, r := range p.Readings {
		if r.Found != nil && r.Object.Instance.Resource.Mode == addr.Managed {
			note(r.Object.Instance, p.Timestamp)
		}
	}
	changed, blocks := map[addr.Instance]bool{}, map[addr.ConfigResource]bool{}
	for _, c := range p.Changes {
		if c.Op != plan.NoOp && c.Op != plan.Read {
			changed[c.Addr], blocks[c.Addr.Config()] = true, true
		}
	}
	for _, r := range done.State.Sorted() {
		for k, inst := range r.Instances {
			a := r.Addr.Instance(k)
			switch {
			case changed[a] && !done.Failed:
				note(a, done.Begun)
			case changed[a] || inst.Current != nil && slices.ContainsFunc(inst.Current.Dependencies, func(c addr.ConfigResource) bool { return blocks[c] }):
				delete(l.entries, a.String())
			}
		}
	}
}

// Applied is the result of an apply: the new state, when the apply began, and whether it
// failed.
type Applied struct {
	State     *state.State
	Begun     time.Time
	Failed    bool
	Providers map[addr.ProviderConfig]state.Digest // digests of the provider configurations
}

// Keep records the readings of a plan and the result of its apply; done is nil if there was
// none.
func Keep(dir string, p *plan.Plan, done *Applied) error {
	if dir == "" || p == nil || len(p.Readings) == 0 && done == nil {
		return nil
	}
	l, now, at := Open(dir, p.PrevRun), p.PrevRun, p.Prior
	if done != nil {
		now, at = done.State, done.State
	}
	l.Read(p.Readings, now, p.Timestamp)
	if done != nil {
		l.Applied(p, *done)
	}
	return l.Save(at)
}

// Save writes the log. It omits objects that are no longer in state.
func (l *Log) Save(now *state.State) error {
	if l.dir == "" || now == nil || now.Lineage == "" {
		return nil
	}
	path := l.path(now.Lineage)
	kept := map[string]entry{}
	for name, e := range l.entries {
		a, err := addr.ParseInstance(name)
		if err != nil {
			continue
		}
		if _, _, ok := now.Object(addr.Object{Instance: a}); ok {
			kept[name] = e
		}
	}
	if len(kept) == 0 {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(file{Version: version, Objects: kept})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, text, 0o600)
}
