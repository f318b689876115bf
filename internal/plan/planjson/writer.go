package planjson

import (
	"encoding/json"
	"io"
	"math/big"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// A writer writes JSON in the order of its calls: object members as name and value, array
// elements as value. It inserts commas.
type writer struct {
	b     []byte
	comma bool
	done  Document // the pieces before b
}

// A Document is JSON text in pieces. A single growing slice would be copied repeatedly.
type Document [][]byte

// WriteTo writes the document to w.
func (d Document) WriteTo(w io.Writer) (n int64, err error) {
	for _, piece := range d {
		m, err := w.Write(piece)
		if n += int64(m); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Bytes returns the document as one slice.
func (d Document) Bytes() []byte { return slices.Concat(d...) }

// pieceSize is the approximate size of a piece in bytes.
const pieceSize = 64 << 10

// piece ends the current piece if it is long enough. It must not be called where written text
// may be taken back.
func (w *writer) piece() {
	if len(w.b) >= pieceSize {
		w.done = append(w.done, w.b)
		w.b = make([]byte, 0, pieceSize*5/4)
	}
}

// append adds a value from another document.
func (w *writer) append(d Document) {
	w.sep()
	w.done = append(append(w.done, w.b), d...)
	w.b = nil
}

func (w *writer) document() Document { return append(w.done, w.b) }

func (w *writer) sep() {
	if w.comma {
		w.b = append(w.b, ',')
	}
	w.comma = true
}

func (w *writer) begin(c byte) {
	w.sep()
	w.b = append(w.b, c)
	w.comma = false
}

func (w *writer) end(c byte) {
	w.b = append(w.b, c)
	w.comma = true
}

func (w *writer) name(s string) {
	w.sep()
	w.b = append(appendString(w.b, s), ':')
	w.comma = false
}

func (w *writer) str(s string) {
	w.sep()
	w.b = appendString(w.b, s)
}

func (w *writer) raw(s string) {
	w.sep()
	w.b = append(w.b, s...)
}

func (w *writer) int(n int64) { w.raw(strconv.FormatInt(n, 10)) }

func (w *writer) bool(v bool) { w.raw(strconv.FormatBool(v)) }

// field writes a string member, unless the string is empty.
func (w *writer) field(name, s string) {
	if s != "" {
		w.name(name)
		w.str(s)
	}
}

func (w *writer) strs(name string, list []string) {
	w.name(name)
	w.begin('[')
	for _, s := range list {
		w.str(s)
	}
	w.end(']')
}

// appendString appends a string in the encoding of encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			src, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...)
			}
			return append(b, src...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// value writes a value. It omits unknown members of objects and maps, and writes null for
// unknown elements and for a value that is itself unknown. Callers omit the member of an
// unknown value.
func (w *writer) value(v cty.Value) {
	ty := v.Type()
	switch {
	case !v.IsKnown() || v.IsNull():
		w.raw("null")
	case ty == cty.String:
		w.str(v.AsString())
	case ty == cty.Number:
		w.number(v.AsBigFloat())
	case ty == cty.Bool:
		w.bool(v.True())
	case ty.IsObjectType() || ty.IsMapType():
		w.begin('{')
		each(v, func(name string, e cty.Value) {
			if e.IsKnown() {
				w.name(name)
				w.value(e)
			}
		})
		w.end('}')
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		w.begin('[')
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			w.value(e)
		}
		w.end(']')
	default:
		w.raw("null")
	}
}

func (w *writer) number(f *big.Float) {
	w.sep()
	w.b = value.AppendNumber(w.b, f)
}

// each calls f for the parts of an object or map, sorted by name.
func each(v cty.Value, f func(name string, e cty.Value)) {
	for it := v.ElementIterator(); it.Next(); { // in the order of names
		name, e := it.Element()
		f(name.AsString(), e)
	}
}

// A flag reports whether a part of a value has a property.
type flag func(v cty.Value, p *value.PathSet) bool

// tree writes a tree of booleans with the structure of v: true where test returns true, without
// descending further. It omits members of objects and maps that would be false.
func (w *writer) tree(v cty.Value, p *value.PathSet, test flag) {
	switch kind := kindOf(v); {
	case test(v, p):
		w.raw("true")
	case kind == named:
		w.begin('{')
		if v.IsKnown() {
			each(v, func(name string, e cty.Value) {
				sub := p.Named(name)
				if test(e, sub) || kindOf(e) != plain {
					w.name(name)
					w.tree(e, sub, test)
				}
			})
		}
		w.end('}')
	case kind == listed:
		w.begin('[')
		if v.IsKnown() {
			i := 0
			for it := v.ElementIterator(); it.Next(); i++ {
				_, e := it.Element()
				w.tree(e, p.At(i), test)
			}
		}
		w.end(']')
	default:
		w.raw("false")
	}
}

type kind uint8

const (
	plain kind = iota
	named
	listed
)

func kindOf(v cty.Value) kind {
	ty := v.Type()
	switch {
	case v.IsKnown() && v.IsNull():
		return plain
	case ty.IsObjectType() || ty.IsMapType():
		return named
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		return listed
	}
	return plain
}

func isUnknown(v cty.Value, _ *value.PathSet) bool { return !v.IsKnown() }
func isMarked(_ cty.Value, p *value.PathSet) bool  { return p.Marked() }
