package archive

import "errors"

// # LZMA
//
// The decoder of one LZMA2 chunk, after the description of the format in the
// LZMA specification (Igor Pavlov, public domain). It is written for archives of
// modules: correct and bounded first, and fast enough for some megabytes.

var errLZMA = errors.New("the compressed data is damaged")

const (
	probInit  = 1 << 10
	numStates = 12
	matchMin  = 2
	maxPosSt  = 1 << 4
)

type prob = uint16

// rangeDecoder reads bits from a chunk.
type rangeDecoder struct {
	in        []byte
	rng, code uint32
	bad       bool // read beyond the end
}

func (d *rangeDecoder) init(in []byte) error {
	if len(in) < 5 || in[0] != 0 {
		return errLZMA
	}
	d.rng, d.code, d.bad = 0xffffffff, 0, false
	for _, b := range in[1:5] {
		d.code = d.code<<8 | uint32(b)
	}
	d.in = in[5:]
	return nil
}

func (d *rangeDecoder) normalize() {
	if d.rng < 1<<24 {
		d.rng <<= 8
		d.code <<= 8
		if len(d.in) == 0 {
			d.bad = true
			return
		}
		d.code |= uint32(d.in[0])
		d.in = d.in[1:]
	}
}

func (d *rangeDecoder) bit(p *prob) uint32 {
	bound := (d.rng >> 11) * uint32(*p)
	if d.code < bound {
		d.rng = bound
		*p += (1<<11 - *p) >> 5
		d.normalize()
		return 0
	}
	d.rng -= bound
	d.code -= bound
	*p -= *p >> 5
	d.normalize()
	return 1
}

func (d *rangeDecoder) direct(n uint32) uint32 {
	var out uint32
	for range n {
		d.rng >>= 1
		d.code -= d.rng
		t := 0 - d.code>>31
		d.code += d.rng & t
		d.normalize()
		out = out<<1 + t + 1
	}
	return out
}

func (d *rangeDecoder) tree(ps []prob, bits uint32) uint32 {
	m := uint32(1)
	for range bits {
		m = m<<1 + d.bit(&ps[m])
	}
	return m - 1<<bits
}

func (d *rangeDecoder) reverse(ps []prob, bits uint32) uint32 {
	m, out := uint32(1), uint32(0)
	for i := range bits {
		b := d.bit(&ps[m])
		m = m<<1 + b
		out |= b << i
	}
	return out
}

type lengths struct {
	choice, choice2 prob
	low, mid        [maxPosSt][1 << 3]prob
	high            [1 << 8]prob
}

func (l *lengths) reset() {
	l.choice, l.choice2 = probInit, probInit
	for i := range l.low {
		fill(l.low[i][:])
		fill(l.mid[i][:])
	}
	fill(l.high[:])
}

func (l *lengths) decode(d *rangeDecoder, pos uint32) uint32 {
	if d.bit(&l.choice) == 0 {
		return d.tree(l.low[pos][:], 3)
	}
	if d.bit(&l.choice2) == 0 {
		return 8 + d.tree(l.mid[pos][:], 3)
	}
	return 16 + d.tree(l.high[:], 8)
}

func fill(ps []prob) {
	for i := range ps {
		ps[i] = probInit
	}
}

// lzma is the state that goes on from chunk to chunk.
type lzma struct {
	rc         rangeDecoder
	lc, lp, pb uint32
	state      uint32
	rep        [4]uint32

	isMatch, isRep0Long     [numStates << 4]prob
	isRep, isG0, isG1, isG2 [numStates]prob
	slots                   [4][1 << 6]prob
	special                 [1 + 128 - 14]prob
	align                   [1 << 4]prob
	length, repLength       lengths
	literals                []prob
	dict                    []byte // ring
	at, full                int    // next place; how much is filled
	out                     []byte // decoded and not yet taken
	total                   uint64 // decoded since the dictionary was reset
}

func (z *lzma) resetState() {
	z.state, z.rep = 0, [4]uint32{}
	for _, ps := range [][]prob{z.isMatch[:], z.isRep0Long[:], z.isRep[:], z.isG0[:], z.isG1[:], z.isG2[:], z.special[:], z.align[:], z.literals} {
		fill(ps)
	}
	for i := range z.slots {
		fill(z.slots[i][:])
	}
	z.length.reset()
	z.repLength.reset()
}

func (z *lzma) setProps(b byte) error {
	if b >= 9*5*5 {
		return errLZMA
	}
	z.lc, z.lp, z.pb = uint32(b%9), uint32(b/9%5), uint32(b/45)
	if z.lc+z.lp > 4 {
		return errLZMA
	}
	if n := 0x300 << (z.lc + z.lp); len(z.literals) != n {
		z.literals = make([]prob, n)
	}
	return nil
}

