// Package validate checks a module tree without state, values of variables and configured
// providers.
//
// Main function: Run. The one rule: every block is checked once with unknown repetition, so
// that the cost does not depend on the number of instances.
package validate

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Input is the input of a validation: the module tree with its providers and functions.
type Input struct {
	Tree         *module.Tree
	Providers    resourceclient.Providers
	Functions    map[string]function.Function
	Provisioners Provisioners
	Cwd          string
	// Without reports whether a provider is skipped; nil means that none is. Blocks of skipped
	// providers may have any arguments, and path.cwd and the workspace are unknown.
	Without func(addr.Provider) bool
	// SchemasOnly means that providers are only used for their schemas: they check no configuration.
	SchemasOnly bool
	// Unknown makes the values of all objects unknown, also those of arguments in the configuration.
	Unknown  bool
	Compiled *eval.Compiled // see eval.Compiled; nil means none
	// Wants reports whether a plan needs a resource block; nil means that it needs all. Before
	// a plan, other blocks are not checked.
	Wants func(addr.ConfigResource) bool
	// Uses reports whether a plan to destroy uses a provider configuration; nil means that it
	// uses all.
	Uses func(addr.ProviderConfig) bool
	// Also runs further checks of the root module with the same evaluation; nil means none.
	Also func(*demand.Task, *eval.Evaluator) diag.List
}

// Provisioners validates types of provisioners.
type Provisioners interface {
	Schema(typ string) *schema.Block
	ConnectionSchema() *schema.Block
	Validate(typ string, config, connection cty.Value) diag.List
}

type validator struct {
	in     Input
	ctx    context.Context
	client *resourceclient.Client
	ev     *eval.Evaluator
	graph  *demand.Graph

	early   bool // validation runs before a plan; see BeforePlan
	destroy bool // early, before a plan to destroy: check only the provider configurations that it uses
	mild    bool // early, before a plan to destroy: check everything, for warnings

	mu        sync.Mutex
	done      map[any]bool // blocks and directories that were checked
	validated Validated    // set if early
	redundant diag.List    // if early: warnings that the plan does not repeat
	instances sync.Map     // if early: cty.Value by anyOf
}

// Run validates a module tree.
func Run(ctx context.Context, in Input) diag.List {
	v := newValidator(ctx, in, false)
	v.graph.Report(module.CheckProviders(in.Tree))
	if ds := v.graph.Diags(); ds.HasErrors() {
		return ds // continuing would repeat the errors for each resource
	}
	if in.Provisioners != nil {
		v.graph.Report(module.CheckProvisioners(in.Tree, func(typ string) bool { return in.Provisioners.Schema(typ) != nil }))
	}
	v.graph.Report(refactoring.Check(in.Tree, eval.Options{Functions: in.Functions, Workspace: "default"}.Early()))
	v.run()
	if in.Also != nil {
		v.graph.Report(in.Also(v.graph.Task(ctx), v.ev))
	}
	return v.graph.Diags()
}

func newValidator(ctx context.Context, in Input, early bool) *validator {
	v := &validator{in: in, ctx: ctx, graph: &demand.Graph{Stop: ctx.Done()}, done: map[any]bool{}, early: early}
	v.client = resourceclient.New(ctx, resourceclient.Options{Providers: in.Providers})
	o := eval.Options{Tree: in.Tree, Phase: v, Workspace: "default", RootDir: ".", Cwd: in.Cwd, Functions: in.Functions, Validating: true, Compiled: in.Compiled, Alone: !early}
	if in.Without != nil {
		o.Workspace, o.Cwd = "", ""
	}
	v.ev = eval.New(v.graph, o)
	return v
}

// run visits the modules from the root.
func (v *validator) run() {
	var w parallel.Work[job]
	v.graph.Rest = w.Break
	v.module(&w, v.ev.Root)
	w.Do(0, func(do job) { do(v.graph.Task(v.ctx)) })
	v.graph.Rest = nil
}

