package unit

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Rendering
//
// The effective configuration is rendered in the formats of `terragrunt render`: as HCL, as
// JSON with every argument, and as JSON with the origin of each key. A value that depends
// on missing outputs is "", or null in locals. Secret values are not shown.

// hiddenText replaces values that must not be shown.
const hiddenText = "(sensitive value)"

// RenderJSON returns the effective configuration as JSON.
func (u *Unit) RenderJSON(t *demand.Task) ([]byte, diag.List) {
	c := u.on(t, true)
	n := u.whole()
	names, _ := n.keys(c)
	vals := make(map[string]cty.Value, len(names))
	for _, k := range names {
		one := c.sub(u.e, c.full) // an error in one part does not affect the others
		if in := n.child(one, k); in != nil {
			vals[k] = u.shown(one, k, in)
		}
		c.merge(one)
	}
	return u.written(t, c, vals)
}

// written returns the JSON text of the rendered parts.
func (u *Unit) written(t *demand.Task, c *evaluator, vals map[string]cty.Value) ([]byte, diag.List) {
	var b bytes.Buffer
	left := maxParts
	if v := u.revealed(cty.ObjectVal(vals)); c.fits(u, v, &left) {
		writeJSON(&b, v)
	}
	c.add(u.checkBlocks(t))
	return b.Bytes(), c.ds
}

// fits reports whether another value may be written. left is the number of values that may
// still be written, and is decreased.
func (c *evaluator) fits(u *Unit, v cty.Value, left *int) bool {
	if value.Within(v, left) {
		return true
	}
	c.errorf(nil, diag.CodeUnitTooLarge, "Value too large", "What the unit in %s is made of cannot be shown: it has more than 1 million values. Ask for a part of it with explain.", u.Path)
	return false
}

// revealed returns the value to write. It has no marks if sensitive values are written.
func (u *Unit) revealed(v cty.Value) cty.Value {
	if u.reveal {
		v, _ = v.UnmarkDeep()
	}
	return v
}

func (u *Unit) whole() *configNode { return &configNode{e: u.e, style: renderStyle} }

// inMembers reports whether the members of a part are rendered separately: inputs, and a
// block with arbitrary arguments.
func inMembers(name string) bool {
	spec := syntax.Language().Unit
	if a := spec.Arg(name); a != nil {
		return a.Keyed
	}
	b := spec.Block(name)
	return b != nil && b.Open && b.Label == syntax.NoLabel
}

// shown returns the value of a part as it is rendered. Locals are computed separately, so
// that one that needs missing outputs does not affect the others.
func (u *Unit) shown(c *evaluator, name string, n node) cty.Value {
	if !inMembers(name) {
		return blank(n.value(c))
	}
	o := n.open(c)
	names, ok := o.keys(c)
	if !ok {
		return n.value(c)
	}
	vals := make(map[string]cty.Value, len(names))
	for _, k := range names {
		vals[k] = u.shownMember(c, name, k, o.child(c, k))
	}
	return cty.ObjectVal(vals)
}

func (u *Unit) shownMember(c *evaluator, name, k string, n node) cty.Value {
	one := c.sub(u.e, c.full)
	v := n.value(one)
	c.merge(one)
	if name == "locals" && !one.failed && !v.IsWhollyKnown() {
		_, at := n.where()
		w := diag.Warnf(diag.CodeUnitLocalOutputs, at, "Local value without outputs", "The local value %q needs outputs that do not exist, so it is shown as null.", k)
		c.add(w)
	}
	if name == "inputs" {
		v = blank(v)
	}
	return v
}

// blank replaces values that depend on missing outputs by "", as Terragrunt does everywhere
// except in locals.
func blank(v cty.Value) cty.Value {
	if v == cty.NilVal || v.IsWhollyKnown() {
		return v
	}
	v, _ = cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) { // the function returns no error
		if v.IsKnown() || v.Type() != cty.String && v.Type() != cty.DynamicPseudoType {
			return v, nil
		}
		return cty.StringVal("").WithMarks(v.Marks()), nil
	})
	return v
}

