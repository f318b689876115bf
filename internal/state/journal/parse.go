package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
)

// A journal is read from the first record to the last. After bytes that are not a record, the
// next valid record is searched, so that damage in one place loses only the records there. The
// beginning of a record at the very end is not damage: the run was killed while it wrote the
// record, before anything depended on it.

// format is the format of a journal. It is taken from the first line, or if that is damaged,
// from the records.
type format struct {
	old    bool // format 1
	sealed bool
	start  int // offset of the first record
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

// next returns the offset at or after from where the next record may begin.
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

// errNoJournal is the error that a file is not a journal that this version can read.
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
	// Records of this format can be found without the first line.
	for at := (format{}).next(b, 0); at < len(b); at = (format{}).next(b, at+1) {
		if r, ok := recordAt(b, at); ok {
			return format{sealed: r.sealed, bad: true}, nil
		}
	}
	return format{}, errNoJournal
}

// parse reads a journal. tail returns the records of the journal's tail, and the number of
// those that could not be read. old means that the journal has format 1. j decides whether the
// journal belongs to the user; nil means that the codes of records are not checked.
func parse(b []byte, tail func(old bool) ([][]byte, int), sealer sealing.Sealer, j *judge) (*Recovered, error) {
	rec := &Recovered{}
	for _, line := range []string{magic, sealedMagic, magic2, sealedMagic2, magic1, sealedMagic1} {
		if strings.HasPrefix(line, string(b)) {
			rec.Torn = int64(len(b)) // the run was killed while it created the journal, before it began anything
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
	if rec.empty() { // an empty journal needs no permission, whoever wrote it
		rec.Foreign = nil
	}
	return rec, nil
}

// The reasons for which a journal counts as foreign.
var (
	errUnbound = errors.New("it does not say who wrote it: the version of Terrace was an earlier one, or the user had no place for a key")
	errOther   = errors.New("another user or another machine wrote it, or it is not where it was written, or it was changed since")
	errStore   = errors.New("it was not written for this state, or by an earlier version of Terrace")
)

// bindingOf returns the binding with which the header verifies if the journal belongs to the
// user. Otherwise the error is the reason.
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

// A pass is the state of reading a journal.
type pass struct {
	rec      *Recovered
	sealer   sealing.Sealer
	codes    *binding // nil means that the codes of records are not checked
	opened   bool     // at least one record was decrypted
	unopened error    // error of a record that could not be decrypted; nil if there was none
	number   uint32
	bound    bool // the header states that records have codes
	begun    []Intent
	answered []bool      // per element of begun: it was answered
	open     map[int]int // id to index in begun
}

// all reads the records of a journal.
func (p *pass) all(b []byte, f format) {
	good := f.start // end of the bytes that were read
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

// bad records that bytes could not be read. number is that of the record after them, or 0 at
// the end.
func (p *pass) bad(from, to int, number uint32) {
	missing := uint32(1)
	if number > 0 {
		missing = number - p.number - 1
	}
	p.rec.Bad = append(p.rec.Bad, Bad{int64(from), int64(to), missing})
}

// take processes a record with a correct checksum. It returns false if the content is invalid.
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

// late processes the answers in the tail, which had not reached the journal. Processing an
// answer again that had reached it changes nothing.
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
