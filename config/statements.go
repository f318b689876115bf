package config

import (
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
)

func decodeMoved(o *object) (*Moved, diag.List) {
	c, ds := kinds().moved.merge(o.parts)
	e := &errs{ds}
	m := &Moved{At: c.head, ForEach: c.args["for_each"]}
	m.From = e.address(c, "from", m.ForEach != nil)
	m.To = e.address(c, "to", m.ForEach != nil)
	if m.From == nil || m.To == nil {
		return nil, e.ds
	}
	from, ok1 := staticTarget(m.From)
	to, ok2 := staticTarget(m.To)
	if ok1 && ok2 && from.IsModule() != to.IsModule() {
		e.add(errorAt(diag.CodeConfigMovedKinds, c.head, "Invalid \"moved\" addresses",
			"Both addresses of a moved block must name modules, or both must name resources."))
	}
	for _, t := range []addr.Target{from, to} {
		if t.Resource.Mode == addr.Ephemeral {
			e.add(errorAt(diag.CodeConfigMovedKinds, c.head, "Invalid \"moved\" addresses",
				"An ephemeral resource is never in state and so cannot be moved, as %s would be.", t))
			return nil, e.ds
		}
	}
	return m, e.ds
}

// address decodes an argument that is the address of an object. Unless dynamic is set, its
// indexes must be constants.
func (e *errs) address(c *content, name string, dynamic bool) hcl.Expression {
	s := keep[*Setting](e)(c.required(name))
	if s == nil {
		return nil
	}
	x, diags := native(s.Expr)
	e.add(diag.FromHCL(diags))
	if diags.HasErrors() {
		return nil
	}
	t, diags := hcl.AbsTraversalForExpr(x)
	if diags.HasErrors() {
		if dynamic && hasTraversal(x) {
			return x
		}
		e.add(diag.FromHCL(diags))
		return nil
	}
	if _, err := statementTarget(t); err != nil {
		e.add(errorAt(diag.CodeConfigInvalidAddress, s.Expr.Range(), "Invalid address", "%s", sentence(err)))
		return nil
	}
	return x
}

func staticTarget(x hcl.Expression) (addr.Target, bool) {
	t, diags := hcl.AbsTraversalForExpr(x)
	if diags.HasErrors() {
		return addr.Target{}, false
	}
	target, err := statementTarget(t)
	return target, err == nil
}

func decodeRemoved(o *object) (*Removed, diag.List) {
	c, ds := kinds().removed.merge(o.parts)
	e := &errs{ds}
	r := &Removed{At: c.head, ForEach: c.args["for_each"]}
	r.From = e.address(c, "from", r.ForEach != nil)
	life, ds := c.inner("lifecycle", kinds().remLife)
	e.add(ds)
	if life != nil {
		r.Destroy = keep[*bool](e)(life.args["destroy"].constBool())
	} else {
		e.add(warnAt(diag.CodeConfigRemovedLifecycle, c.head, "Missing lifecycle from the removed block",
			"Without a lifecycle block the object is forgotten and lives on. Say so with lifecycle { destroy = false }, or have it destroyed with destroy = true."))
	}
	r.Connection = keep[*Block](e)(connection(c))
	r.Provisioners = keep[[]*Provisioner](e)(provisioners(c))
	for _, p := range r.Provisioners {
		if !p.OnDestroy {
			e.add(errorAt(diag.CodeConfigRemovedProvisionerWhen, p.At, "Invalid provisioner block",
				"In a removed block only provisioners that run on destroy make sense: set when = destroy."))
		}
	}
	if r.From == nil {
		return nil, e.ds
	}
	e.add(r.checkTarget(c))
	return r, e.ds
}

// checkTarget checks the address in a removed block.
func (r *Removed) checkTarget(c *content) (ds diag.List) {
	target, ok := staticTarget(r.From)
	if !ok {
		return nil
	}
	if r.ForEach == nil && hasKeys(target) {
		ds = append(ds, errorAt(diag.CodeConfigRemovedKey, r.From.Range(), "Resource instance address not allowed",
			"A removed block names all instances of a resource or module: remove the instance keys from %s.", target)...)
	}
	switch {
	case target.IsModule() && len(r.Provisioners) > 0:
		ds = append(ds, errorAt(diag.CodeConfigRemovedModuleProvisioner, r.Provisioners[0].At, "Invalid provisioner block",
			"A removed block for a module cannot have provisioners: they belong to one resource.")...)
	case target.Resource.Mode == addr.Data || target.Resource.Mode == addr.Ephemeral:
		ds = append(ds, errorAt(diag.CodeConfigRemovedMode, r.From.Range(), "Invalid address in \"removed\" block",
			"Only managed resources and modules have objects that could be removed; %s is neither.", target)...)
	}
	return ds
}