// RenderMetadata returns the effective configuration as JSON. Each key has the file and
// line of its definition.
func (u *Unit) RenderMetadata(t *demand.Task) ([]byte, diag.List) {
	c := u.on(t, true)
	n := u.whole()
	fields := u.fields(c)
	out := map[string]cty.Value{}
	names, _ := n.keys(c)
	for _, k := range names {
		in := n.child(c, k)
		if in == nil {
			continue
		}
		raw := fields.member(k)
		set := raw != nil || k == "locals" && hasLocals(u.e)
		b := syntax.Language().Unit.Block(k)
		switch {
		case !set && (b != nil || inMembers(k) || syntax.Language().Unit.Arg(k).IfSet == syntax.MetaIfSet):
		case inMembers(k) || b != nil && b.Label == syntax.OneLabel:
			out[k] = u.metaGroup(c, k, in)
		case b != nil && b.List != "":
			out[k] = u.metaList(c, in.child(c, b.List))
		default:
			out[k] = withMeta(in.value(c), placeOf(raw))
		}
	}
	return u.written(t, c, out)
}

func placeOf(n node) *source.Range {
	if n == nil {
		return nil
	}
	_, at := n.where()
	return at
}

func (u *Unit) metaGroup(c *evaluator, name string, n node) cty.Value {
	o := n.open(c)
	names, ok := o.keys(c)
	if !ok {
		return n.value(c)
	}
	vals := make(map[string]cty.Value, len(names))
	for _, k := range names {
		in := o.child(c, k)
		vals[k] = withMeta(u.shownMember(c, name, k, in), placeOf(in))
	}
	return cty.ObjectVal(vals)
}

func (u *Unit) metaList(c *evaluator, n node) cty.Value {
	if n == nil {
		return cty.EmptyTupleVal
	}
	v, _ := n.value(c).Unmark()
	if !syntax.Known(v) || !v.CanIterateElements() {
		return v
	}
	var out []cty.Value
	for _, p := range v.AsValueSlice() {
		out = append(out, withMeta(p, placeOf(n)))
	}
	return cty.TupleVal(out)
}

func withMeta(v cty.Value, at *source.Range) cty.Value {
	meta := cty.NullVal(cty.DynamicPseudoType)
	if at != nil && at.Filename != "" {
		meta = cty.ObjectVal(map[string]cty.Value{
			"found_in_file": cty.StringVal(at.Filename), "found_at_line": cty.NumberIntVal(int64(at.Start.Line)),
		})
	}
	return cty.ObjectVal(map[string]cty.Value{"metadata": meta, "value": v})
}

// relativeToUnit makes an absolute path relative to the unit's directory, as the unit would
// write it.
func relativeToUnit(v cty.Value, dir string) cty.Value {
	return onString(v, func(s string) string {
		if !filepath.IsAbs(s) {
			return s
		}
		root, sub := SplitSource(s)
		rel, err := filepath.Rel(dir, root)
		if err != nil {
			return s
		}
		rel = filepath.ToSlash(rel)
		if rel != "." && !bytes.HasPrefix([]byte(rel), []byte("..")) {
			rel = "./" + rel
		}
		if sub != "" {
			rel += "//" + sub
		}
		return rel
	})
}

// writeJSON writes a value as JSON, with members in alphabetical order. Unknown values are
// null, and secret ones hiddenText.
func writeJSON(b *bytes.Buffer, v cty.Value) {
	if v.IsMarked() {
		if value.Secret(v) {
			b.WriteString(`"` + hiddenText + `"`)
			return
		}
		v, _ = v.Unmark()
	}
	ty := v.Type()
	switch {
	case !v.IsKnown() || v.IsNull() || syntax.HugeNumber(v):
		b.WriteString("null")
	case ty == cty.String:
		text, _ := json.Marshal(v.AsString())
		b.Write(text)
	case ty == cty.Number:
		b.WriteString(v.AsBigFloat().Text('f', -1))
	case ty == cty.Bool:
		if v.True() {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	case ty.IsObjectType() || ty.IsMapType():
		b.WriteByte('{')
		names, _ := valueKeys(v)
		slices.Sort(names)
		for i, k := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			text, _ := json.Marshal(k)
			b.Write(text)
			b.WriteByte(':')
			writeJSON(b, valueNode{v: v}.child(nil, k).(valueNode).v)
		}
		b.WriteByte('}')
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		b.WriteByte('[')
		for i, in := range v.AsValueSlice() {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, in)
		}
		b.WriteByte(']')
	default:
		b.WriteString("null")
	}
}
