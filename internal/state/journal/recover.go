package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/state"
)

// Recovered is what a journal tells.
type Recovered struct {
	Header
	Run     Run
	Live    bool           // its run is at work
	Changes []state.Change // in the order in which they were answered
	Pending []Intent       // begun and not answered, in the order in which they were begun
	Torn    int64          // bytes at the end that are no whole record

	marks   []placed
	started bool // it has a header
}

// placed is a mark and how many changes were answered before it.
type placed struct {
	mark
	after int
}

// ErrSealed says that a journal is encrypted and no codec was given.
var ErrSealed = errors.New("the journal is encrypted, and the configuration has no encryption block to read it with")

// Exists reports whether there is a journal.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func parse(b []byte, tail [][]byte, codec Codec) (*Recovered, error) {
	rec := &Recovered{}
	rest, sealed := bytes.CutPrefix(b, []byte(sealedMagic))
	if !sealed {
		var ok bool
		if rest, ok = bytes.CutPrefix(b, []byte(magic)); !ok {
			if strings.HasPrefix(sealedMagic, string(b)) || strings.HasPrefix(magic, string(b)) {
				rec.Torn = int64(len(b)) // it was killed while it was made, before anything was begun
				return rec, nil
			}
			return nil, errors.New("it is not a journal, or that of a newer version")
		}
		codec = nil
	} else if codec == nil {
		return nil, ErrSealed
	}
	p := &pass{rec: rec, open: make(map[int]int)}
	for len(rest) > 0 {
		body, next, ok := cut(rest)
		if !ok {
			rec.Torn = int64(len(rest))
			break
		}
		if codec != nil {
			var err error
			if body, err = codec.Open(nil, body); err != nil {
				return nil, fmt.Errorf("it cannot be decrypted: %w", err)
			}
		}
		if err := p.record(body); err != nil {
			return nil, err
		}
		rest = next
	}
	if rec.started {
		if err := p.late(tail, codec); err != nil {
			return nil, err
		}
	}
	for i, intent := range p.begun {
		if !p.answered[i] {
			rec.Pending = append(rec.Pending, intent)
		}
	}
	return rec, nil
}

// late takes in the answers that were on their way into the journal. One that
// had arrived there changes nothing when it is taken in again.
func (p *pass) late(tail [][]byte, codec Codec) error {
	for _, body := range tail {
		if codec != nil {
			var err error
			if body, err = codec.Open(nil, body); err != nil {
				return fmt.Errorf("it cannot be decrypted: %w", err)
			}
		}
		if len(body) == 0 || kind(body[0]) != kindAnswer {
			return errMalformed
		}
		if err := p.record(body); err != nil {
			return err
		}
	}
	return nil
}

// A pass is one reading of a journal.
type pass struct {
	rec      *Recovered
	begun    []Intent
	answered []bool      // of begun
	open     map[int]int // place in begun by id
}

func (p *pass) record(body []byte) error {
	if len(body) == 0 {
		return errMalformed
	}
	k, body := kind(body[0]), body[1:]
	if p.rec.started == (k == kindHeader) {
		return errMalformed // the header comes first and once
	}
	var err error
	switch k {
	case kindHeader:
		p.rec.started = true
		var h start
		h, err = parseJSON[start](body)
		p.rec.Header, p.rec.Run = h.Header, h.Run
	case kindBegin:
		var i Intent
		if i, err = parseJSON[Intent](body); err == nil {
			p.open[i.ID] = len(p.begun)
			p.begun = append(p.begun, i)
			p.answered = append(p.answered, false)
		}
	case kindAnswer:
		var id int
		var changes []state.Change
		if id, changes, err = answer(body); err == nil {
			p.rec.Changes = append(p.rec.Changes, changes...)
			if at, ok := p.open[id]; ok {
				p.answered[at] = true
				delete(p.open, id)
			}
		}
	case kindWritten:
		var m mark
		if m, err = parseJSON[mark](body); err == nil {
			p.rec.marks = append(p.rec.marks, placed{m, len(p.rec.Changes)})
		}
	default:
		err = errMalformed
	}
	return err
}

// Fold brings a state, nil for none, up to what the journal tells. The second
// result is false if the journal does not continue this state: then the state
// is returned unchanged, and what the journal knows must be saved apart (see
// Apart). Lineage and serial are not changed: the caller gives the next ones
// when it writes the result.
//
// The messages are warnings. They name the actions that were begun and not
// answered. Of a run that is at work there is nothing to say.
func Fold(s *state.State, rec *Recovered) (*state.State, bool, diag.List) {
	if len(rec.Changes) == 0 {
		return s, true, rec.warnings(0)
	}
	todo, ok := rec.unwritten(s)
	if !ok {
		return s, false, nil
	}
	if len(todo) > 0 {
		s = apply(s, todo)
	}
	return s, true, rec.warnings(len(todo))
}

// unwritten lists the changes that s lacks.
func (rec *Recovered) unwritten(s *state.State) ([]state.Change, bool) {
	now := HeaderOf(s)
	for _, m := range slices.Backward(rec.marks) {
		if m.Header != now {
			continue
		}
		if sum, err := digest(s); err == nil && sum == m.Digest {
			return rec.Changes[m.after:], true
		}
	}
	return rec.Changes, rec.Header == now
}

func apply(s *state.State, changes []state.Change) *state.State {
	d := s.Edit()
	for _, c := range changes {
		d.Apply(c)
	}
	return d.Freeze()
}

// warnings tells a user what a journal brought.
func (rec *Recovered) warnings(changes int) diag.List {
	if rec.Live {
		return nil
	}
	var ds diag.List
	if changes > 0 {
		ds = append(ds, diag.Warnf(nil, "Interrupted run recovered",
			"An earlier run ended before it could write the state. What the providers had answered by then was taken from its journal (changes: %d).", changes)...)
	}
	for _, i := range rec.Pending {
		ds = append(ds, diag.Warnf(nil, "Action may have happened",
			"May have happened: %s (%s). An earlier run asked for it and ended before the answer came, so the state does not show it. Look whether the object was changed; if it was created, import it or remove it by hand.", i.Address, i.Action).About(i.Address)...)
	}
	return ds
}

// Apart makes the state to save as errored.tfstate where the journal does not
// continue the present state, and the message that says so. The state holds the
// objects that the journal knows and nothing else; its lineage and serial are
// those that the run began with.
func Apart(rec *Recovered, present *state.State) (*state.State, diag.List) {
	s := apply(nil, rec.Changes)
	s = s.WithMeta(rec.Lineage, rec.Serial, s.TerraformVersion)
	was, now := rec.Header, HeaderOf(present)
	why := fmt.Sprintf("it has serial %d now and had %d then", now.Serial, was.Serial)
	if was.Lineage != now.Lineage {
		why = fmt.Sprintf("it has lineage %q now and had %q then", now.Lineage, was.Lineage)
	}
	ds := diag.Warnf(nil, "Journal of another state",
		"An earlier run ended before it could write the state, and the state has been changed by somebody else since: %s. What the providers had answered (%d changes) can therefore not be put into the state and is saved apart. Compare the two and import what the state lacks.", why, len(rec.Changes))
	return s, append(ds, rec.warnings(0)...)
}
