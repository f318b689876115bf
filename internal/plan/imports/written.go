package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// GeneratedValue returns the value of a configuration that GenerateConfig generated.
func GeneratedValue(text string, s *schema.Resource) (cty.Value, diag.List) {
	f, hclDiags := hclsyntax.ParseConfig([]byte(text), "generated configuration", hcl.InitialPos)
	ds := diag.FromHCL(hclDiags)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	blocks := f.Body.(*hclsyntax.Body).Blocks
	if len(blocks) != 1 {
		return cty.DynamicVal, append(ds, diag.Errorf(diag.CodePlanGenerated, nil, "Invalid generated configuration", "One resource block is needed, and there are %d.", len(blocks))...)
	}
	body := blocks[0].Body
	delete(body.Attributes, "provider")
	b, more := lang.CompileBody(body, s.Block)
	if ds = append(ds, more...); more.HasErrors() {
		return cty.DynamicVal, ds
	}
	v, more := b.Eval(nil, constants{})
	return v, append(ds, more...)
}

// constants is a scope without any names.
type constants struct{}

func (constants) Resolve(_ *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	return cty.DynamicVal, len(ref), diag.Errorf(diag.CodePlanGenerated, at, "Invalid generated configuration", "It refers to %q, though it may hold nothing but constants.", ref.RootName())
}

func (constants) Functions(*demand.Task, []string) (map[string]function.Function, diag.List) {
	return nil, nil
}

// GenerateConfig returns a resource block that describes an object. It contains every
// configurable argument that has a value. Sensitive values are replaced by a comment.
func GenerateConfig(r addr.Resource, ref *config.ProviderRef, s *schema.Resource, v cty.Value) string {
	var b strings.Builder
	fmt.Fprintf(&b, "resource %q %q {\n", r.Type, r.Name)
	if ref != nil {
		fmt.Fprintf(&b, "  provider = %s\n", ref)
	}
	generateBody(&b, s.Block, v, 1)
	b.WriteString("}\n")
	return string(hclwrite.Format([]byte(b.String())))
}

func generateBody(b *strings.Builder, s *schema.Block, v cty.Value, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
		a := s.Attributes[name]
		x := v.GetAttr(name)
		switch {
		case !a.Required && !a.Optional, a.Deprecated != "" && !a.Required:
			continue
		case a.Optional && a.Computed && name == "id":
			continue
		case a.WriteOnly:
			fmt.Fprintf(b, "%s%s = null # write-only\n", indent, name)
		case a.Sensitive:
			fmt.Fprintf(b, "%s%s = null # sensitive\n", indent, name)
		case x.IsNull() && a.Required:
			fmt.Fprintf(b, "%s%s = null # must be set\n", indent, name)
		case x.IsNull():
			fmt.Fprintf(b, "%s%s = null\n", indent, name)
		default:
			fmt.Fprintf(b, "%s%s = %s\n", indent, name, hclwrite.TokensForValue(settable(a, x)).Bytes())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Blocks)) {
		generateBlocks(b, name, s.Blocks[name], v.GetAttr(name), depth)
	}
}

func generateBlocks(b *strings.Builder, name string, nb *schema.NestedBlock, v cty.Value, depth int) {
	indent := strings.Repeat("  ", depth)
	one := func(label string, e cty.Value) {
		if e.IsNull() {
			return
		}
		fmt.Fprintf(b, "%s%s%s {\n", indent, name, label)
		generateBody(b, nb.Block, e, depth+1)
		fmt.Fprintf(b, "%s}\n", indent)
	}
	if v.IsNull() {
		return
	}
	switch nb.Nesting {
	case schema.Single, schema.Group:
		one("", v)
	default:
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			label := ""
			if nb.Nesting == schema.Map {
				label = " " + addr.Quote(k.AsString())
			}
			one(label, e)
		}
	}
}

// settable removes the nested attributes that only the provider sets.
func settable(a *schema.Attribute, v cty.Value) cty.Value {
	if a.Nested == nil || v.IsNull() {
		return v
	}
	one := func(e cty.Value) cty.Value {
		if e.IsNull() {
			return e
		}
		vals := map[string]cty.Value{}
		for name, na := range a.Nested.Attributes {
			if (na.Required || na.Optional) && !na.WriteOnly && !na.Sensitive && !e.GetAttr(name).IsNull() {
				vals[name] = settable(na, e.GetAttr(name))
			}
		}
		return cty.ObjectVal(vals)
	}
	if a.Nested.Nesting == schema.Single {
		return one(v)
	}
	if a.Nested.Nesting == schema.Map {
		vals := map[string]cty.Value{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			vals[k.AsString()] = one(e)
		}
		return cty.ObjectVal(vals)
	}
	var vals []cty.Value
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		vals = append(vals, one(e))
	}
	return cty.TupleVal(vals)
}
