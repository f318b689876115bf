package resourceclient

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// SensitivePaths joins the given paths with the sensitive paths of a value according to its
// schema.
func SensitivePaths(s *schema.Resource, v cty.Value, given []cty.Path) []cty.Path {
	if !s.Block.HasSensitive() {
		return given
	}
	return sortedPaths(append(slices.Clone(given), s.Block.SensitivePaths(v)...))
}

// sortedPaths sorts paths in place and removes duplicates.
func sortedPaths(list []cty.Path) []cty.Path {
	state.SortPaths(list)
	return slices.CompactFunc(list, cty.Path.Equals)
}

// BySchema returns the paths that SensitivePaths added to the given paths.
func BySchema(all, given []cty.Path) []cty.Path {
	given = sortedPaths(slices.Clone(given))
	var out []cty.Path
	for _, path := range all {
		if len(given) > 0 && given[0].Equals(path) {
			given = given[1:]
			continue
		}
		out = append(out, path)
	}
	return out
}

// ConfigValue evaluates an instance's configuration and removes the marks. It returns the
// sensitive paths. An ephemeral value outside of write-only attributes is an error.
func ConfigValue(t *demand.Task, d *eval.Desired, s *schema.Resource) (plain cty.Value, sensitive []cty.Path, ds diag.List) {
	v, ds := d.Config(t, s)
	if ds.HasErrors() {
		plain, _ = v.UnmarkDeep()
		return plain, nil, ds
	}
	if !value.Marked(v) {
		return v, nil, ds
	}
	_, ephemeral := value.SplitMark(v, value.Ephemeral)
	if len(ephemeral) > 0 && d.Resource.Config().Addr.Mode == addr.Managed {
		plain, _ = v.UnmarkDeep()
		writeOnly := s.Block.WriteOnlyPaths(plain)
		for _, path := range ephemeral {
			if !underAny(path, writeOnly) {
				ds = append(ds, diag.List{{Severity: diag.Error, Code: diag.CodePlanEphemeral, Summary: "Ephemeral value used in non-ephemeral context", Attr: path,
					Detail: fmt.Sprintf("Ephemeral values are not valid for %q, because it is not a write-only attribute and must be persisted to state.", attrName(path))}}...)
			}
		}
	} else if len(ephemeral) > 0 && d.Resource.Config().Addr.Mode == addr.Data {
		ds = append(ds, diag.List{{Severity: diag.Error, Code: diag.CodePlanEphemeral, Summary: "Ephemeral value used in non-ephemeral context", Attr: ephemeral[0],
			Detail: fmt.Sprintf("Ephemeral values are not valid for %q, because the results of data sources are stored in state.", attrName(ephemeral[0]))}}...)
	}
	sensitive = value.PathsWith(v, value.Sensitive)
	sensitive = append(sensitive, value.PathsWith(v, value.Hidden)...)
	ds = append(ds, deprecations(v)...)
	plain, _ = v.UnmarkDeep()
	return plain, sensitive, ds
}

// CodeDeprecated is the code of warnings about values derived from something deprecated.
const CodeDeprecated = diag.CodeEvalDeprecatedSource

// deprecations warns about deprecated outputs of modules, resources and attributes that a
// value is derived from.
func deprecations(v cty.Value) diag.List {
	var ds diag.List
	plain, _ := v.Unmark()
	for name := range v.Type().AttributeTypes() {
		for _, dep := range value.Deprecations(plain.GetAttr(name)) {
			ds = append(ds, &diag.Message{
				Code: CodeDeprecated, Severity: diag.Warning, Summary: "Value derived from a deprecated source", Attr: cty.GetAttrPath(name), Detail: dep.Sentence(),
			})
		}
	}
	return ds
}

// MarkSensitive marks the given paths, which must exist in the value.
func MarkSensitive(v cty.Value, paths []cty.Path) cty.Value {
	return value.MarkPaths(v, value.Sensitive, paths...)
}

