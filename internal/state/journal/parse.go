package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
)

// A journal is read from the first record to the last. Where bytes are found that are no
// record, the next record is searched that checks, so that one bad place loses what
// stood in it and no more. Only the beginning of a record at the very end is nothing
// to speak of: the run was killed while it wrote it, before anybody relied on it.

// format is what the first line of a journal tells, or if that is damaged, its records.
type format struct {
	old    bool // format 1
	sealed bool
	start  int // where the records begin
	bad    bool
}

func (f format) recordAt(b []byte, at int) (record, bool) {
	if f.old {
		return recordAt1(b, at, f.sealed)
	}
	return recordAt(b, at)
}

func (f format) torn(b []byte) bool {
	if f.old {
		return torn1(b)
	}
	return torn(b)
}

// next is where the next record may begin, from a place on.
func (f format) next(b []byte, from int) int {
	if f.old {
		return from
	}
	i := bytes.Index(b[from:], []byte(marker))
	if i < 0 {
		return len(b)
	}
	return from + i
}

// errNoJournal says that a file is none that this version can read.
var errNoJournal = errors.New("its first line is not that of a journal, and nothing that follows is a record; it is damaged, or a newer version wrote it")

func formatOf(b []byte) (format, error) {
	for _, f := range []struct {
		line string
		format
	}{{magic, format{}}, {sealedMagic, format{sealed: true}}, {magic2, format{}}, {sealedMagic2, format{sealed: true}}, {magic1, format{old: true}}, {sealedMagic1, format{old: true, sealed: true}}} {
		if bytes.HasPrefix(b, []byte(f.line)) {
			f.start = len(f.line)
			return f.format, nil
		}
	}
	// The records of this format can be found without the line.
	for at := (format{}).next(b, 0); at < len(b); at = (format{}).next(b, at+1) {
		if r, ok := recordAt(b, at); ok {
			return format{sealed: r.sealed, bad: true}, nil
		}
	}
	return format{}, errNoJournal
}

// parse reads a journal. tail gives the records of its tail, and how many of them could
// not be read, for the format of the journal. j tells whether the journal is the user's; nil:
// the codes of records are not looked at.
func parse(b []byte, tail func(old bool) ([][]byte, int), sealer sealing.Sealer, j *judge) (*Recovered, error) {
	rec := &Recovered{}
	for _, line := range []string{magic, sealedMagic, magic2, sealedMagic2, magic1, sealedMagic1} {
		if strings.HasPrefix(line, string(b)) {
			rec.Torn = int64(len(b)) // it was killed while it was made, before anything was begun
			return rec, nil
		}
	}
	f, err := formatOf(b)
	if err != nil {
		return nil, err
	}
	if !f.sealed {
		sealer = nil
	} else if sealer == nil {
		return nil, ErrSealed
	}
	p := &pass{rec: rec, sealer: sealer, open: make(map[int]int)}
	if j != nil {
		p.codes, rec.Foreign = bindingOf(b, f, sealer, *j)
	}
	p.all(b, f)
	if p.unopened != nil && !p.opened {
		return nil, fmt.Errorf("it cannot be decrypted: %w", p.unopened)
	}
	if rec.started {
		p.late(tail(f.old))
	}
	for i, intent := range p.begun {
		if !p.answered[i] {
			rec.Pending = append(rec.Pending, intent)
		}
	}
	if rec.empty() { // whoever began it, there is nothing to ask about
		rec.Foreign = nil
	}
	return rec, nil
}

// The reasons for which a journal is foreign.
var (
	errUnbound = errors.New("it does not say who wrote it: the version of Terrace was an earlier one, or the user had no place for a key")
	errOther   = errors.New("another user or another machine wrote it, or it is not where it was written, or it was changed since")
	errStore   = errors.New("it was not written for this state, or by an earlier version of Terrace")
)

