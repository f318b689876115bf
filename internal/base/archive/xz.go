package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// # The xz container
//
// https://tukaani.org/xz/xz-file-format.txt: streams of blocks, each with a
// header, LZMA2 chunks, padding and a check, and an index of the blocks at the
// end. Filters other than LZMA2 are for programs, not for text, and are refused.
//
// The library that decodes LZMA2 can read containers too, but allocates as much memory as
// each block requests, up to 4 GiB: its DictCap is a minimum, and there is no maximum.
// Limiting the memory requires reading the block headers, which is most of this file.

// maxDict is the maximum dictionary size of a stream, in bytes; "xz -9" uses 64 MiB.
const maxDict = 64 << 20

var errXZ = errors.New("the xz data is damaged")

type xzReader struct {
	r     *counted
	data  io.Reader // the content of the current block
	kind  byte      // the kind of the check
	check hash.Hash
	state xzState
	err   error
	block int64 // the offset of the current block's data, in bytes read
}

type xzState uint8

const (
	xzStream xzState = iota
	xzBlock
	xzData
	xzEnd
)

// counted is a reader that counts the bytes read.
type counted struct {
	r *bufio.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func newXZ(r io.Reader) (io.Reader, error) {
	x := &xzReader{r: &counted{r: bufio.NewReaderSize(r, 1<<16)}}
	if err := x.header(); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *xzReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for x.err == nil {
		n, err := 0, error(nil)
		if x.state == xzData {
			n, err = x.content(p)
		} else {
			err = x.step()
		}
		if err == io.ErrUnexpectedEOF || x.state != xzEnd && err == io.EOF {
			err = fmt.Errorf("%w: it ends too early", errXZ)
		}
		if x.err = err; n > 0 {
			return n, nil
		}
	}
	return 0, x.err
}

// content reads the content of a block and verifies the check at its end.
func (x *xzReader) content(p []byte) (int, error) {
	n, err := x.data.Read(p)
	if x.check != nil {
		x.check.Write(p[:n])
	}
	switch {
	case err == io.EOF:
		err = x.endBlock()
	case err != nil && err != io.ErrUnexpectedEOF:
		err = fmt.Errorf("%w: %w", errXZ, err)
	}
	return n, err
}

func (x *xzReader) step() error {
	switch x.state {
	case xzStream:
		return x.header()
	case xzBlock:
		return x.blockHeader()
	default:
		return x.next()
	}
}

func (x *xzReader) bytes(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(x.r, b)
	return b, err
}

func (x *xzReader) header() error {
	h, err := x.bytes(12)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(h, []byte("\xfd7zXZ\x00\x00")) || crc32.ChecksumIEEE(h[6:8]) != binary.LittleEndian.Uint32(h[8:]) {
		return errXZ
	}
	x.kind, x.state = h[7], xzBlock
	switch x.kind {
	case 0:
		x.check = nil
	case 1:
		x.check = crc32.NewIEEE()
	case 4:
		x.check = crc64.New(crc64.MakeTable(crc64.ECMA))
	case 10:
		x.check = sha256.New()
	default:
		return fmt.Errorf("the xz data has a check of unknown kind %d", x.kind)
	}
	return nil
}

// blockHeader reads the header of a block, or the index if there are no more.
func (x *xzReader) blockHeader() error {
	size, err := x.r.ReadByte()
	if err != nil {
		return err
	}
	if size == 0 {
		return x.index()
	}
	h := make([]byte, (int(size)+1)*4)
	h[0] = size
	if _, err := io.ReadFull(x.r, h[1:]); err != nil {
		return err
	}
	body, sum := h[:len(h)-4], binary.LittleEndian.Uint32(h[len(h)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return errXZ
	}
	flags := body[1]
	r := bytes.NewReader(body[2:])
	for _, present := range []byte{0x40, 0x80} {
		if flags&present != 0 {
			if _, err := binary.ReadUvarint(r); err != nil {
				return errXZ
			}
		}
	}
	id, err1 := binary.ReadUvarint(r)
	n, err2 := binary.ReadUvarint(r)
	props, err3 := r.ReadByte()
	if err := errors.Join(err1, err2, err3); err != nil {
		return errXZ
	}
	if flags&0x03 != 0 || id != 0x21 || n != 1 {
		return errors.New("the xz data uses a filter other than LZMA2")
	}
	if props > 40 {
		return errXZ
	}
	dict := uint64(2|props&1) << (props/2 + 11)
	if dict > maxDict {
		return fmt.Errorf("the xz data wants a dictionary of %d bytes, more than the %d that are allowed", dict, maxDict)
	}
	x.block, x.state = x.r.n, xzData // before the reader takes the head of the first chunk
	if x.data, err = (lzma.Reader2Config{DictCap: int(dict)}).NewReader2(x.r); err != nil {
		return fmt.Errorf("%w: %w", errXZ, err)
	}
	if x.check != nil {
		x.check.Reset()
	}
	return nil
}

func (x *xzReader) endBlock() error {
	for (x.r.n-x.block)%4 != 0 {
		if b, err := x.r.ReadByte(); err != nil || b != 0 {
			return errXZ
		}
	}
	x.state = xzBlock
	if x.check == nil {
		return nil
	}
	want, err := x.bytes(x.check.Size())
	if err != nil {
		return err
	}
	have := x.check.Sum(nil)
	if x.kind != 10 { // the CRCs are stored with the low byte first
		for i, j := 0, len(have)-1; i < j; i, j = i+1, j-1 {
			have[i], have[j] = have[j], have[i]
		}
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%w: the check of a block does not match", errXZ)
	}
	return nil
}

// index skips the index and the footer, which contain nothing new.
func (x *xzReader) index() error {
	begin := x.r.n - 1
	records, err := binary.ReadUvarint(x.r)
	if err != nil {
		return err
	}
	for range records {
		if _, err := binary.ReadUvarint(x.r); err != nil {
			return err
		}
		if _, err := binary.ReadUvarint(x.r); err != nil {
			return err
		}
	}
	for (x.r.n-begin)%4 != 0 {
		if b, err := x.r.ReadByte(); err != nil || b != 0 {
			return errXZ
		}
	}
	f, err := x.bytes(4 + 12)
	if err != nil {
		return err
	}
	if string(f[14:]) != "YZ" {
		return errXZ
	}
	x.state = xzEnd
	return nil
}

// next starts the next stream, if there is one.
func (x *xzReader) next() error {
	for {
		head, err := x.r.r.Peek(4)
		if len(head) == 0 && err == io.EOF {
			return io.EOF
		}
		if !bytes.Equal(head, make([]byte, 4)) {
			x.state = xzStream
			return nil
		}
		if _, err := x.bytes(4); err != nil {
			return err
		}
	}
}