type job func(*demand.Task)

// module demands everything in a module instance and in the modules that it calls.
func (v *validator) module(w *parallel.Work[job], m *eval.Module) {
	first := !v.early || v.first(m.Node.Config)
	var all []job
	for _, r := range m.Resources() {
		if !v.destroy && v.wants(r.Addr().Config()) {
			all = append(all, func(t *demand.Task) { r.Value(t) })
		}
	}
	for _, c := range m.Calls() {
		if !v.entersCall(c.Node) {
			continue
		}
		all = append(all, func(t *demand.Task) {
			if ch, ok := c.Children(t); ok {
				for _, child := range ch.All {
					v.module(w, child)
				}
			}
		})
	}
	all = append(all, func(t *demand.Task) {
		if first && v.limited() == nil { // otherwise with the resources that use them
			for _, pc := range m.ProviderInstances(t) {
				if !v.destroy || v.in.Uses == nil || v.in.Uses(pc.Addr) {
					v.graph.Report(v.provider(t, pc))
				}
			}
		}
		switch {
		case v.destroy:
		case v.limited() == nil:
			v.values(t, m, first)
		case m.Node.Parent == nil:
			v.outputs(t, m)
		}
	})
	w.Add(all...)
}

// outputs evaluates the root outputs that a plan with targets or exclusions may compute: outputs
// with references, if all objects that they refer to are in the plan.
func (v *validator) outputs(t *demand.Task, root *eval.Module) {
	reads := eval.StaticOutputs(v.in.Tree)
	for _, name := range root.Outputs() {
		needs := reads(name)
		if len(needs) > 0 && !slices.ContainsFunc(needs, func(c addr.ConfigResource) bool { return !v.wants(c) }) {
			root.Output(t, name)
		}
	}
}

// limited returns the test whether the plan needs a resource; nil if it needs everything.
// Before a plan to destroy everything is checked, for warnings.
func (v *validator) limited() func(addr.ConfigResource) bool {
	if v.destroy || v.mild || !v.early {
		return nil
	}
	return v.in.Wants
}

func (v *validator) wants(c addr.ConfigResource) bool {
	f := v.limited()
	return f == nil || f(c)
}

// entersCall reports whether anything in a called module is checked.
func (v *validator) entersCall(n *module.Node) bool {
	switch f := v.limited(); {
	case n == nil:
		return true
	case v.destroy: // only modules without repetition, since others cannot have provider configurations
		r := n.Call.Repeat
		return r.Count == nil && r.ForEach == nil && r.Enabled == nil && configures(n)
	case f == nil:
		return true
	default:
		for a := range n.Config.Resources {
			if f(n.Path.Resource(a)) {
				return true
			}
		}
	}
	for _, sub := range n.Calls {
		if v.entersCall(sub) {
			return true
		}
	}
	return false
}

// configures reports whether a module, or one that it calls, has a provider configuration.
func configures(n *module.Node) bool {
	for _, p := range n.Config.Providers {
		if !p.Empty {
			return true
		}
	}
	for _, sub := range n.Calls {
		if configures(sub) {
			return true
		}
	}
	return false
}

// values demands the values of a module instance. If another instance with the same text was
// checked before, only its inputs are demanded.
func (v *validator) values(t *demand.Task, m *eval.Module, first bool) {
	if !first {
		for _, f := range m.Inputs() {
			f(t)
		}
		return
	}
	for _, f := range m.Demands() {
		f(t)
	}
	for _, c := range m.Checks() {
		_, ds := c.Run(t)
		v.graph.Report(notFailures(ds))
	}
	v.graph.Report(m.CheckReferences())
}

func (v *validator) first(k any) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done[k] {
		return false
	}
	v.done[k] = true
	return true
}