// Plain removes all marks from a value. sensitive reports whether a part is sensitive, or
// came from a sensitive output of another unit.
func Plain(v cty.Value) (plain cty.Value, sensitive bool) {
	sensitive = value.ContainsSecret(v)
	plain, _ = v.UnmarkDeep()
	return plain, sensitive
}

func underAny(p cty.Path, roots []cty.Path) bool {
	for _, r := range roots {
		if p.HasPrefix(r) {
			return true
		}
	}
	return false
}

func attrName(p cty.Path) string { return strings.TrimPrefix(value.PathString(p), ".") }

// Present returns the paths that exist in a value.
func Present(v cty.Value, paths []cty.Path) []cty.Path {
	var out []cty.Path
	for _, path := range paths {
		if _, err := path.Apply(v); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// SamePaths reports whether two lists contain the same paths.
func SamePaths(a, b []cty.Path) bool {
	if len(a) != len(b) || slices.EqualFunc(a, b, cty.Path.Equals) {
		return len(a) == len(b)
	}
	return slices.EqualFunc(sortedPaths(slices.Clone(a)), sortedPaths(slices.Clone(b)), cty.Path.Equals)
}

// WithSensitive marks the sensitive parts of an unmarked value from state or from a
// provider: those at the given paths, and those in the schema.
func WithSensitive(v cty.Value, paths []cty.Path, s *schema.Resource) cty.Value {
	if s.Block.HasSensitive() {
		paths = slices.Concat(paths, s.Block.SensitivePaths(v))
	}
	return value.MarkPaths(v, value.Sensitive, paths...)
}

// Blame sets the range of messages about an instance: the argument at the message's path,
// or else the block.
func Blame(d *eval.Desired, s *schema.Resource, ds diag.List) diag.List {
	if len(ds) == 0 {
		return ds
	}
	for _, m := range ds {
		if m.At == nil && m.Code != "demand/silent" {
			m.At = placeOf(d, s, m.Attr)
			conceal(d, m)
		}
	}
	return ds
}

// conceal removes the source excerpt from a message about the configuration of a backend.
// The message contains the location in words instead.
func conceal(d *eval.Desired, m *diag.Message) {
	cfg := d.Resource.Config()
	if cfg.Addr.Type != "terraform_remote_state" || len(m.Attr) == 0 || m.Attr[0] != (cty.GetAttrStep{Name: "config"}) {
		return
	}
	if len(m.Attr) > 1 {
		m.Detail += fmt.Sprintf(" The argument is in %s, line %d.", m.At.Filename, m.At.Start.Line)
	}
	m.At = &cfg.At
}

func placeOf(d *eval.Desired, s *schema.Resource, path cty.Path) *source.Range {
	if len(path) > 0 && s != nil {
		if b, _ := d.Resource.Body(s); b != nil {
			at := b.AttrRange(path)
			if len(path) > 1 {
				at = within(d.Resource.Config().Body, path, at)
			}
			return &at
		}
	}
	return &d.Resource.Config().At
}

// within returns the range of the value at a path inside of an argument that is written as
// an object, or else at.
func within(body hcl.Body, path cty.Path, at source.Range) source.Range {
	first, ok := path[0].(cty.GetAttrStep)
	if !ok {
		return at
	}
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: first.Name}}})
	if content == nil || content.Attributes[first.Name] == nil {
		return at
	}
	x := content.Attributes[first.Name].Expr
	for _, step := range path[1:] {
		s, ok := step.(cty.GetAttrStep)
		if !ok {
			break
		}
		pairs, diags := hcl.ExprMap(x)
		if diags.HasErrors() {
			break
		}
		x = nil
		for _, pair := range pairs {
			if name, diags := pair.Key.Value(nil); !diags.HasErrors() && name.Type() == cty.String && name.IsKnown() && !name.IsNull() && name.AsString() == s.Name {
				x, at = pair.Value, hcl.RangeBetween(pair.Key.Range(), pair.Value.Range())
			}
		}
		if x == nil {
			break
		}
	}
	return at
}
