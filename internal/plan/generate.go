package plan

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
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// generateImports takes over objects for which there is no resource block yet,
// and writes the block that describes each of them.
func (p *planner) generateImports() {
	if !p.in.Generate || p.imports == nil {
		return
	}
	t := p.graph.Task(p.ctx)
	for _, a := range slices.SortedFunc(maps.Keys(p.imports.by), addr.Instance.Compare) {
		it := p.imports.by[a]
		if p.in.Tree.Root.Config.Resources[a.Resource] != nil || p.prior.Instance(a) != nil || !p.scope.wantsInstance(a) {
			continue
		}
		g, ds := p.generate(t, it)
		p.graph.Report(ds.Under(&it.block.At).About(a.String()))
		if g != nil {
			p.generated = append(p.generated, g)
		}
	}
}

// A generatedPlan is the plan for an object whose block was written for it.
type generatedPlan struct {
	change *Change
	stored *state.Object
}

func (p *planner) generate(t *demand.Task, it *importTarget) (*generatedPlan, diag.List) {
	ref := config.ProviderRef{Name: config.ImpliedProvider(it.to.Resource.Type), At: it.block.At}
	if it.block.Provider != nil {
		ref = *it.block.Provider
	}
	pc, ds := p.ev.Root.ResolveProvider(t, ref, importScope{p.ev.Root, it.each})
	if ds.HasErrors() {
		return nil, ds
	}
	prov, ds := p.configured(t, pc, &it.block.At)
	if ds.HasErrors() {
		return nil, ds
	}
	ps, ds := p.shell.Schema(pc.Addr.Provider)
	if ds.HasErrors() {
		return nil, ds
	}
	s := ps.Resource(addr.Managed, it.to.Resource.Type)
	if s == nil {
		return nil, append(ds, diag.Errorf(nil, "Invalid resource type", "The provider %s does not support resource type %q.", pc.Addr.Provider.Display(), it.to.Resource.Type)...)
	}
	imp, more := p.importID(t, s, it)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	obj, ds := p.importInto(it.to, s, prov, imp, ds)
	if ds.HasErrors() {
		return nil, ds
	}
	imp.GeneratedConfig = GenerateConfig(it.to.Resource, it.block.Provider, s, obj.value)
	stored, err := NewObject(obj.value, s, obj.private, obj.identity)
	if err != nil {
		return nil, append(ds, diag.Errorf(nil, "Provider produced invalid object", "What the provider returned for %s cannot be stored: %s.", it.to, err)...)
	}
	obj.stored = stored
	c, more := p.planGenerated(it.to, pc.Addr, s, prov, obj, imp)
	return &generatedPlan{c, stored}, append(ds, more...)
}

// planGenerated plans an imported object by the block that was written for it,
// as if that stood in configuration already.
func (p *planner) planGenerated(a addr.Instance, pc addr.ProviderConfig, s *schema.Resource, prov provider.Provider, obj object, imp *Import) (*Change, diag.List) {
	c := &Change{
		Addr: a, Prev: a, Provider: pc, Op: NoOp, Import: imp, Before: obj.value, After: obj.value, Private: obj.private,
		BeforeIdentity: obj.identity, AfterIdentity: obj.identity, ConfigKnown: true,
		BeforeSensitive: sensitivePaths(s, obj.value, nil), AfterSensitive: sensitivePaths(s, obj.value, nil),
	}
	config, ds := GeneratedValue(imp.GeneratedConfig, s)
	if ds.HasErrors() {
		return c, ds
	}
	done := p.call()
	ds = append(ds, prov.ValidateResource(p.ctx, addr.Managed, a.Resource.Type, config)...)
	done()
	if ds.HasErrors() {
		return c, ds
	}
	req := planCall{p: p, addr: a, of: pc.Provider, s: s, prov: prov, config: config}
	resp, more := req.plan(obj)
	if ds = append(ds, more...); more.HasErrors() {
		return c, ds
	}
	if c.ReplacePaths = replacing(resp, obj.value, s); len(c.ReplacePaths) > 0 {
		c.Op, c.Reason = DeleteThenCreate, ReplaceCannotUpdate
		resp, more = req.plan(object{value: cty.NullVal(s.Block.ImpliedType())})
		if ds = append(ds, more...); more.HasErrors() {
			return c, ds
		}
	} else if !resp.Planned.RawEquals(obj.value) {
		c.Op = Update
	} else {
		return c, ds
	}
	c.After, c.Private, c.AfterIdentity = resp.Planned, resp.Private, resp.Identity
	c.AfterSensitive = sensitivePaths(s, resp.Planned, nil)
	return c, ds
}

// GeneratedValue is the configuration that GenerateConfig wrote, as a value.
func GeneratedValue(text string, s *schema.Resource) (cty.Value, diag.List) {
	f, hclDiags := hclsyntax.ParseConfig([]byte(text), "generated configuration", hcl.InitialPos)
	ds := diag.FromHCL(hclDiags)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	blocks := f.Body.(*hclsyntax.Body).Blocks
	if len(blocks) != 1 {
		return cty.DynamicVal, append(ds, diag.Errorf(nil, "Invalid generated configuration", "One resource block is needed, and there are %d.", len(blocks))...)
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

// constants is a scope in which nothing can be referred to.
type constants struct{}

func (constants) Resolve(_ *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	return cty.DynamicVal, len(ref), diag.Errorf(at, "Invalid generated configuration", "It refers to %q, though it may hold nothing but constants.", ref.RootName())
}

func (constants) Functions(*demand.Task, []string) (map[string]function.Function, diag.List) {
	return nil, nil
}

// GenerateConfig writes the resource block that describes an object: every
// argument that configuration can set and that has a value. Sensitive values are
// left out with a comment.
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

// settable leaves out the nested attributes that only the provider sets.
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
