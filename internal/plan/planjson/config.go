package planjson

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/relevantattrs"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Configuration writes the configuration as a separate document.
func Configuration(t *module.Tree, schemas Schemas) (Document, error) {
	w := new(writer)
	err := writeConfiguration(w, t, schemas)
	return w.document(), err
}

// Module writes one module without the modules that it calls, for `show -module`. text
// evaluates the source and the version of a call; ok is false if they have no value.
func Module(n *module.Node, text func(hcl.Expression) (s string, ok bool)) (Document, error) {
	c := &configWriter{writer: new(writer), alone: text}
	c.begin('{')
	c.providers(&module.Tree{Root: n})
	c.name("root_module")
	c.module(n)
	c.end('}')
	return c.document(), c.err
}

func writeConfiguration(w *writer, t *module.Tree, schemas Schemas) error {
	c := &configWriter{writer: w, schemas: schemas}
	c.tree(t)
	return c.err
}

func (c *configWriter) tree(t *module.Tree) {
	c.begin('{')
	c.providers(t)
	c.name("root_module")
	c.module(t.Root)
	c.end('}')
}

type configWriter struct {
	*writer
	schemas Schemas
	alone   func(hcl.Expression) (string, bool) // the text function of Module; nil means that called modules are written, too
	refs    relevantattrs.References            // collects the references in the arguments of resource blocks; nil if not needed
	vars    []hcl.Traversal                     // references in the expressions that were written since the field was last reset
	err     error

	iterators []iterator // iterators of the enclosing dynamic blocks
}