// provider validates a provider configuration.
func (v *validator) provider(t *demand.Task, pc *eval.ProviderConfig) diag.List {
	if pc.Block() == nil || !v.first(pc.Block()) {
		return nil
	}
	if v.leavesOut(pc.Addr.Provider) {
		return pc.Expressions(t).About(pc.Addr.String())
	}
	ps, ds := v.client.Schema(pc.Addr.Provider)
	if ds.HasErrors() {
		return ds
	}
	val, ok := pc.Value(t)
	if !ok || v.in.SchemasOnly {
		return nil
	}
	prov, ds := v.in.Providers.Any(v.ctx, pc.Addr.Provider)
	if ds.HasErrors() {
		return ds
	}
	plain, _ := val.UnmarkDeep()
	_, more := prov.ValidateConfig(v.ctx, plain)
	for _, m := range more {
		if m.At == nil {
			m.At = pc.AttrRange(m.Attr, ps)
		}
	}
	return append(ds, more...).About(pc.Addr.String())
}

// Schema implements eval.Phase.
func (v *validator) Schema(_ *demand.Task, a addr.Provider) (*schema.Provider, diag.List) {
	if v.leavesOut(a) {
		return nil, demand.Fail()
	}
	return v.client.Schema(a)
}

// Value implements eval.Phase. It returns the configuration, with unknown values for attributes
// that the provider computes.
func (v *validator) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	if v.leavesOut(d.Resource.Provider()) {
		return v.alone(t, d)
	}
	if d.Addr().Resource.Mode == addr.List {
		return v.list(t, d)
	}
	if v.early {
		return v.valueBeforePlan(t, d)
	}
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	a := d.Addr()
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	if a.Resource.Mode == addr.Ephemeral {
		unknown = unknown.Mark(value.Ephemeral)
	}
	_, more := d.Provider(t)
	ds = append(ds, more...)
	_, more = d.Preconditions(t)
	ds = append(ds, notFailures(more)...)
	if b, more := d.Resource.Body(s); b.Dynamic() && !more.HasErrors() { // the contents of dynamic blocks are only evaluated if there are any
		if more = b.Static(t, d.Scope(cty.NilVal)); more.HasErrors() {
			return unknown, append(ds, resourceclient.Blame(d, s, more)...)
		}
	} else if more.HasErrors() {
		return unknown, append(ds, resourceclient.Blame(d, s, more)...)
	}
	config, more := d.Config(t, s)
	if ds = append(ds, resourceclient.Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	plain := config
	marked := value.Marked(config)
	if marked {
		plain, _ = config.UnmarkDeep()
	}
	if a.Resource.Mode != addr.Ephemeral && marked {
		_, _, more = resourceclient.ConfigValue(t, d, s)
		ds = append(ds, resourceclient.Blame(d, s, append(onlyOf(more, diag.CodePlanEphemeral), onlyOf(more, resourceclient.CodeDeprecated)...))...)
	}
	more = nil
	if !v.in.SchemasOnly {
		prov, unavailable := v.in.Providers.Any(v.ctx, d.Resource.Provider())
		if ds = append(ds, unavailable...); unavailable.HasErrors() {
			return unknown, ds
		}
		more = resourceclient.Blame(d, s, prov.ValidateResource(v.ctx, a.Resource.Mode, a.Resource.Type, plain))
	}
	ds = append(ds, append(more, v.deprecated(d, s, plain, more)...).About(a.String())...)
	ds = append(ds, v.ignored(t, d, s)...)
	out := s.Block.SetUnknowns(plain)
	if v.in.Unknown {
		out, marked = unknownParts(s.Block), false
	}
	ds = append(ds, v.provisioners(t, d, out)...)
	var sensitive []cty.Path
	if marked {
		sensitive = value.PathsWith(config, value.Sensitive)
	}
	out = resourceclient.WithSensitive(out, sensitive, s)
	if a.Resource.Mode == addr.Ephemeral {
		out = out.Mark(value.Ephemeral)
	}
	return out, append(ds, made(t, d, out)...)
}

