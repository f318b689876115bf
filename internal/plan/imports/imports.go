// Package imports reads import blocks, and generates resource blocks for imported objects that
// have none.
//
// Main types: Set and Target. The one rule: the addresses of imports are known before anything
// is planned. Only the IDs of the objects may be computed later.
package imports

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Set contains the targets of the import blocks of a root module. A nil set is empty.
type Set struct {
	ev      *eval.Evaluator
	by      map[addr.Instance]*Instance
	unknown map[addr.ConfigResource]*eval.Deferral // blocks into which an unknown for_each imports
}

// Unknown returns the reason for which it is unknown whether an object is imported to a. It is
// nil if that is known.
func (s *Set) Unknown(a addr.Instance) *eval.Deferral {
	if s == nil {
		return nil
	}
	return s.unknown[a.Config()]
}

// An Instance is one instance to which an existing object is imported.
type Instance struct {
	Addr  addr.Instance
	Block *config.ImportBlock

	ev    *eval.Evaluator
	id    *lang.Expr
	ident *lang.Expr // nil if the block has an id
	each  *eachValue
	reads []demand.Read // reads of its for_each
}

type eachValue struct{ key, value cty.Value }

// Of returns the import to an address, or nil.
func (s *Set) Of(a addr.Instance) *Instance {
	if s == nil {
		return nil
	}
	return s.by[a]
}

// Sorted returns the targets sorted by address.
func (s *Set) Sorted() []*Instance {
	if s == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(s.by), func(a, b *Instance) int { return a.Addr.Compare(b.Addr) })
}

// Read evaluates for_each and to of the import blocks of the root module. generating allows
// targets without a resource block. Blocks for resources that wants rejects are skipped without
// reporting their errors.
func Read(t *demand.Task, ev *eval.Evaluator, generating bool, wants func(addr.ConfigResource) bool) (*Set, diag.List) {
	out := &Set{ev: ev, by: map[addr.Instance]*Instance{}, unknown: map[addr.ConfigResource]*eval.Deferral{}}
	var ds diag.List
	for _, b := range ev.Tree().Root.Config.Imports {
		if c, ok := into(b); ok && !wants(c) {
			continue
		}
		r := &importReader{set: out, block: b, generating: generating}
		ds = append(ds, r.read(t)...)
	}
	return out, ds
}

// into returns the resource block of an import block's target, for any index. ok is false if
// the resource is only known after for_each is evaluated.
func into(b *config.ImportBlock) (c addr.ConfigResource, ok bool) {
	index := cty.StringVal("")
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": index, "value": index})}}
	t, ds := refactoring.ReadAddress(b.To, ctx)
	if ds.HasErrors() || t.IsModule() {
		return addr.ConfigResource{}, false
	}
	return t.Instance().Config(), true
}

// importReader reads one block.
type importReader struct {
	set        *Set
	block      *config.ImportBlock
	generating bool
	reads      []demand.Read // reads of its for_each
}

func (r *importReader) read(t *demand.Task) diag.List {
	if r.block.ForEach == nil {
		return r.add(t, nil)
	}
	v, ds := r.each(t)
	at := r.block.ForEach.Expr.Range()
	if ds.HasErrors() {
		return ds
	}
	if !v.IsKnown() {
		c, ok := into(r.block)
		if wait := r.set.ev.Wait(r.reads, at); ok && wait != nil {
			r.set.unknown[c] = wait
			return ds
		}
	}
	if v.IsMarked() || v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		bad := diag.Errorf(diag.CodeEvalForEach, &at, "Invalid for_each argument", "The \"for_each\" of an import block must be a map, a set or a tuple that is known while planning, and neither null nor sensitive.")
		if !v.IsKnown() {
			bad[0].Code = plan.UnknownCode
		}
		return append(ds, bad...)
	}
	for it := v.ElementIterator(); it.Next(); {
		k, el := it.Element()
		if v.Type().IsSetType() {
			k = el
		}
		ds = append(ds, r.add(t, &eachValue{k, el})...)
	}
	return ds
}

