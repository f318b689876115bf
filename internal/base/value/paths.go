package value

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/ctymarks"
)

// MarkPaths returns v with the mark m added at each of the paths. It ignores a path that
// does not exist in v, or that goes through a null or unknown value. A path into a set
// marks the whole set, because elements of a set have no marks. Only containers on a path
// are rebuilt.
func MarkPaths(v cty.Value, m any, paths ...cty.Path) cty.Value {
	if len(paths) == 0 {
		return v
	}
	return markBelow(v, m, paths, 0)
}

// markBelow adds the mark at the rest of each path, from depth on, inside v.
func markBelow(v cty.Value, m any, paths []cty.Path, depth int) cty.Value {
	here := false
	var deeper []cty.Path
	for _, p := range paths {
		if len(p) <= depth {
			here = true
		} else {
			deeper = append(deeper, p)
		}
	}
	if len(deeper) > 0 {
		bare, marks := v.Unmark()
		if bare.IsKnown() && !bare.IsNull() {
			if bare.Type().IsSetType() {
				here = true
			} else {
				v = markParts(bare, m, deeper, depth).WithMarks(marks)
			}
		}
	}
	if here {
		v = v.Mark(m)
	}
	return v
}

// markParts rebuilds the known, unmarked container v with the mark inside it.
func markParts(v cty.Value, m any, paths []cty.Path, depth int) cty.Value {
	ty := v.Type()
	switch {
	case ty.IsObjectType() || ty.IsMapType():
		if v.LengthInt() == 0 {
			return v
		}
		parts := v.AsValueMap()
		for name, group := range groupByName(paths, depth) {
			if part, ok := parts[name]; ok {
				parts[name] = markBelow(part, m, group, depth+1)
			}
		}
		if ty.IsMapType() {
			return cty.MapVal(parts)
		}
		return ofSameType(cty.ObjectVal(parts), ty)
	case ty.IsTupleType() || ty.IsListType():
		if v.LengthInt() == 0 {
			return v
		}
		parts := v.AsValueSlice()
		for i, group := range groupByIndex(paths, depth) {
			if i >= 0 && i < len(parts) {
				parts[i] = markBelow(parts[i], m, group, depth+1)
			}
		}
		if ty.IsListType() {
			return cty.ListVal(parts)
		}
		return cty.TupleVal(parts)
	}
	return v
}

func groupByName(paths []cty.Path, depth int) map[string][]cty.Path {
	groups := make(map[string][]cty.Path, len(paths))
	for _, p := range paths {
		switch step := p[depth].(type) {
		case cty.GetAttrStep:
			groups[step.Name] = append(groups[step.Name], p)
		case cty.IndexStep:
			key, _ := step.Key.Unmark()
			if key.Type() == cty.String && key.IsKnown() && !key.IsNull() {
				groups[key.AsString()] = append(groups[key.AsString()], p)
			}
		}
	}
	return groups
}

func groupByIndex(paths []cty.Path, depth int) map[int][]cty.Path {
	groups := make(map[int][]cty.Path, len(paths))
	for _, p := range paths {
		step, ok := p[depth].(cty.IndexStep)
		if !ok {
			continue
		}
		key, _ := step.Key.Unmark()
		if key.Type() != cty.Number || !key.IsKnown() || key.IsNull() {
			continue
		}
		if i, exact := key.AsBigFloat().Int64(); exact == 0 {
			groups[int(i)] = append(groups[int(i)], p)
		}
	}
	return groups
}

// PathsWith returns the paths of the values in v that have the mark m themselves, in the
// order of cty's walk. The caller may change the result.
func PathsWith(v cty.Value, m any) []cty.Path {
	var paths []cty.Path
	for p, part := range cty.DeepValues(v) {
		if part.HasMark(m) {
			paths = append(paths, p.Copy())
		}
	}
	return paths
}

// SplitMark removes the mark m everywhere in v. It returns the unmarked value and the
// paths of the removed marks. Other marks stay.
func SplitMark(v cty.Value, m any) (cty.Value, []cty.Path) {
	var paths []cty.Path
	bare, err := v.WrangleMarksDeep(func(have any, at cty.Path) (ctymarks.WrangleAction, error) {
		if have != m {
			return nil, nil
		}
		paths = append(paths, at.Copy())
		return ctymarks.WrangleDrop, nil
	})
	if err != nil {
		return v, nil // the function above gives no error
	}
	return bare, paths
}

// PathString returns p in the form that follows a reference: `.tags["a b"][0]`. The
// result is "" for the empty path; a step into a set is `[...]`.
func PathString(p cty.Path) string {
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case cty.GetAttrStep:
			b.WriteByte('.')
			b.WriteString(step.Name)
		case cty.IndexStep:
			b.WriteByte('[')
			b.WriteString(indexText(step.Key))
			b.WriteByte(']')
		}
	}
	return b.String()
}

func indexText(key cty.Value) string {
	key, _ = key.Unmark()
	if !key.IsKnown() || key.IsNull() {
		return "..."
	}
	switch key.Type() {
	case cty.String:
		return Quote(key.AsString())
	case cty.Number:
		return key.AsBigFloat().Text('f', -1)
	}
	return "..."
}

// Quote returns s as an HCL string literal.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