// unknownParts returns an object whose attributes and blocks are unknown.
func unknownParts(b *schema.Block) cty.Value {
	parts := map[string]cty.Value{}
	for name, ty := range b.ImpliedType().AttributeTypes() {
		parts[name] = cty.UnknownVal(ty)
	}
	return cty.ObjectVal(parts)
}

// made returns the errors in expressions that refer to the future instance.
func made(t *demand.Task, d *eval.Desired, out cty.Value) diag.List {
	_, more := d.Postconditions(t, out)
	ds := notFailures(more)
	_, _, more = d.Resource.PreventDestroy(t)
	ds = append(ds, onlyKnown(more)...)
	for _, x := range d.Triggers() {
		_, _, more = d.TriggerTarget(t, x)
		ds = append(ds, more...)
	}
	return ds
}

// notFailures removes failed conditions: with unknown values a failure means nothing, and with
// known values the plan reports it.
func notFailures(ds diag.List) diag.List {
	var out diag.List
	for _, m := range ds {
		if m.Code != diag.CodeEvalCondition {
			out = append(out, m)
		}
	}
	return out
}

func onlyOf(ds diag.List, code string) diag.List {
	var out diag.List
	for _, m := range ds {
		if m.Code == code {
			out = append(out, m)
		}
	}
	return out
}

// onlyKnown removes the error that prevent_destroy is unknown, since variables have no values
// during validation.
func onlyKnown(ds diag.List) diag.List {
	var out diag.List
	for _, m := range ds {
		if m.Code != eval.CodePreventDestroy {
			out = append(out, m)
		}
	}
	return out
}

// deprecated warns about arguments and blocks that the schema marks as deprecated, except for
// those that the messages of the provider already report. An argument with an unknown value may
// be null, so it gets no warning.
func (v *validator) deprecated(d *eval.Desired, s *schema.Resource, config cty.Value, reported diag.List) diag.List {
	if !v.first(d.Resource.Config()) {
		return nil
	}
	var ds diag.List
	warn := func(at source.Range, summary, text string) {
		if !slices.ContainsFunc(reported, func(m *diag.Message) bool {
			return m.Severity == diag.Warning && m.At != nil && *m.At == at && strings.Contains(strings.ToLower(m.Summary), "deprecated")
		}) {
			ds = append(ds, diag.Warnf(diag.CodeEvalDeprecatedByProvider, &at, summary, "%s", sentence(text))...)
		}
	}
	kind := "resource"
	if d.Addr().Resource.Mode == addr.Data {
		kind = "data source"
	}
	if s.Block.Deprecated != "" {
		warn(d.Resource.Config().At, "Deprecated "+kind, s.Block.Deprecated)
	}
	if config.IsNull() || !config.IsKnown() {
		return ds
	}
	b, _ := d.Resource.Body(s)
	for name, a := range s.Block.Attributes {
		x := config.GetAttr(name)
		if a.Deprecated == "" || !x.IsKnown() || x.IsNull() {
			continue
		}
		warn(b.AttrRange(cty.GetAttrPath(name)), "Argument is deprecated", a.Deprecated)
	}
	for name, nb := range s.Block.Blocks {
		x := config.GetAttr(name)
		if nb.Block.Deprecated == "" || x.IsNull() || x.IsKnown() && x.CanIterateElements() && x.LengthInt() == 0 {
			continue
		}
		warn(b.AttrRange(cty.GetAttrPath(name)), "Block is deprecated", nb.Block.Deprecated)
	}
	return ds
}

func sentence(text string) string {
	if text == schema.NoMessage {
		return "The provider calls this deprecated and says no more about it."
	}
	return text
}

