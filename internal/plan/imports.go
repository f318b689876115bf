package plan

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// importSet is what import blocks name, by the address that takes the object over.
type importSet struct {
	by map[addr.Instance]*importTarget
}

type importTarget struct {
	to    addr.Instance
	id    *lang.Expr
	ident *lang.Expr
	each  *eachValue
	reads []demand.Read // of its for_each
	block *config.ImportBlock
	used  bool
}

type eachValue struct{ key, value cty.Value }

func (s *importSet) of(a addr.Instance) *importTarget {
	if s == nil {
		return nil
	}
	return s.by[a]
}

// readImports evaluates for_each and to of the import blocks of the root module.
func (p *planner) readImports() (*importSet, diag.List) {
	out := &importSet{by: map[addr.Instance]*importTarget{}}
	blocks := p.in.Tree.Root.Config.Imports
	if len(blocks) == 0 || p.in.Mode != Normal {
		return out, nil
	}
	t := p.graph.Task(p.ctx)
	var ds diag.List
	for _, b := range blocks {
		ds = append(ds, p.readImport(t, b, out)...)
	}
	return out, ds
}

func (p *planner) readImport(t *demand.Task, b *config.ImportBlock, out *importSet) diag.List {
	var reads []demand.Read
	add := func(each *eachValue) diag.List {
		var ctx *hcl.EvalContext
		s := importScope{p.ev.Root, each}
		var ds diag.List
		if vars := b.To.Variables(); len(vars) > 0 {
			ctx, ds = p.indexContext(t, b.To, s)
			if ds.HasErrors() {
				return ds
			}
		}
		target, more := targetWith(b.To, ctx)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		at := b.To.Range()
		if target.IsModule() || target.Resource.Mode != addr.Managed {
			return append(ds, diag.Errorf(&at, "Invalid import address", "The \"to\" argument must be the address of a managed resource instance.")...)
		}
		it := &importTarget{to: target.Instance(), each: each, reads: reads, block: b}
		if b.ID != nil {
			it.id = lang.Compile(b.ID.Expr)
		}
		if b.Identity != nil {
			it.ident = lang.Compile(b.Identity.Expr)
		}
		if o := out.by[it.to]; o != nil {
			return append(ds, diag.Errorf(&at, "Duplicate import configuration for "+it.to.String(), "An import block for the resource %q was already declared at %s. A resource can have only one import block.", it.to, o.block.At).Note(&o.block.At, "the other block is here")...)
		}
		out.by[it.to] = it
		if ds2 := p.importWithoutConfig(it); ds2 != nil {
			ds = append(ds, ds2...)
		}
		return ds
	}
	if b.ForEach == nil {
		return add(nil)
	}
	v, ds := p.eachImport(t, b, &reads)
	at := b.ForEach.Expr.Range()
	if ds.HasErrors() {
		return ds
	}
	if v.IsMarked() || v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		bad := diag.Errorf(&at, "Invalid for_each argument", "The \"for_each\" of an import block must be a map, a set or a tuple that is known while planning, and neither null nor sensitive.")
		if !v.IsKnown() {
			bad[0].Code = UnknownCode
		}
		return append(ds, bad...)
	}
	for it := v.ElementIterator(); it.Next(); {
		k, el := it.Element()
		if v.Type().IsSetType() {
			k = el
		}
		ds = append(ds, add(&eachValue{k, el})...)
	}
	return ds
}

// importWithoutConfig reports an import for which there is no resource block.
func (p *planner) importWithoutConfig(it *importTarget) diag.List {
	n := p.nodeOf(it.to.Module)
	if n != nil && n.Config.Resources[it.to.Resource] != nil {
		return nil
	}
	at := it.block.To.Range()
	if p.in.Generate && it.to.Module == "" && it.block.ForEach == nil {
		return nil
	}
	return diag.Errorf(&at, "Configuration for import target does not exist", "The configuration for the given import target %s does not exist. All target instances must have an associated configuration to be imported; run with -generate-config-out=FILE to have it written for resources of the root module.", it.to)
}

// indexContext evaluates what the indexes of an address refer to.
func (p *planner) indexContext(t *demand.Task, x hcl.Expression, s lang.Scope) (*hcl.EvalContext, diag.List) {
	return lang.IndexContext(t, s, x)
}

// importScope is the root module's scope with each of an import block.
type importScope struct {
	*eval.Module
	each *eachValue
}

func (s importScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if ref.RootName() == "each" && s.each != nil && len(ref) > 1 {
		if a, ok := ref[1].(hcl.TraverseAttr); ok && a.Name == "key" {
			return s.each.key, 2, nil
		}
		return s.each.value, 2, nil
	}
	return s.Module.Resolve(t, ref, at)
}

// importObject takes over an existing object.
func (p *planner) importObject(t *demand.Task, d *eval.Desired, ip *instancePlan, s *schema.Resource, prov provider.Provider, it *importTarget) (object, *Import, diag.List) {
	none := object{value: cty.NullVal(s.Block.ImpliedType())}
	imp, ds := p.importID(t, s, it)
	if ds.HasErrors() {
		return none, nil, ds
	}
	obj, ds := p.importInto(d.Addr(), s, prov, imp, ds)
	if ds.HasErrors() {
		return none, nil, ds
	}
	ip.drift = nil
	stored, err := NewObject(obj.value, s, obj.private, obj.identity)
	if err != nil {
		return none, nil, append(ds, diag.Errorf(&it.block.At, "Provider produced invalid object", "What the provider returned for %s cannot be stored: %s.", d.Addr(), err)...)
	}
	obj.stored = stored
	ip.refreshed, ip.touched = stored, true // apply starts with the object in state
	return obj, imp, ds
}

