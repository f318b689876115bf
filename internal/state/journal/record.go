package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"

	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A journal is a line that names the format, then records. A record is
//
//	length of the body   4 bytes, little endian
//	CRC-32C of the body  4 bytes, little endian
//	body                 sealed by the codec, if there is one
//
// and a body is one byte that tells its kind, then
//
//	header   JSON of start; the first record, and no other
//	begin    JSON of Intent
//	answer   the id as a varint, then for each change its length (4 bytes,
//	         little endian) and the change as statefile.AppendChange writes it
//	written  JSON of mark
const (
	magic       = "terrace journal 1\n"
	sealedMagic = "terrace journal 1 sealed\n"
)

type kind byte

const (
	kindHeader  kind = 'H'
	kindBegin   kind = 'B'
	kindAnswer  kind = 'A'
	kindWritten kind = 'W'
)

// start is what a journal begins with.
type start struct {
	Header
	Run Run
}

// An Intent is an action that was begun.
type Intent struct {
	ID      int
	Address string
	Action  string // e.g. "create"
}

// A mark is a state that holds everything up to a place in the journal.
type mark struct {
	Header
	Digest string
}

// digest is the same for states with the same content, lineage and serial.
func digest(s *state.State) (string, error) {
	h := sha256.New()
	if err := statefile.Write(h, s, false); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

const headLen = 8

func checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) // the table is made once
}

// seal appends the record of a body.
func seal(dst, plain []byte, codec Codec) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, headLen)...)
	if codec == nil {
		dst = append(dst, plain...)
	} else {
		var err error
		if dst, err = codec.Seal(dst, plain); err != nil {
			return dst, err
		}
	}
	body := dst[start+headLen:]
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(body)))
	binary.LittleEndian.PutUint32(dst[start+4:], checksum(body))
	return dst, nil
}

// cut takes the first record off b. ok is false where b holds no whole one.
func cut(b []byte) (body, rest []byte, ok bool) {
	if len(b) < headLen {
		return nil, b, false
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-headLen) || n == 0 {
		return nil, b, false
	}
	body = b[headLen : headLen+int(n)]
	if checksum(body) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, b, false
	}
	return body, b[headLen+int(n):], true
}

var errMalformed = errors.New("a record has a right checksum, but not the form of a record")

// answer takes a body of kind answer apart.
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
