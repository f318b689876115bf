package outliner

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/outline"
	"github.com/zclconf/go-cty/cty"
)

// digest computes a Print. Its parts are written with their lengths, so that no two sequences of
// parts have the same bytes. It must not be used after sum, which returns it to digests.
type digest struct{ b []byte }

func newDigest(kind string) *digest {
	d := digests.Get().(*digest)
	d.b = d.b[:0]
	return d.text(kind)
}

// digests contains digests that are not in use.
var digests = sync.Pool{New: func() any { return &digest{make([]byte, 0, 128)} }}

func (d *digest) text(s string) *digest {
	d.b = binary.AppendUvarint(d.b, uint64(len(s)))
	d.b = append(d.b, s...)
	return d
}

func (d *digest) print(p outline.Print) *digest {
	d.b = append(d.b, p[:]...)
	return d
}

func (d *digest) number(n int) *digest {
	d.b = binary.AppendVarint(d.b, int64(n))
	return d
}

// parts adds parts with their paths, without the first bytes of the paths. It makes no difference whether a map is
// secret.
func (d *digest) parts(all []outline.Part, skip int) {
	for i := range all {
		if x := &all[i]; x.Inside != nil {
			d.parts(x.Inside, skip)
		} else {
			d.text(x.Path[skip:]).print(x.Print)
		}
	}
}

func (d *digest) sum() (p outline.Print) {
	full := sha256.Sum256(d.b)
	copy(p[:], full[:])
	digests.Put(d)
	return p
}

// ofValue returns the fingerprint of a wholly known value. Collections of different kinds with the
// same elements have the same fingerprint, because an argument converts them to one type. rename
// converts strings; nil leaves them unchanged.
func ofValue(v cty.Value, rename func(string) string) outline.Print {
	v, _ = v.Unmark()
	ty := v.Type()
	switch {
	case !v.IsKnown():
		return newDigest("unknown").sum()
	case v.IsNull():
		return newDigest("null").sum()
	case ty == cty.String:
		s := v.AsString()
		if rename != nil {
			s = rename(s)
		}
		return newDigest("string").text(s).sum()
	case ty == cty.Number:
		return newDigest("number").text(string(value.AppendNumber(nil, v.AsBigFloat()))).sum()
	case ty == cty.Bool:
		return newDigest(strconv.FormatBool(v.True())).sum()
	case ty.IsMapType() || ty.IsObjectType():
		all := v.AsValueMap()
		d := newDigest("map").number(len(all))
		for _, key := range slices.Sorted(maps.Keys(all)) {
			el := all[key]
			if rename != nil {
				key = rename(key)
			}
			d.text(key).print(ofValue(el, rename))
		}
		return d.sum()
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		d := newDigest("list").number(v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, el := it.Element()
			d.print(ofValue(el, rename))
		}
		return d.sum()
	default:
		return newDigest("other").text(ty.FriendlyName()).sum()
	}
}

// elements returns the function for outline.Part.Elements of a value; see there.
func elements(v cty.Value, rename func(string) string) func() *outline.Elements {
	if bare, _ := v.Unmark(); !hasElements(bare) {
		return nil
	}
	return func() *outline.Elements {
		out := &outline.Elements{Known: map[string]outline.Print{}, Unknown: map[string]bool{}}
		var add func(path string, v cty.Value)
		add = func(path string, v cty.Value) {
			v, _ = v.Unmark()
			switch {
			case !v.IsKnown() || v.Type().IsSetType():
				out.Unknown[path] = true
			case !hasElements(v):
				out.Known[path] = ofValue(v, rename)
			default:
				for it := v.ElementIterator(); it.Next(); {
					k, el := it.Element()
					k, _ = k.Unmark()
					name := keyText(k)
					if rename != nil {
						name = rename(name)
					}
					add(path+outline.Separator+name, el)
				}
			}
		}
		add("", v)
		return out
	}
}

// hasElements reports whether a value without marks is a list, tuple, map or object that is not empty.
func hasElements(v cty.Value) bool {
	if !v.IsKnown() || v.IsNull() {
		return false
	}
	ty := v.Type()
	return (ty.IsListType() || ty.IsTupleType() || ty.IsMapType() || ty.IsObjectType()) && v.LengthInt() > 0
}

// A step is one step of a path: an attribute, a key or an index, as a known value without marks.
type step = cty.Value

// part returns the part of v at a path. ok is false if v is unknown on the way, or has no such part.
func part(v cty.Value, path []step) (cty.Value, bool) {
	for _, s := range path {
		v, _ = v.Unmark()
		if !v.IsKnown() || v.IsNull() {
			return cty.NilVal, false
		}
		ty := v.Type()
		switch {
		case ty.IsObjectType():
			name := keyText(s)
			if !ty.HasAttribute(name) {
				return cty.NilVal, false
			}
			v = v.GetAttr(name)
		case ty.IsMapType():
			k := cty.StringVal(keyText(s))
			if !v.HasIndex(k).True() {
				return cty.NilVal, false
			}
			v = v.Index(k)
		case ty.IsListType() || ty.IsTupleType():
			i, ok := keyIndex(s)
			if !ok || i >= v.LengthInt() {
				return cty.NilVal, false
			}
			v = v.Index(cty.NumberIntVal(int64(i)))
		default:
			return cty.NilVal, false
		}
	}
	return v, true
}

// keyText returns a step as text.
func keyText(s step) string {
	switch s.Type() {
	case cty.String:
		return s.AsString()
	case cty.Number:
		return string(value.AppendNumber(nil, s.AsBigFloat()))
	}
	return ""
}

// keyIndex returns a step as the index of a list.
func keyIndex(s step) (int, bool) {
	if s.Type() == cty.String {
		v, err := value.Convert(s, cty.Number)
		if err != nil {
			return 0, false
		}
		s = v
	}
	if s.Type() != cty.Number {
		return 0, false
	}
	i, exact := s.AsBigFloat().Int64()
	return int(i), exact == 0 && i >= 0 && i < 1<<31
}

// pathText returns steps in the form of an address, such as `["cost"]` or `[0]`.
func pathText(path []step) string {
	var b strings.Builder
	for _, s := range path {
		if s.Type() == cty.String {
			b.WriteString("[" + value.Quote(s.AsString()) + "]")
		} else {
			b.WriteString("[" + keyText(s) + "]")
		}
	}
	return b.String()
}