// importDeferral says why it is not known yet which object an instance takes
// over, nil if it is or if that is not for want of a root variable.
func (p *planner) importDeferral(t *demand.Task, a addr.Instance, old object) *eval.Deferral {
	it := p.imports.of(a)
	if it == nil || !p.in.Defer || !old.value.IsNull() {
		return nil
	}
	x := it.id
	if it.ident != nil {
		x = it.ident
	}
	v, ds := lang.Eval(t, importScope{p.ev.Root, it.each}, x, cty.DynamicPseudoType)
	if ds.HasErrors() || v.IsWhollyKnown() {
		return nil // importID tells what is wrong
	}
	if names := p.ev.WaitsFor(append(t.Reads(), it.reads...)); names != nil {
		return &eval.Deferral{At: x.Range(), Variables: names}
	}
	return nil
}

// importEach is the subject of an import block's for_each.
type importEach struct{ block *config.ImportBlock }

func (e importEach) Describe() (string, *source.Range) { return "import", &e.block.At }

// eachImport evaluates the for_each of an import block, and notes what it read.
func (p *planner) eachImport(t *demand.Task, b *config.ImportBlock, reads *[]demand.Read) (v cty.Value, ds diag.List) {
	cell := demand.NewCell(importEach{b}, cty.DynamicVal, func(t *demand.Task) (cty.Value, diag.List) {
		var v cty.Value
		v, ds = lang.Eval(t, p.ev.Root, b.ForEach.Expr, cty.DynamicPseudoType)
		*reads = t.Reads()
		return v, nil
	})
	v, _ = cell.Get(t, nil)
	return v, ds
}

// importInto asks the provider for an existing object and reads it.
func (p *planner) importInto(a addr.Instance, s *schema.Resource, prov provider.Provider, imp *Import, ds diag.List) (object, diag.List) {
	null := cty.NullVal(s.Block.ImpliedType())
	e := event.Event{Kind: event.ImportStart, Object: addr.Object{Instance: a}}
	if imp.ID != "" {
		e.IDKey, e.IDValue = "id", imp.ID
	}
	p.in.Observe.Send(e)
	done := p.call()
	found, more := prov.Import(p.ctx, provider.ImportRequest{Type: a.Resource.Type, ID: imp.ID, Identity: imp.Identity})
	done()
	if ds = append(ds, more...); more.HasErrors() {
		return object{value: null}, ds
	}
	var match *provider.Imported
	for i := range found {
		if found[i].Type == a.Resource.Type {
			match = &found[i]
			break
		}
	}
	if match == nil || match.State == cty.NilVal || match.State.IsNull() {
		return object{value: null}, append(ds, diag.Errorf(nil, "Cannot import non-existent remote object", "While attempting to import an existing object to %q, the provider detected that no object exists with the given id. Only pre-existing objects can be imported; check that the id is correct and that it is associated with the provider's configured region or endpoint, or use \"terrace apply\" to create a new remote object for this resource.", a)...)
	}
	e.Kind = event.ImportDone
	p.in.Observe.Send(e)
	obj, more := p.refresh(addr.Object{Instance: a}, s, prov, object{value: match.State, private: match.Private, identity: match.Identity})
	if ds = append(ds, more...); more.HasErrors() {
		return obj, ds
	}
	if obj.value.IsNull() {
		return obj, append(ds, diag.Errorf(nil, "Cannot import non-existent remote object", "While attempting to import an existing object to %q, the provider detected that no object exists with the given id. Only pre-existing objects can be imported; check that the id is correct.", a)...)
	}
	return obj, ds
}

// importID evaluates the id or identity of an import block.
func (p *planner) importID(t *demand.Task, s *schema.Resource, it *importTarget) (*Import, diag.List) {
	scope := importScope{p.ev.Root, it.each}
	if it.ident != nil {
		at := it.ident.Range()
		if s.Identity == nil {
			return nil, diag.Errorf(&at, "Resource type without identity", "The resource type of %s has no identity, so it must be imported by id.", it.to)
		}
		v, ds := lang.Eval(t, scope, it.ident, cty.DynamicPseudoType)
		if ds.HasErrors() {
			return nil, ds
		}
		if value.ContainsMark(v, value.Sensitive) || !v.IsWhollyKnown() || v.IsNull() {
			return nil, append(ds, diag.Errorf(&at, "Invalid import identity argument", "The import identity must be known while planning, and neither null nor sensitive.")...)
		}
		v, _ = v.UnmarkDeep()
		v, err := (&schema.Block{Attributes: s.Identity.Attributes}).Coerce(v) // what may be left out is null
		if err != nil {
			return nil, append(ds, diag.Errorf(&at, "Invalid import identity argument", "The import identity does not fit the resource type of %s: %s.", it.to, err)...)
		}
		return &Import{Identity: v}, ds
	}
	at := it.id.Range()
	v, ds := lang.Eval(t, scope, it.id, cty.String)
	if ds.HasErrors() {
		return nil, ds
	}
	problem := ""
	switch {
	case value.ContainsMark(v, value.Sensitive):
		problem = "is sensitive"
	case value.ContainsMark(v, value.Ephemeral):
		problem = "is ephemeral"
	case !v.IsKnown():
		problem = "depends on resource attributes that cannot be determined until apply"
	case v.IsNull():
		problem = "is null"
	}
	if problem != "" {
		return nil, append(ds, diag.Errorf(&at, "Invalid import id argument", "The import block \"id\" argument %s.", problem)...)
	}
	v, _ = v.Unmark()
	if v.AsString() == "" {
		return nil, append(ds, diag.Errorf(&at, "Invalid import id argument", "The import ID value evaluates to an empty string, please provide a non-empty value.")...)
	}
	return &Import{ID: v.AsString(), Identity: cty.NilVal}, ds
}
