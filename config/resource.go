package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
)

func decodeResource(o *object) (*Resource, diag.List) {
	k := kinds()
	kind := k.resource
	switch o.key.kind {
	case "data":
		kind = k.data
	case "ephemeral":
		kind = k.ephemeral
	}
	c, ds := kind.merge(o.parts)
	e := &errs{ds}
	r := &Resource{Addr: o.key.resource(), Check: o.check, Body: c.rest, At: c.head, Merged: mergedFrom(o.parts)}
	e.add(validName(r.Addr.Type, c.head, "resource type"))
	e.add(validName(r.Addr.Name, c.head, "resource"))
	if s := c.args["provider"]; s != nil {
		ref, ds := decodeProviderRef(s.Expr)
		e.add(s.explain(ds))
		r.Provider = ref
	}
	r.DependsOn = keep[[]hcl.Traversal](e)(traversals(c.args["depends_on"]))
	life, ds := c.inner("lifecycle", k.resourceLife)
	e.add(ds)
	var enabled *Setting
	if life != nil {
		enabled = life.args["enabled"]
		e.add(r.decodeLifecycle(life, o))
	}
	r.Repeat = keep[Repeat](e)(c.repeat(enabled))
	if o.check != "" {
		e.add(r.plainOnly(c, life))
	}
	if r.Addr.Mode == addr.Managed {
		r.Connection = keep[*Block](e)(connection(c))
		r.Provisioners = keep[[]*Provisioner](e)(provisioners(c))
		if r.Connection != nil && slices.ContainsFunc(r.Provisioners, func(p *Provisioner) bool { return p.OnDestroy }) {
			e.add(onlySelf(c.blocks("connection")[0][0].body))
		}
	}
	return r, e.ds
}

// plainOnly rejects arguments and blocks that are not allowed in the data source of a check.
func (r *Resource) plainOnly(c, life *content) (ds diag.List) {
	for _, name := range []string{"count", "for_each"} {
		if s := c.args[name]; s != nil {
			ds = append(ds, s.explain(errorAt(diag.CodeConfigCheckData, s.NameRange, "Invalid "+name+" argument",
				"The data source of a check block is read once; it cannot have %s.", name))...)
		}
	}
	if life != nil {
		ds = append(ds, errorAt(diag.CodeConfigCheckData, life.head, "Invalid lifecycle block",
			"The data source of a check block cannot have a lifecycle block; put conditions into assert blocks.")...)
	}
	r.Repeat = Repeat{}
	return ds
}

// decodeLifecycle decodes the merged lifecycle block, except enabled.
func (r *Resource) decodeLifecycle(life *content, o *object) diag.List {
	e := &errs{}
	l := &r.Lifecycle
	if r.Addr.Mode == addr.Managed {
		l.Settings = life.args
		l.CreateBeforeDestroy = keep[*bool](e)(life.args["create_before_destroy"].constBool())
		l.Destroy = keep[*bool](e)(life.args["destroy"].constBool())
		l.PreventDestroy = life.args["prevent_destroy"]
		if s := life.args["ignore_changes"]; s != nil {
			e.add(s.explain(l.decodeIgnore(s)))
		}
		if s := life.args["replace_triggered_by"]; s != nil {
			items := keep[[]hcl.Expression](e)(list(s.Attribute))
			l.ReplaceTriggeredBy = items
			for _, x := range items {
				e.add(s.explain(checkTrigger(x)))
			}
		}
	} else {
		e.add(r.onlyEnabled(life))
	}
	for _, b := range life.blocks("action_trigger") {
		e.add(unsupported(b[0], "Unsupported action_trigger block", noAction))
	}
	self := func(t hcl.Traversal) bool { return refersTo(t, r.Addr) }
	r.Pre = keep[[]*Rule](e)(life.rules("precondition", self, o.key.label()))
	r.Post = keep[[]*Rule](e)(life.rules("postcondition", self, o.key.label()))
	return e.ds
}

// onlyEnabled rejects arguments that are only allowed in managed resources.
func (r *Resource) onlyEnabled(life *content) (ds diag.List) {
	what, where := "data resource", "data sources"
	if r.Addr.Mode == addr.Ephemeral {
		what, where = "ephemeral resource", "ephemeral resources"
	}
	for name, s := range life.args {
		if name != "enabled" {
			ds = append(ds, s.explain(errorAt(diag.CodeConfigLifecycleArgument, s.NameRange, "Invalid "+what+" lifecycle argument",
				"The lifecycle argument %q is defined for managed resources only (\"resource\" blocks), not for %s.", name, where))...)
		}
	}
	return ds
}

// checkTrigger checks one element of replace_triggered_by: a reference to a managed resource of
// this module. Its index may use count.index and each.key.
func checkTrigger(x hcl.Expression) diag.List {
	refs := 0
	for _, t := range x.Variables() {
		switch t.RootName() {
		case "count", "each":
			if want := map[string]string{"count": "index", "each": "key"}[t.RootName()]; member(t) != want {
				return errorAt(diag.CodeConfigReplaceTriggeredBy, t.SourceRange(), "Invalid "+t.RootName()+" reference in replace_triggered_by expression",
					"Of the %s object, only %s.%s can be used in the index of a replace_triggered_by element.", t.RootName(), t.RootName(), want)
			}
			continue
		case "data", "ephemeral", "var", "local", "module", "path", "terraform", "tofu", "self":
			return errorAt(diag.CodeConfigReplaceTriggeredBy, t.SourceRange(), "Invalid replace_triggered_by expression",
				"Only managed resources of the same module, their instances and attributes can trigger a replacement.")
		}
		refs++
	}
	if refs != 1 {
		return errorAt(diag.CodeConfigReplaceTriggeredBy, x.Range(), "Invalid replace_triggered_by expression",
			"Each element of replace_triggered_by must be exactly one reference to a managed resource, one of its instances or an attribute.")
	}
	return nil
}

// member returns the name of the attribute that follows the root of a reference, or "".
func member(t hcl.Traversal) string {
	if len(t) < 2 {
		return ""
	}
	step, _ := t[1].(hcl.TraverseAttr)
	return step.Name
}

// refersTo reports whether a reference refers to a resource of this module.
func refersTo(t hcl.Traversal, r addr.Resource) bool {
	names := make([]string, 0, 3)
	for _, step := range t[:min(len(t), 3)] {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			names = append(names, s.Name)
		case hcl.TraverseAttr:
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return false
	}
	mode := addr.Managed
	switch names[0] {
	case "data":
		mode, names = addr.Data, names[1:]
	case "ephemeral":
		mode, names = addr.Ephemeral, names[1:]
	case "resource":
		names = names[1:]
	}
	return mode == r.Mode && len(names) >= 2 && names[0] == r.Type && names[1] == r.Name
}
