// Package readlog remembers when commands read objects from their providers last, so that
// a plan need not read them again.
//
// Main type: Log. The one rule: a log is a help and no more: where there is none, or it
// cannot be read, or it is of another state, everything is read. It holds no values, but
// digests of what state held and of what data sources were read with.
package readlog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/readfile"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

const version = 1

// A Log is what is known of the objects of one state.
type Log struct {
	dir     string
	entries map[string]entry // by address
}

type entry struct {
	At     time.Time `json:"at"`
	Stored []byte    `json:"stored"`         // the digest of what state held
	Args   []byte    `json:"args,omitempty"` // the digest of a data source's arguments
}

type file struct {
	Version int              `json:"version"`
	Objects map[string]entry `json:"objects"`
}

// Open reads the log of a state, which is nil or without a lineage if there is none yet, in a
// folder for the logs of all states. One that cannot be used is empty. With the folder ""
// there are no logs.
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

// path is that of the log of a lineage: states that are copies of each other have the same
// objects.
func (l *Log) path(lineage string) string {
	sum := sha256.Sum256([]byte(lineage))
	return filepath.Join(l.dir, hex.EncodeToString(sum[:])+".json")
}

// Recent are the objects that were found as state has them, since then.
func (l *Log) Recent(since time.Time) map[addr.Object]plan.Reading {
	out := map[addr.Object]plan.Reading{}
	for name, e := range l.entries {
		a, err := addr.ParseInstance(name)
		if err != nil || e.At.Before(since) || len(e.Stored) != len(plan.Digest{}) {
			continue
		}
		o := addr.Object{Instance: a}
		out[o] = plan.Reading{Object: o, Stored: plan.Digest(e.Stored), Args: digest(e.Args)}
	}
	return out
}

// Args are the arguments that data sources were read with last.
func (l *Log) Args() map[addr.Instance]plan.Digest {
	out := map[addr.Instance]plan.Digest{}
	for name, e := range l.entries {
		if a, err := addr.ParseInstance(name); err == nil && len(e.Args) > 0 {
			out[a] = digest(e.Args)
		}
	}
	return out
}

func digest(b []byte) plan.Digest {
	if len(b) != len(plan.Digest{}) {
		return plan.Digest{}
	}
	return plan.Digest(b)
}

// Read notes what a plan found. Of what is not as state has it, nothing is known: the plan
// is not in the state. Data sources are, by the digest of what they said.
func (l *Log) Read(readings []plan.Reading, now time.Time) {
	for _, r := range readings {
		name := r.Object.Instance.String()
		delete(l.entries, name)
		if r.Object.Deposed == "" && (r.Found == nil && !r.Gone || r.Object.Instance.Resource.Mode == addr.Data) {
			l.entries[name] = entry{At: now.UTC(), Stored: r.Stored[:]}
			if r.Args != (plan.Digest{}) {
				l.entries[name] = entry{At: now.UTC(), Stored: r.Stored[:], Args: r.Args[:]}
			}
		}
	}
}

// Applied notes what an apply left in state: providers answered for what it changed, and
// what the plan had found differing is in the state now.
func (l *Log) Applied(p *plan.Plan, final *state.State, now time.Time) {
	note := func(a addr.Instance) {
		obj, pc, ok := final.Object(addr.Object{Instance: a})
		delete(l.entries, a.String())
		if ok && !obj.Tainted && !pc.Provider.IsBuiltIn() {
			d := plan.DigestOf(obj)
			l.entries[a.String()] = entry{At: now.UTC(), Stored: d[:]}
		}
	}
	for _, r := range p.Readings {
		if r.Found != nil && r.Object.Instance.Resource.Mode == addr.Managed {
			note(r.Object.Instance)
		}
	}
	for _, c := range p.Changes {
		if c.Op != plan.NoOp && c.Op != plan.Read && c.Deposed == "" {
			note(c.Addr)
		}
	}
}

// Keep notes what a plan has read, and what its apply left in state, which is nil where
// there was none.
func Keep(dir string, p *plan.Plan, final *state.State, now time.Time) error {
	if dir == "" || p == nil || len(p.Readings) == 0 && final == nil {
		return nil
	}
	l, at := Open(dir, p.PrevRun), p.Prior
	l.Read(p.Readings, now)
	if final != nil {
		l.Applied(p, final, now)
		at = final
	}
	return l.Save(at)
}

// Save writes the log. What state has no more is left out.
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