// importEach is the subject of an import block's for_each.
type importEach struct{ block *config.ImportBlock }

func (e importEach) Describe() (string, *source.Range) { return "import", &e.block.At }

// each evaluates the block's for_each and records what it reads.
func (r *importReader) each(t *demand.Task) (v cty.Value, ds diag.List) {
	cell := demand.NewCell(importEach{r.block}, cty.DynamicVal, func(t *demand.Task) (cty.Value, diag.List) {
		var v cty.Value
		v, ds = lang.Eval(t, r.set.ev.Root, r.block.ForEach.Expr, cty.DynamicPseudoType)
		r.reads = demand.ReadsOf(t)
		return v, nil
	})
	v, _ = cell.Get(t, nil)
	return v, ds
}

// add adds the target of the block, or of one element of its for_each.
func (r *importReader) add(t *demand.Task, each *eachValue) diag.List {
	b := r.block
	it := &Instance{Block: b, ev: r.set.ev, each: each, reads: r.reads}
	var ctx *hcl.EvalContext
	var ds diag.List
	if vars := b.To.Variables(); len(vars) > 0 {
		if ctx, ds = lang.IndexContext(t, it.scope(), b.To); ds.HasErrors() {
			return ds
		}
	}
	target, more := refactoring.ReadAddress(b.To, ctx)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	at := b.To.Range()
	if target.IsModule() || target.Resource.Mode != addr.Managed {
		return append(ds, diag.Errorf(diag.CodeConfigImportTo, &at, "Invalid import address", "The \"to\" argument must be the address of a managed resource instance.")...)
	}
	it.Addr = target.Instance()
	if b.ID != nil {
		it.id = lang.Compile(b.ID.Expr)
	}
	if b.Identity != nil {
		it.ident = lang.Compile(b.Identity.Expr)
	}
	if o := r.set.by[it.Addr]; o != nil {
		return append(ds, diag.Errorf(diag.CodeConfigDuplicateImport, &at, "Duplicate import configuration for "+it.Addr.String(), "An import block for the resource %q was already declared at %s. A resource can have only one import block.", it.Addr, o.Block.At).Note(&o.Block.At, "the other block is here")...)
	}
	r.set.by[it.Addr] = it
	return append(ds, r.withoutConfig(it)...)
}

// withoutConfig reports an import whose target has no resource block.
func (r *importReader) withoutConfig(it *Instance) diag.List {
	n := r.set.ev.Tree().Node(it.Addr.Module)
	if n != nil && n.Config.Resources[it.Addr.Resource] != nil {
		return nil
	}
	if r.generating && it.Addr.Module == "" && it.Block.ForEach == nil {
		return nil
	}
	return it.Unmet()
}

// Unmet returns the error that the configuration has no resource for the target.
func (it *Instance) Unmet() diag.List {
	at := it.Block.To.Range()
	return diag.Errorf(diag.CodePlanImportNoConfiguration, &at, "Configuration for import target does not exist", "The configuration for the given import target %s does not exist. All target instances must have an associated configuration to be imported; run with -generate-config-out=FILE to have it written for resources of the root module.", it.Addr)
}

// importScope is the root module's scope, extended by each of an import block.
type importScope struct {
	*eval.Module
	each *eachValue
}

func (it *Instance) scope() importScope { return importScope{it.ev.Root, it.each} }

func (s importScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if ref.RootName() == "each" && s.each != nil && len(ref) > 1 {
		a, _ := ref[1].(hcl.TraverseAttr)
		switch a.Name {
		case "key":
			return s.each.key, 2, nil
		case "value":
			return s.each.value, 2, nil
		}
		return cty.DynamicVal, 2, diag.Errorf(diag.CodeEvalReference, at, "Invalid reference", "The object \"each\" has the attributes \"key\" and \"value\" only.")
	}
	return s.Module.Resolve(t, ref, at)
}

// Provider returns the provider configuration for an import whose resource block has not been
// generated yet.
func (it *Instance) Provider(t *demand.Task) (*eval.ProviderConfig, diag.List) {
	ref := config.ProviderRef{Name: config.ImpliedProvider(it.Addr.Resource.Type), At: it.Block.At}
	if it.Block.Provider != nil {
		ref = *it.Block.Provider
	}
	return it.ev.Root.ResolveProvider(t, ref, it.scope())
}

