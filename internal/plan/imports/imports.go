// Package imports reads import blocks, and generates resource blocks for imported objects that
// have none.
//
// Main types: Set and Target. The one rule: the addresses of imports are known before anything
// is planned. Only the IDs of the objects may be computed later.
package imports

import (
	"maps"
	"slices"
	"sync"

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

// A Set contains the targets of all import blocks. A nil set is empty.
type Set struct {
	ev      *eval.Evaluator
	by      map[addr.Instance]*Instance
	unknown map[addr.ConfigResource]*eval.Deferral // blocks into which an unknown for_each imports

	generating bool
	wants      func(addr.ConfigResource) bool

	mu      sync.Mutex
	reading bool
	done    map[addr.ModuleInstance]bool // whose blocks are read or being read
	asked   map[addr.Instance]bool       // what Of did not find while reading: planned without an import
	ds      diag.List
}

// New returns an empty set, for Read. generating allows targets without a resource block. Blocks for
// resources that wants rejects are skipped without reporting their errors.
func New(ev *eval.Evaluator, generating bool, wants func(addr.ConfigResource) bool) *Set {
	return &Set{
		ev: ev, by: map[addr.Instance]*Instance{}, unknown: map[addr.ConfigResource]*eval.Deferral{},
		generating: generating, wants: wants, done: map[addr.ModuleInstance]bool{}, asked: map[addr.Instance]bool{},
	}
}

// Unknown returns the reason for which it is unknown whether an object is imported to a. It is
// nil if that is known.
func (s *Set) Unknown(a addr.Instance) *eval.Deferral {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown[a.Config()]
}

// An Instance is one instance to which an existing object is imported.
type Instance struct {
	Addr  addr.Instance
	Block *config.ImportBlock

	ev    *eval.Evaluator
	mod   *eval.Module // the instance of the module that contains the block
	id    *lang.Expr
	ident *lang.Expr // nil if the block has an id
	each  *eachValue
	reads []demand.Read // reads of its for_each
}

type eachValue struct{ key, value cty.Value }

// Of returns the import to an address, or nil. While Read runs, it reads the blocks of the object's
// module first.
func (s *Set) Of(t *demand.Task, a addr.Instance) *Instance {
	if s == nil {
		return nil
	}
	if s.reading {
		if m := s.ev.Find(t, a.Module); m != nil {
			s.readBlocks(t, m)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.by[a] == nil {
			s.asked[a] = true
		}
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

// Read evaluates for_each and to of the import blocks of all module instances. A block of a called
// module imports once for each instance of the module, and its addresses are relative to the
// instance. An object that a for_each needs is planned while Read runs: it is an error if a block
// that is read later imports it.
func (s *Set) Read(t *demand.Task) diag.List {
	s.reading = true
	s.readModule(t, s.ev.Root)
	s.reading = false
	return s.ds
}

// readModule reads the blocks of a module instance, and of those below it.
func (s *Set) readModule(t *demand.Task, m *eval.Module) {
	s.readBlocks(t, m)
	for _, call := range callsWith(m, s.wants) {
		ch, ok := call.Children(t)
		if !ok {
			continue // the driver reports the errors of the call
		}
		for _, child := range ch.All {
			s.readModule(t, child)
		}
		if ch.Deferred != nil {
			s.wait(m.Addr.Child(call.Name(), addr.Key{}), call.Node, ch.Deferred)
		}
	}
}

// readBlocks reads the blocks of a module instance once. Those without for_each come first, since
// they need no other object.
func (s *Set) readBlocks(t *demand.Task, m *eval.Module) {
	s.mu.Lock()
	done := s.done[m.Addr]
	s.done[m.Addr] = true
	s.mu.Unlock()
	if done {
		return
	}
	for _, each := range []bool{false, true} {
		for _, b := range m.Node.Config.Imports {
			if each != (b.ForEach != nil) {
				continue
			}
			if c, ok := into(m.Addr, b); ok && !s.wants(c) {
				continue
			}
			r := &importReader{set: s, mod: m, block: b}
			if ds := r.read(t); len(ds) > 0 {
				s.mu.Lock()
				s.ds = append(s.ds, ds...)
				s.mu.Unlock()
			}
		}
	}
}

// wait marks the targets of the blocks of a module, and of those below it, as unknown.
func (s *Set) wait(at addr.ModuleInstance, n *config.Node, why *eval.Deferral) {
	for _, b := range n.Config.Imports {
		if c, ok := into(at, b); ok {
			s.setUnknown(c, why)
		}
	}
	for name, sub := range n.Calls {
		s.wait(at.Child(name, addr.Key{}), sub, why)
	}
}

func (s *Set) setUnknown(c addr.ConfigResource, why *eval.Deferral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown[c] = why
}

// callsWith returns the calls of a module instance that lead to import blocks for wanted resources.
// Others are not evaluated for imports.
func callsWith(m *eval.Module, wants func(addr.ConfigResource) bool) []*eval.Call {
	return slices.DeleteFunc(slices.Clone(m.Calls()), func(c *eval.Call) bool {
		return c.Node == nil || !anyWanted(m.Addr.Child(c.Name(), addr.Key{}), c.Node, wants)
	})
}

func anyWanted(at addr.ModuleInstance, n *config.Node, wants func(addr.ConfigResource) bool) bool {
	for _, b := range n.Config.Imports {
		if c, ok := into(at, b); !ok || wants(c) {
			return true
		}
	}
	for name, sub := range n.Calls {
		if anyWanted(at.Child(name, addr.Key{}), sub, wants) {
			return true
		}
	}
	return false
}

// into returns the resource block of the target of an import block in a module instance, for any
// index. ok is false if the resource is only known after for_each is evaluated.
func into(at addr.ModuleInstance, b *config.ImportBlock) (c addr.ConfigResource, ok bool) {
	index := cty.StringVal("")
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": index, "value": index})}}
	t, ds := refactoring.ReadAddress(b.To, ctx)
	if ds.HasErrors() || t.IsModule() {
		return addr.ConfigResource{}, false
	}
	a := t.Instance()
	a.Module = at.Within(a.Module)
	return a.Config(), true
}

// importReader reads one block.
type importReader struct {
	set   *Set
	mod   *eval.Module
	block *config.ImportBlock
	reads []demand.Read // reads of its for_each
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
		c, ok := into(r.mod.Addr, r.block)
		if wait := r.set.ev.Wait(r.reads, at); ok && wait != nil {
			r.set.setUnknown(c, wait)
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
		v, ds = lang.Eval(t, r.mod, r.block.ForEach.Expr, cty.DynamicPseudoType)
		r.reads = demand.ReadsOf(t)
		return v, nil
	})
	v, _ = cell.Get(t, nil)
	return v, ds
}

// add adds the target of the block, or of one element of its for_each.
func (r *importReader) add(t *demand.Task, each *eachValue) diag.List {
	b := r.block
	it := &Instance{Block: b, ev: r.set.ev, mod: r.mod, each: each, reads: r.reads}
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
	it.Addr.Module = r.mod.Addr.Within(it.Addr.Module)
	if b.ID != nil {
		it.id = lang.Compile(b.ID.Expr)
	}
	if b.Identity != nil {
		it.ident = lang.Compile(b.Identity.Expr)
	}
	r.set.mu.Lock()
	o, late := r.set.by[it.Addr], r.set.asked[it.Addr]
	if o == nil {
		r.set.by[it.Addr] = it
	}
	r.set.mu.Unlock()
	if o != nil {
		return append(ds, diag.Errorf(diag.CodeConfigDuplicateImport, &at, "Duplicate import configuration for "+it.Addr.String(), "An import block for the resource %q was already declared at %s. A resource can have only one import block.", it.Addr, o.Block.At).Note(&o.Block.At, "the other block is here")...)
	}
	if late {
		return append(ds, diag.Errorf(diag.CodePlanImportLate, &at, "Import depends on its own object", "The addresses of import blocks must be known before anything is planned, but a for_each of an import block, or the count or for_each of a module with import blocks, needs %s. Import %s in a block of its own, in the root module and without for_each, or apply that import first.", it.Addr, it.Addr)...)
	}
	return append(ds, r.withoutConfig(it)...)
}

// withoutConfig reports an import whose target has no resource block.
func (r *importReader) withoutConfig(it *Instance) diag.List {
	n := r.set.ev.Tree().Node(it.Addr.Module)
	if n != nil && n.Config.Resources[it.Addr.Resource] != nil {
		return nil
	}
	if r.set.generating && it.Addr.Module == "" && it.Block.ForEach == nil {
		return nil
	}
	return it.Unmet()
}

// Unmet returns the error that the configuration has no resource for the target.
func (it *Instance) Unmet() diag.List {
	at := it.Block.To.Range()
	return diag.Errorf(diag.CodePlanImportNoConfiguration, &at, "Configuration for import target does not exist", "The configuration for the given import target %s does not exist. All target instances must have an associated configuration to be imported; run with -generate-config-out=FILE to have it written for resources of the root module.", it.Addr)
}

// importScope is the scope of a module instance, extended by each of an import block.
type importScope struct {
	*eval.Module
	each *eachValue
}

func (it *Instance) scope() importScope { return importScope{it.mod, it.each} }

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
	return it.mod.ResolveProvider(t, ref, it.scope())
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