func (z *lzma) put(b byte) {
	z.dict[z.at] = b
	if z.at++; z.at == len(z.dict) {
		z.at = 0
	}
	if z.full < len(z.dict) {
		z.full++
	}
	z.out = append(z.out, b)
	z.total++
}

// back is the byte so many places ago, from 1.
func (z *lzma) back(n int) byte {
	i := z.at - n
	if i < 0 {
		i += len(z.dict)
	}
	return z.dict[i]
}

// chunk decodes n bytes from in.
func (z *lzma) chunk(in []byte, n int) error {
	if err := z.rc.init(in); err != nil {
		return err
	}
	for n > 0 {
		pos := uint32(z.total) & (1<<z.pb - 1)
		k := z.state<<4 + pos
		if z.rc.bit(&z.isMatch[k]) == 0 {
			z.literal()
			n--
		} else {
			length, err := z.match(k, pos)
			if err != nil {
				return err
			}
			if int(length) > n || int64(z.rep[0]) >= int64(z.full) {
				return errLZMA
			}
			for range length {
				z.put(z.back(int(z.rep[0]) + 1))
			}
			n -= int(length)
		}
		if z.rc.bad {
			return errLZMA
		}
	}
	if len(z.rc.in) != 0 || z.rc.code != 0 {
		return errLZMA
	}
	return nil
}

func (z *lzma) literal() {
	prev := byte(0)
	if z.full > 0 {
		prev = z.back(1)
	}
	i := (uint32(z.total)&(1<<z.lp-1))<<z.lc + uint32(prev)>>(8-z.lc)
	ps := z.literals[0x300*i:][:0x300]
	sym := uint32(1)
	if z.state >= 7 && int(z.rep[0]) < z.full {
		match := uint32(z.back(int(z.rep[0]) + 1))
		for sym < 0x100 {
			mb := match >> 7 & 1
			match <<= 1
			b := z.rc.bit(&ps[(1+mb)<<8+sym])
			sym = sym<<1 | b
			if mb != b {
				break
			}
		}
	}
	for sym < 0x100 {
		sym = sym<<1 | z.rc.bit(&ps[sym])
	}
	z.put(byte(sym))
	switch {
	case z.state < 4:
		z.state = 0
	case z.state < 10:
		z.state -= 3
	default:
		z.state -= 6
	}
}

// match decodes the length of a match and leaves its distance in rep[0].
func (z *lzma) match(k, pos uint32) (uint32, error) {
	next := func(low, high uint32) {
		if z.state < 7 {
			z.state = low
		} else {
			z.state = high
		}
	}
	if z.rc.bit(&z.isRep[z.state]) == 0 {
		z.rep[3], z.rep[2], z.rep[1] = z.rep[2], z.rep[1], z.rep[0]
		length := z.length.decode(&z.rc, pos)
		next(7, 10)
		z.rep[0] = z.distance(length)
		if z.rep[0] == 0xffffffff {
			return 0, errLZMA // an end marker, which LZMA2 does not have
		}
		return length + matchMin, nil
	}
	if z.full == 0 {
		return 0, errLZMA
	}
	if z.rc.bit(&z.isG0[z.state]) == 0 {
		if z.rc.bit(&z.isRep0Long[k]) == 0 {
			next(9, 11)
			return 1, nil
		}
	} else {
		var d uint32
		switch {
		case z.rc.bit(&z.isG1[z.state]) == 0:
			d = z.rep[1]
		case z.rc.bit(&z.isG2[z.state]) == 0:
			d = z.rep[2]
			z.rep[2] = z.rep[1]
		default:
			d = z.rep[3]
			z.rep[3], z.rep[2] = z.rep[2], z.rep[1]
		}
		z.rep[1], z.rep[0] = z.rep[0], d
	}
	length := z.repLength.decode(&z.rc, pos)
	next(8, 11)
	return length + matchMin, nil
}

func (z *lzma) distance(length uint32) uint32 {
	slot := z.rc.tree(z.slots[min(length, 3)][:], 6)
	if slot < 4 {
		return slot
	}
	bits := slot>>1 - 1
	dist := (2 | slot&1) << bits
	if slot < 14 {
		return dist + z.rc.reverse(z.special[dist-slot:], bits)
	}
	dist += z.rc.direct(bits-4) << 4
	return dist + z.rc.reverse(z.align[:], 4)
}