// Deferral returns the reason for which the object to import is unknown. It is nil if the
// object is known, or if its import must not be deferred.
func (it *Instance) Deferral(t *demand.Task) *eval.Deferral {
	x := it.id
	if it.ident != nil {
		x = it.ident
	}
	v, ds := lang.Eval(t, it.scope(), x, cty.DynamicPseudoType)
	if ds.HasErrors() || v.IsWhollyKnown() {
		return nil // ID reports the error
	}
	return it.ev.Wait(append(demand.ReadsOf(t), it.reads...), x.Range())
}

// ID evaluates the id or identity of the object. s is the schema of its type.
func (it *Instance) ID(t *demand.Task, s *schema.Resource) (*plan.Import, diag.List) {
	if it.ident != nil {
		return it.identity(t, s)
	}
	at := it.id.Range()
	v, ds := lang.Eval(t, it.scope(), it.id, cty.String)
	if ds.HasErrors() {
		return nil, ds
	}
	problem := ""
	switch {
	case value.ContainsSecret(v):
		problem = "is sensitive"
	case value.ContainsMark(v, value.Ephemeral):
		problem = "is ephemeral"
	case !v.IsKnown():
		problem = "depends on resource attributes that cannot be determined until apply"
	case v.IsNull():
		problem = "is null"
	}
	if problem != "" {
		return nil, append(ds, diag.Errorf(diag.CodePlanImportId, &at, "Invalid import id argument", "The import block \"id\" argument %s.", problem)...)
	}
	v, _ = v.Unmark()
	if v.AsString() == "" {
		return nil, append(ds, diag.Errorf(diag.CodePlanImportId, &at, "Invalid import id argument", "The import ID value evaluates to an empty string, please provide a non-empty value.")...)
	}
	return &plan.Import{ID: v.AsString(), Identity: cty.NilVal}, ds
}

// Check returns errors in the identity of an object that is already in state and is therefore
// not imported.
func (it *Instance) Check(t *demand.Task, s *schema.Resource) diag.List {
	if it.ident == nil {
		return nil
	}
	if v, ds := lang.Eval(t, it.scope(), it.ident, cty.DynamicPseudoType); ds.HasErrors() || !v.IsWhollyKnown() {
		return ds
	}
	_, ds := it.identity(t, s)
	return ds
}

func (it *Instance) identity(t *demand.Task, s *schema.Resource) (*plan.Import, diag.List) {
	at := it.ident.Range()
	if s.Identity == nil {
		return nil, diag.Errorf(diag.CodePlanNoIdentity, &at, "Resource type without identity", "The resource type of %s has no identity, so it must be imported by id.", it.Addr)
	}
	v, ds := lang.Eval(t, it.scope(), it.ident, cty.DynamicPseudoType)
	if ds.HasErrors() {
		return nil, ds
	}
	if value.ContainsSecret(v) || value.ContainsMark(v, value.Ephemeral) || !v.IsWhollyKnown() || v.IsNull() {
		return nil, append(ds, diag.Errorf(diag.CodePlanImportIdentity, &at, "Invalid import identity argument", "The import identity must be known while planning, and neither null nor sensitive nor ephemeral.")...)
	}
	v, _ = v.UnmarkDeep()
	v, more := it.fit(v, s)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	return &plan.Import{Identity: v}, ds
}

// fit converts a value without marks to the identity type. Omitted optional attributes become
// null.
func (it *Instance) fit(v cty.Value, s *schema.Resource) (cty.Value, diag.List) {
	v, err := (&schema.Block{Attributes: s.Identity.Attributes}).Coerce(v)
	if err != nil {
		at := it.ident.Range()
		return v, diag.Errorf(diag.CodePlanImportIdentity, &at, "Invalid import identity argument", "The import identity does not fit the resource type of %s: %s.", it.Addr, err)
	}
	return v, nil
}