// bindingOf returns the binding of a journal that is the user's: that which a header of it
// verifies with. Otherwise the error is the reason.
func bindingOf(b []byte, f format, sealer sealing.Sealer, j judge) (*binding, error) {
	why := errUnbound
	for at := f.start; at < len(b); {
		r, ok := f.recordAt(b, at)
		if !ok {
			at = f.next(b, at+1)
			continue
		}
		at = r.end
		body, err := r.open(sealer)
		if err != nil || len(body) == 0 || kind(body[0]) != kindHeader || r.code == nil {
			continue
		}
		h, err := parseJSON[start](body[1:])
		if err != nil || h.Nonce == "" {
			continue
		}
		codes, err := j.of(h.Nonce)
		if err != nil {
			return nil, err
		}
		if codes.verifies(r.number, r.body, r.code) {
			return codes, nil
		}
		why = errOther
	}
	return nil, why
}

// open decrypts the body of a record.
func (r record) open(sealer sealing.Sealer) ([]byte, error) {
	if sealer == nil {
		return r.body, nil
	}
	return sealing.Open(sealer, r.body)
}

// A pass is one reading of a journal.
type pass struct {
	rec      *Recovered
	sealer   sealing.Sealer
	codes    *binding // nil: the codes of records are not looked at
	opened   bool     // a record could be opened
	unopened error    // why one could not; nil if all could
	number   uint32
	bound    bool // the header says that records have codes
	begun    []Intent
	answered []bool      // of begun
	open     map[int]int // place in begun by id
}

// all reads the records of a journal.
func (p *pass) all(b []byte, f format) {
	good := f.start // the end of what was read
	if f.bad {
		good = 0
	}
	for at := f.start; at < len(b); {
		r, ok := f.recordAt(b, at)
		if ok = ok && (f.old || r.number > p.number) && p.take(r); !ok {
			at = f.next(b, at+1)
			continue
		}
		if r.at > good || !f.old && r.number != p.number+1 {
			p.bad(good, r.at, r.number)
		}
		p.number = r.number
		good, at = r.end, r.end
	}
	switch {
	case good == len(b):
	case good > 0 && f.torn(b[good:]):
		p.rec.Torn = int64(len(b) - good)
	default:
		p.bad(good, len(b), 0)
	}
}

// bad notes what could not be read before the record with a number, or at the end.
func (p *pass) bad(from, to int, number uint32) {
	missing := uint32(1)
	if number > 0 {
		missing = number - p.number - 1
	}
	p.rec.Bad = append(p.rec.Bad, Bad{int64(from), int64(to), missing})
}

// take takes in a record that checks. It reports false where it makes no sense.
func (p *pass) take(r record) bool {
	if (p.sealer != nil) != r.sealed || p.codes != nil && (r.code == nil || !p.codes.verifies(r.number, r.body, r.code)) {
		return false
	}
	body, err := r.open(p.sealer)
	if err != nil {
		p.unopened = err
		return false
	}
	p.opened = p.opened || p.sealer != nil
	return p.record(body) == nil
}

// late takes in the answers that were on their way into the journal. One that
// had arrived there changes nothing when it is taken in again.
func (p *pass) late(tail [][]byte, bad int) {
	p.rec.BadTail = bad
	for _, body := range tail {
		r := record{sealed: p.sealer != nil, body: body}
		if p.bound && !r.split() || !p.take(r) {
			p.rec.BadTail++
		}
	}
}

func (p *pass) record(body []byte) error {
	if len(body) == 0 {
		return errMalformed
	}
	k, body := kind(body[0]), body[1:]
	var err error
	switch k {
	case kindHeader:
		var h start
		if h, err = parseJSON[start](body); err == nil && !p.rec.started {
			p.rec.started = true
			p.rec.Header, p.rec.Run, p.rec.Store, p.bound = h.Header, h.Run.printable(), h.Store, h.Nonce != ""
		}
	case kindBegin:
		var i Intent
		if i, err = parseJSON[Intent](body); err == nil {
			i.Address, i.Action = printable(i.Address), printable(i.Action)
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
	case kindTransfer:
		var t Transfer
		if t, err = parseJSON[Transfer](body); err == nil {
			p.rec.Transfer = &t
		}
	default:
		err = errMalformed
	}
	return err
}