func (c *configWriter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// module writes the contents of a module.
func (c *configWriter) module(n *module.Node) {
	m := n.Config
	c.begin('{')
	if len(m.Outputs) > 0 {
		c.name("outputs")
		c.begin('{')
		for _, name := range keys(m.Outputs) {
			c.name(name)
			c.output(m.Outputs[name])
		}
		c.end('}')
	}
	c.resources(n)
	if len(m.Calls) > 0 {
		c.name("module_calls")
		c.begin('{')
		for _, name := range keys(m.Calls) {
			if child := n.Calls[name]; child != nil {
				c.name(name)
				c.call(m.Calls[name], child)
			} else if c.alone != nil {
				c.name(name)
				c.callAlone(m.Calls[name])
			}
		}
		c.end('}')
	}
	if len(m.Variables) > 0 {
		c.name("variables")
		c.begin('{')
		for _, name := range keys(m.Variables) {
			c.name(name)
			c.variable(m.Variables[name])
		}
		c.end('}')
	}
	c.end('}')
}

func (c *configWriter) output(o *config.Output) {
	c.begin('{')
	if o.Sensitive {
		c.name("sensitive")
		c.bool(true)
	}
	c.field("deprecated", o.Deprecated)
	if o.Ephemeral {
		c.name("ephemeral")
		c.bool(true)
	}
	if o.Value != nil {
		c.name("expression")
		c.expression(o.Value.Expr)
	}
	c.dependsOn(o.DependsOn)
	c.field("description", o.Description)
	c.end('}')
}

func (c *configWriter) dependsOn(list []hcl.Traversal) {
	if len(list) == 0 {
		return
	}
	c.name("depends_on")
	c.begin('[')
	for _, t := range list {
		c.str(addr.Text(t))
	}
	c.end(']')
}

func (c *configWriter) variable(v *config.Variable) {
	c.begin('{')
	if v.Type != cty.NilType && v.Type != cty.DynamicPseudoType {
		ty, err := typeJSON(v.Type)
		c.fail(err)
		c.name("type")
		c.raw(ty)
	}
	if !v.Required() {
		c.name("default")
		c.value(v.Default)
	}
	c.field("description", v.Description)
	for _, f := range []struct {
		name string
		on   bool
	}{{"required", v.Required()}, {"sensitive", v.Sensitive}} {
		if f.on {
			c.name(f.name)
			c.bool(true)
		}
	}
	c.field("deprecated", v.Deprecated)
	if v.Ephemeral {
		c.name("ephemeral")
		c.bool(true)
	}
	c.end('}')
}

func (c *configWriter) resources(n *module.Node) {
	if len(n.Config.Resources) == 0 {
		return
	}
	list := slices.Collect(maps.Values(n.Config.Resources))
	slices.SortFunc(list, func(a, b *config.Resource) int { return a.Addr.Compare(b.Addr) })
	c.name("resources")
	c.begin('[')
	for _, r := range list {
		c.resource(n, r)
		c.piece()
	}
	c.end(']')
}

func (c *configWriter) resource(n *module.Node, r *config.Resource) {
	c.begin('{')
	c.name("address")
	c.str(r.Addr.String())
	c.name("mode")
	c.str(r.Addr.Mode.String())
	c.name("type")
	c.str(r.Addr.Type)
	c.name("name")
	c.str(r.Addr.Name)
	c.name("provider_config_key")
	ref := config.ProviderRef{Name: r.LocalProvider()}
	if r.Provider != nil {
		ref = *r.Provider
	}
	c.str(providerKey(n, ref))
	if len(r.Provisioners) > 0 {
		c.name("provisioners")
		c.begin('[')
		for _, p := range r.Provisioners {
			c.provisioner(p)
		}
		c.end(']')
	}
	var s *schema.Resource
	if c.schemas != nil {
		s = c.schemas.Resource(n.Config.Source(r.LocalProvider()), r.Addr.Mode, r.Addr.Type)
	}
	if s != nil {
		c.resourceBody(r, s.Block)
		c.name("schema_version")
		c.int(s.Version)
	} else if c.schemas != nil {
		c.name("schema_version")
		c.int(0)
	}
	c.repeat(r.Repeat)
	c.dependsOn(r.DependsOn)
	c.end('}')
}

// resourceBody writes the body of a resource block. It collects the body's references if c.refs
// is set.
func (c *configWriter) resourceBody(r *config.Resource, b *schema.Block) {
	content, _, _ := r.Body.PartialContent(b.Reading().HCL)
	if content == nil || len(content.Blocks) > 0 {
		c.blockMember("expressions", r.Body, b)
		return
	}
	c.vars = nil
	if len(content.Attributes) > 0 {
		c.name("expressions")
		c.content(content, b)
	}
	if c.refs != nil {
		c.refs[r] = c.vars
	}
}

func (c *configWriter) provisioner(p *config.Provisioner) {
	c.begin('{')
	c.name("type")
	c.str(p.Type)
	attrs, _ := p.Body.JustAttributes()
	if len(attrs) > 0 {
		c.name("expressions")
		c.begin('{')
		for _, name := range keys(attrs) {
			c.name(name)
			c.expression(attrs[name].Expr)
		}
		c.end('}')
	}
	c.end('}')
}

func (c *configWriter) repeat(r config.Repeat) {
	if r.Count != nil {
		c.expressionMember("count_expression", r.Count.Expr)
	}
	if r.ForEach != nil {
		c.expressionMember("for_each_expression", r.ForEach.Expr)
	}
}

// callAlone writes a call of a module that was not loaded.
func (c *configWriter) callAlone(call *config.Call) {
	c.begin('{')
	if call.Source != nil {
		if text, ok := c.alone(call.Source.Expr); ok {
			c.field("source", source.HideCredentials(text))
		}
	}
	c.repeat(call.Repeat)
	if call.Version != nil {
		if text, ok := c.alone(call.Version.Expr); ok {
			c.field("version_constraint", text)
		}
	}
	c.dependsOn(call.DependsOn)
	c.end('}')
}

func (c *configWriter) call(call *config.Call, child *module.Node) {
	c.begin('{')
	c.field("source", source.HideCredentials(child.Source))
	names := make([]hcl.AttributeSchema, 0, len(child.Config.Variables))
	for _, name := range keys(child.Config.Variables) {
		names = append(names, hcl.AttributeSchema{Name: name})
	}
	if content, _, _ := call.Body.PartialContent(&hcl.BodySchema{Attributes: names}); content != nil && len(content.Attributes) > 0 {
		c.name("expressions")
		c.begin('{')
		for _, name := range keys(content.Attributes) {
			c.name(name)
			c.expression(content.Attributes[name].Expr)
		}
		c.end('}')
	}
	c.repeat(call.Repeat)
	c.name("module")
	c.module(child)
	if call.Version != nil {
		if v, diags := call.Version.Expr.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			c.field("version_constraint", v.AsString())
		}
	}
	c.dependsOn(call.DependsOn)
	c.end('}')
}