func hasKeys(t addr.Target) bool {
	return t.HasKey || string(t.Module.Static()) != string(t.Module)
}

func decodeImport(o *object) (*ImportBlock, diag.List) {
	c, ds := kinds().imports.merge(o.parts)
	e := &errs{ds}
	b := &ImportBlock{At: c.head, ID: c.args["id"], Identity: c.args["identity"], ForEach: c.args["for_each"]}
	switch {
	case b.ID != nil && b.Identity != nil:
		e.add(errorAt(diag.CodeConfigImportId, b.ID.NameRange, "Conflicting import arguments",
			"An import block names the object by either id or identity, not by both.").Note(&b.Identity.Range, "identity is set here"))
	case b.ID == nil && b.Identity == nil:
		e.add(errorAt(diag.CodeConfigImportId, c.head, "Missing required import argument",
			"An import block needs an id or an identity, by which the provider finds the object."))
	}
	if s := c.args["provider"]; s != nil {
		b.Provider = keep[*ProviderRef](e)(decodeProviderRef(s.Expr))
	}
	s := keep[*Setting](e)(c.required("to"))
	if s == nil {
		return nil, e.ds
	}
	x, diags := native(s.Expr)
	e.add(diag.FromHCL(diags))
	if diags.HasErrors() {
		return nil, e.ds
	}
	b.To = x
	if t, diags := hcl.AbsTraversalForExpr(x); !diags.HasErrors() {
		if _, err := statementTarget(t); err != nil {
			e.add(errorAt(diag.CodeConfigImportTo, x.Range(), "Invalid import address", "%s", sentence(err)))
			return nil, e.ds
		}
	}
	if target, ok := staticTarget(x); ok && (target.IsModule() || target.Resource.Mode != addr.Managed) {
		e.add(errorAt(diag.CodeConfigImportTo, x.Range(), "Invalid import address",
			"Only managed resources can be imported; %s is none.", target))
		return nil, e.ds
	} else if !ok && !hasTraversal(x) {
		e.add(errorAt(diag.CodeConfigImportTo, x.Range(), "Invalid import address",
			"The argument to must be the address of a resource or of an instance of one, such as TYPE.NAME or module.M.TYPE.NAME[KEY]."))
		return nil, e.ds
	}
	return b, e.ds
}

// duplicateImports reports import blocks with the same address.
func (m *Module) duplicateImports() (ds diag.List) {
	seen := map[string]*ImportBlock{}
	for _, b := range m.Imports {
		target, ok := staticTarget(b.To)
		if !ok || b.ForEach != nil {
			continue
		}
		name := target.String()
		if first := seen[name]; first != nil {
			ds = append(ds, errorAt(diag.CodeConfigDuplicateImport, b.At, "Duplicate import configuration for "+quote(name),
				"The import of %s was already asked for at %s. One resource instance can be imported only once.", name, first.At).
				Note(&first.At, "first asked for here")...)
			continue
		}
		seen[name] = b
	}
	return ds
}

func decodeCheck(o *object) (*Check, diag.List) {
	c, ds := kinds().check.merge(o.parts)
	e := &errs{ds}
	ch := &Check{Name: o.key.a, At: c.head}
	e.add(validName(ch.Name, c.head, "check block"))
	for i, parts := range c.blocks("data") {
		p := parts[0]
		if i > 0 {
			first := c.blocks("data")[0][0].head
			e.add(errorAt(diag.CodeConfigCheckData, p.head, "Multiple data resource blocks",
				"A check block can hold only one data source.").Note(&first, "the first one"))
			break
		}
		ch.Data = &addr.Resource{Mode: addr.Data, Type: p.labels[0], Name: p.labels[1]}
	}
	for _, parts := range c.blocks("assert") {
		r, _, more := checkRule(parts, "assert")
		e.add(more)
		if r != nil {
			ch.Asserts = append(ch.Asserts, r)
		}
	}
	if len(c.blocks("assert")) == 0 {
		e.add(errorAt(diag.CodeConfigNoAssert, c.head, "Zero assert blocks",
			"A check block needs at least one assert block: without one it tests nothing."))
	}
	return ch, e.ds
}

// statementTarget parses the address in a moved, removed or import block. Here the word
// resource before the type is not allowed, unlike on the command line and in references.
func statementTarget(t hcl.Traversal) (addr.Target, error) {
	named := false // the step is the name of a module call
	for _, step := range t {
		name := addr.StepName(step)
		if !named && name == "resource" {
			return addr.Target{}, errors.New("an address of a resource does not begin with the word \"resource\" here: begin with its type")
		}
		if !named && name != "module" && name != "" {
			break
		}
		named = !named && name == "module"
	}
	return addr.TargetFromTraversal(t)
}