// ignored checks the references in ignore_changes against the schema.
func (v *validator) ignored(t *demand.Task, d *eval.Desired, s *schema.Resource) diag.List {
	var redundant diag.List
	in, ds := d.Ignored(t)
	refs := d.Resource.Config().Lifecycle.Ignore.Paths()
	for _, ref := range in.Paths {
		if !slices.ContainsFunc(refs, func(x hcl.Traversal) bool {
			return x.SourceRange() == ref.SourceRange() && addr.Text(x) == addr.Text(ref)
		}) {
			refs = append(refs, ref)
		}
	}
	for _, ref := range refs {
		at := ref.SourceRange()
		if more := eval.AttributeMistake(ref, s.Block.ImpliedType(), &at); more != nil { // such references are relative to the resource
			ds = append(ds, more...)
			continue
		}
		first, ok := ref[0].(hcl.TraverseAttr)
		if !ok {
			continue
		}
		if a := s.Block.Attributes[first.Name]; a != nil && a.Computed && !a.Optional && !a.Required {
			redundant = append(redundant, diag.Warnf(diag.CodeEvalRedundantIgnore, &at, "Redundant ignore_changes element", "Adding an attribute name to ignore_changes tells Terrace to ignore future changes to the argument in configuration after the object has been created, retaining the value originally configured.\n\nThe attribute %s is decided by the provider alone and therefore there can be no configured value to compare with. Including this attribute in ignore_changes has no effect. Remove the attribute from ignore_changes to quiet this warning.", first.Name)...)
		}
	}
	if !v.early {
		return append(ds, redundant...)
	}
	v.mu.Lock()
	v.redundant = append(v.redundant, redundant...)
	v.mu.Unlock()
	return ds
}

// provisioners validates provisioner and connection blocks.
func (v *validator) provisioners(t *demand.Task, d *eval.Desired, self cty.Value) diag.List {
	cfg := d.Resource.Config()
	if v.in.Provisioners == nil || len(cfg.Provisioners) == 0 || !v.first(cfg.Provisioners[0]) {
		return nil
	}
	var ds diag.List
	for _, p := range cfg.Provisioners {
		b := v.in.Provisioners.Schema(p.Type)
		if b == nil {
			continue // reported at the beginning
		}
		scope := d.Scope(self)
		config, more := evalBody(t, p.Body, b, scope)
		ds = append(ds, more...)
		conn, bad := cty.NilVal, more.HasErrors()
		block := cfg.Connection
		if p.Connection != nil {
			block = p.Connection
		}
		if block != nil {
			conn, more = evalBody(t, block.Body, v.in.Provisioners.ConnectionSchema(), scope)
			if bad = bad || more.HasErrors(); block != cfg.Connection || p == cfg.Provisioners[0] {
				ds = append(ds, more...) // messages about the resource's connection appear once
			}
		}
		if !bad {
			ds = append(ds, v.in.Provisioners.Validate(p.Type, config, conn).Under(&p.At)...)
		}
	}
	return ds
}

// Function implements eval.Phase.
func (v *validator) Function(_ *demand.Task, a addr.Provider, pc *eval.ProviderConfig, name string) (function.Function, diag.List) {
	if v.leavesOut(a) {
		return resourceclient.UnknownFunction(), nil
	}
	prov, ds := v.in.Providers.Any(v.ctx, a)
	if ds.HasErrors() {
		return function.Function{}, ds
	}
	if pc != nil {
		ps, more := prov.Schema(v.ctx)
		if more.HasErrors() || ps.Functions[name] == nil {
			return resourceclient.UnknownFunction(), append(ds, more...)
		}
	}
	return resourceclient.ProviderFunction(v.ctx, prov, a, name, false)
}

// evalBody decodes a body with a schema and evaluates it to a value without marks.
func evalBody(t *demand.Task, body hcl.Body, b *schema.Block, s lang.Scope) (cty.Value, diag.List) {
	c, ds := lang.CompileBody(body, b)
	if ds.HasErrors() {
		return cty.UnknownVal(b.ImpliedType()), ds
	}
	v, more := c.Eval(t, s)
	v, _ = v.UnmarkDeep()
	return v, append(ds, more...)
}
