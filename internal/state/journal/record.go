package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"

	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A journal is a line with the format's name, followed by records. docs/journal.md specifies
// the format and the guarantees of recovery for other implementations. A record is
//
//	marker               7 bytes
//	form                 1 byte: 1 if the body is sealed, plus 2 if a code follows it
//	number               4 bytes, from 1, one more each
//	length of the body   4 bytes
//	CRC-32C of the body  4 bytes
//	CRC-32C of the above 4 bytes
//	body, and in its length the code of 16 bytes, if there is one (see user.go)
//
// All numbers are little-endian. The first byte of a body is its kind:
//
//	header   JSON of start; the first two records, so that no one bad record loses it
//	begin    JSON of Intent
//	answer   the id as a varint, then for each change its length (4 bytes,
//	         little endian) and the change as statefile.AppendChange writes it
//	written  JSON of mark, twice for the same reason as the header
//	transfer JSON of Transfer, twice, before the changes that are half of a move
//
// The marker makes it possible to find the next record after damaged bytes. Its first and fifth
// byte never occur in text, so no unsealed body contains it.
//
// There is no format 3, because its digit would differ from others by one bit. Format 2, which
// can still be read, has no codes. Format 1, which can be read as well, has no marker, form,
// number and second checksum, and header and mark occur once.
const (
	magic       = "terrace journal 4\n"
	sealedMagic = "terrace journal 4 sealed\n"

	magic2       = "terrace journal 2\n"
	sealedMagic2 = "terrace journal 2 sealed\n"

	magic1       = "terrace journal 1\n"
	sealedMagic1 = "terrace journal 1 sealed\n"

	marker = "\xffTrJ\xfe\r\n"

	headLen  = 24
	headLen1 = 8

	formSealed = 1
	formBound  = 2
)

type kind byte

const (
	kindHeader  kind = 'H'
	kindBegin   kind = 'B'
	kindAnswer  kind = 'A'
	kindWritten kind = 'W'

	kindTransfer kind = 'T'
)

func (k kind) known() bool {
	return k == kindHeader || k == kindBegin || k == kindAnswer || k == kindWritten || k == kindTransfer
}

// start is the content of a journal's header.
type start struct {
	Header
	Run   Run
	Store string `json:",omitempty"` // Options.Store
	Nonce string `json:",omitempty"` // random number of the run; "" if no record has a code
}

// An Intent is an action that was begun.
type Intent struct {
	ID      int
	Address string
	Action  string // e.g. "create"
}

// A mark identifies a state that contains all answers up to this position in the journal.
type mark struct {
	Header
	Digest string
}

// digest returns a checksum of a state's content, lineage and serial.
func digest(s *state.State) (string, error) {
	h := sha256.New()
	if err := statefile.Write(h, s, false); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) // MakeTable computes the table once
}

// seal appends a record with the given body. sealer and codes may be nil.
func seal(dst, plain []byte, number uint32, sealer sealing.Sealer, codes *binding) ([]byte, error) {
	start := len(dst)
	dst = append(append(dst, marker...), make([]byte, headLen-len(marker))...)
	if sealer == nil {
		dst = append(dst, plain...)
	} else {
		var err error
		if dst, err = sealing.Append(sealer, dst, plain); err != nil {
			return dst, err
		}
		dst[start+7] = formSealed
	}
	if codes != nil {
		dst = append(dst, codes.sum(number, dst[start+headLen:])...)
		dst[start+7] |= formBound
	}
	head, body := dst[start:start+headLen], dst[start+headLen:]
	binary.LittleEndian.PutUint32(head[8:], number)
	binary.LittleEndian.PutUint32(head[12:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[16:], checksum(body))
	binary.LittleEndian.PutUint32(head[20:], checksum(head[:20]))
	return dst, nil
}

// A record is a record with correct checksums.
type record struct {
	at, end int // offsets in the file
	number  uint32
	sealed  bool
	body    []byte // without the code
	code    []byte // nil if there is none
}

// recordAt reads the record at an offset in a journal. ok is false if there is no record with
// correct checksums.
func recordAt(b []byte, at int) (r record, ok bool) {
	head := b[at:]
	if !headChecks(head) {
		return record{}, false
	}
	body := head[headLen:]
	n := uint64(binary.LittleEndian.Uint32(head[12:]))
	if n == 0 || n > uint64(len(body)) || checksum(body[:n]) != binary.LittleEndian.Uint32(head[16:]) {
		return record{}, false
	}
	r = record{at: at, end: at + headLen + int(n), number: binary.LittleEndian.Uint32(head[8:]), sealed: head[7]&formSealed != 0, body: body[:n]}
	if head[7]&formBound != 0 && !r.split() {
		return record{}, false
	}
	return r, true
}

// split separates the code from the body of a record.
func (r *record) split() bool {
	n := len(r.body) - macSize
	if n < 1 {
		return false
	}
	r.body, r.code = r.body[:n], r.body[n:]
	return true
}

func headChecks(b []byte) bool {
	return len(b) >= headLen && string(b[:len(marker)]) == marker && b[7] <= formSealed|formBound && checksum(b[:20]) == binary.LittleEndian.Uint32(b[20:])
}

// torn reports whether bytes at the end of a journal are the beginning of a record. A process
// that is killed while it writes leaves such bytes.
func torn(b []byte) bool {
	if len(b) < headLen {
		n := min(len(b), len(marker))
		return string(b[:n]) == marker[:n]
	}
	return headChecks(b) && uint64(binary.LittleEndian.Uint32(b[12:])) > uint64(len(b)-headLen)
}

// recordAt1 is recordAt for format 1.
func recordAt1(b []byte, at int, sealed bool) (r record, ok bool) {
	head := b[at:]
	if len(head) < headLen1 {
		return record{}, false
	}
	body := head[headLen1:]
	n := uint64(binary.LittleEndian.Uint32(head))
	if n == 0 || n > uint64(len(body)) || !sealed && !kind(body[0]).known() || checksum(body[:n]) != binary.LittleEndian.Uint32(head[4:]) {
		return record{}, false
	}
	return record{at: at, end: at + headLen1 + int(n), sealed: sealed, body: body[:n]}, true
}

// torn1 is torn for format 1, in which only the length can be checked.
func torn1(b []byte) bool {
	return len(b) < headLen1 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-headLen1)
}

var errMalformed = errors.New("a record has a right checksum, but not the form of a record")

// answer decodes a body of kind answer.
func answer(b []byte) (id int, changes []state.Change, err error) {
	n, used := binary.Varint(b)
	if used <= 0 {
		return 0, nil, errMalformed
	}
	for b = b[used:]; len(b) > 0; {
		if len(b) < 4 {
			return 0, nil, errMalformed
		}
		size := binary.LittleEndian.Uint32(b)
		if uint64(size) > uint64(len(b)-4) {
			return 0, nil, errMalformed
		}
		c, err := statefile.ParseChange(b[4 : 4+size])
		if err != nil {
			return 0, nil, err
		}
		changes = append(changes, c)
		b = b[4+size:]
	}
	return int(n), changes, nil
}

func parseJSON[T any](b []byte) (T, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}
