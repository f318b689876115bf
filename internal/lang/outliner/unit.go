package outliner

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Units
//
// The values of a unit are known, or unknown because they contain an output of another unit. Such
// an output has the mark Identity, so that a value made from it has a fingerprint too.

// A UnitPrinter computes the fingerprints of a unit's values.
type UnitPrinter struct {
	p    *printer
	unit explanation.InputSource
}

// NewUnitPrinter returns a UnitPrinter. u is only asked for parts whose values are unknown. text and rename are as in Options.
func NewUnitPrinter(u explanation.InputSource, text func(source.Range) []byte, rename func(string) string) *UnitPrinter {
	return &UnitPrinter{newPrinter(nil, &Options{Text: text, Rename: rename}), u}
}

// Text returns the fingerprint of a text.
func (x *UnitPrinter) Text(kind, text string) outline.Print {
	if x.p.o.Rename != nil {
		text = x.p.o.Rename(text)
	}
	return newDigest(kind).text(text).sum()
}

// Parts returns the fingerprint of the parts of objects.
func (x *UnitPrinter) Parts(all []*outline.Object) outline.Print {
	d := newDigest("objects").number(len(all))
	for _, o := range all {
		d.text(o.Addr).number(len(o.Parts)).parts(o.Parts, 0)
	}
	return d.sum()
}

// Split appends the parts of the value at an address of the unit, such as inputs.tags. path is the
// path of the first part. If the value is sensitive as a whole, it is one part, since its keys are secret too.
func (x *UnitPrinter) Split(out []outline.Part, address hcl.Traversal, v cty.Value, path string, at source.Range) []outline.Part {
	of, ok := steps(address)
	if !ok {
		return out
	}
	return marked(x.split(out, of, v, path, at, 0), len(out), v)
}

func (x *UnitPrinter) split(out []outline.Part, address []step, v cty.Value, path string, at source.Range, depth int) []outline.Part {
	bare, _ := v.Unmark()
	ty := bare.Type()
	var inside []outline.Part
	if bare.IsKnown() && !bare.IsNull() && (ty.IsMapType() || ty.IsObjectType()) && bare.LengthInt() > 0 && depth < maxNested {
		secret := value.Secret(v)
		if secret {
			out, inside = nil, out
		}
		out = slices.Grow(out, bare.LengthInt())
		for it := bare.ElementIterator(); it.Next(); {
			k, el := it.Element()
			k, _ = k.Unmark()
			out = x.split(out, append(address[:len(address):len(address)], k), el, path+keyPath(k.AsString()), at, depth+1)
		}
		if !secret {
			return out
		}
		out, inside = inside, out
	}
	x.p.why = nil
	if v.IsWhollyKnown() {
		return append(out, outline.Part{Path: path, Print: x.p.value(v), Elements: elements(v, x.p.o.Rename), Inside: inside, At: at})
	}
	ids := Identities(v)
	var print outline.Print
	exact, found := false, false
	if way, ok, ds := x.unit.Part(traversal(address)); ok && !ds.HasErrors() && way.Next != nil {
		if next, ok := steps(way.Next.Path); ok {
			print = x.p.unknown(&frame{unit: way.Next.In}, way.Next.Expr, next, v)
			exact, found = x.p.exact, true
		}
	}
	if !found {
		print = x.unknown(v, ids)
	}
	part := outline.Part{Path: path, Print: print, Unknown: !exact, Elements: elements(v, x.p.o.Rename), Inside: inside, At: at}
	if !exact {
		part.Why = x.why(ids)
		if len(ids) == 1 && ids[0].Of.Name != "" && print == outputsOfUnits(ids).sum() {
			part.Output, part.OutputOf = ids[0].Of.Name, ids[0].Of.Unit
		}
	}
	return append(out, part)
}

// why returns the outputs and functions that make a value unknown.
func (x *UnitPrinter) why(ids []Identity) []string {
	out := x.p.reasons()
	for _, id := range ids {
		out = append(out, id.reason())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Value returns the fingerprint of a value. An unknown value is identified by the outputs that it
// contains.
func (x *UnitPrinter) Value(v cty.Value) outline.Print {
	if v.IsWhollyKnown() {
		return x.p.value(v)
	}
	return x.unknown(v, Identities(v))
}

// unknown returns the fingerprint of a value that contains outputs with the given identities.
func (x *UnitPrinter) unknown(v cty.Value, ids []Identity) outline.Print {
	d := newDigest("with outputs").print(ofValue(v, x.p.o.Rename))
	for _, id := range ids {
		d.print(id.Print)
	}
	return d.sum()
}

func isIdentity(mark any) bool {
	_, ok := mark.(Identity)
	return ok
}

// WithoutIdentities returns a value without the marks that identify unknown outputs.
func WithoutIdentities(v cty.Value) cty.Value {
	if v == cty.NilVal || v.IsWhollyKnown() || !value.AnyMark(v, isIdentity) {
		return v
	}
	bare, paths := v.UnmarkDeepWithPaths()
	for i := range paths {
		kept := cty.ValueMarks{}
		for m := range paths[i].Marks {
			if _, ok := m.(Identity); !ok {
				kept[m] = struct{}{}
			}
		}
		paths[i].Marks = kept
	}
	return bare.MarkWithPaths(slices.DeleteFunc(paths, func(p cty.PathValueMarks) bool { return len(p.Marks) == 0 }))
}
