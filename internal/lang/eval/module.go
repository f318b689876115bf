package eval

import (
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Module is one module instance.
type Module struct {
	Addr   addr.ModuleInstance
	Node   *module.Node
	ev     *Evaluator
	parent *Module
	call   *Call // nil for the root
	inst   instance
	code   *code

	// represents is the reason for which the instances of the module are unknown, if this module is
	// their placeholder (Children.Placeholder); otherwise nil. Its resources have unknown values.
	represents *Deferral

	variables []demand.Cell[cty.Value]
	locals    []demand.Cell[cty.Value]
	outputs   []demand.Cell[cty.Value]
	calls     []*Call
	resources []*Resource
	checks    []*Check
	providers providers
	outcomes  [][]Outcome // results of preconditions, by output; the output's cell writes them
	validated [][]Outcome // results of validations, by variable; nil without any. The variable's cell writes first, then Demands
}

func (ev *Evaluator) newModule(parent *Module, call *Call, node *module.Node, a addr.ModuleInstance, inst instance) *Module {
	c := ev.code(node.Config)
	m := &Module{
		Addr: a, Node: node, ev: ev, parent: parent, call: call, inst: inst, code: c,
		variables: make([]demand.Cell[cty.Value], len(c.variables)),
		locals:    make([]demand.Cell[cty.Value], len(c.locals)),
		outputs:   make([]demand.Cell[cty.Value], len(c.outputs)),
		calls:     make([]*Call, len(c.calls)),
		resources: make([]*Resource, len(c.resources)),
		checks:    make([]*Check, len(c.checks)),
		outcomes:  make([][]Outcome, len(c.outputs)),
	}
	if parent != nil {
		m.represents = parent.represents
	}
	if slices.ContainsFunc(c.variables, (*varCode).hasRules) {
		m.validated = make([][]Outcome, len(c.variables))
	}
	for i, v := range c.variables {
		ty := v.cfg.Type.WithoutOptionalAttributesDeep()
		m.variables[i].Init(&item{m, "var.", v.cfg.Name, &v.cfg.At}, cty.UnknownVal(ty), func(t *demand.Task) (cty.Value, diag.List) {
			return m.variable(t, v)
		})
	}
	for i, l := range c.locals {
		m.locals[i].Init(&item{m, "local.", l.cfg.Name, &l.cfg.At}, cty.DynamicVal, func(t *demand.Task) (cty.Value, diag.List) {
			v, ds := m.local(t, l)
			if !m.ev.deprecated.Load() {
				return v, ds
			}
			v, more := m.ev.used(v, l.expr.Range())
			return v, append(ds, more...)
		})
	}
	for i, o := range c.outputs {
		m.outputs[i].Init(&item{m, "output.", o.cfg.Name, &o.cfg.At}, cty.UnknownVal(o.cfg.Type.WithoutOptionalAttributesDeep()), func(t *demand.Task) (cty.Value, diag.List) {
			return m.output(t, o)
		})
	}
	for i, cc := range c.calls {
		m.calls[i] = newCall(m, cc)
	}
	for i, rc := range c.resources {
		m.resources[i] = newResource(m, rc)
	}
	for i, cc := range c.checks {
		m.checks[i] = &Check{Mod: m, code: cc}
	}
	return m
}

// local evaluates a local value.
func (m *Module) local(t *demand.Task, l *localCode) (cty.Value, diag.List) {
	if v := l.fixed.Load(); v != nil {
		return *v, nil
	}
	v, ds := lang.Eval(t, m, l.expr, cty.DynamicPseudoType)
	if len(ds) == 0 && len(l.expr.Refs()) == 0 && !l.expr.OfProviders() && v.IsWhollyKnown() {
		l.fixed.Store(&v)
	}
	return v, ds
}

// item is the subject of a variable, local or output.
type item struct {
	mod        *Module
	kind, name string
	at         *source.Range
}

func (i *item) Describe() (string, *source.Range) {
	if i.mod.Addr == "" {
		return i.kind + i.name, i.at
	}
	return string(i.mod.Addr) + "." + i.kind + i.name, i.at
}

// SelfReference implements demand.SelfReferencer.
func (i *item) SelfReference() string {
	if i.kind == "local." {
		return "Self-referencing local value"
	}
	return "Cycle"
}

// Calls returns the module calls of the instance, by name.
func (m *Module) Calls() []*Call { return m.calls }

// Resources returns the resources of the instance, by mode, type and name.
func (m *Module) Resources() []*Resource { return m.resources }

// Resource returns one resource, or nil.
func (m *Module) Resource(a addr.Resource) *Resource {
	if i, ok := m.code.resourceIndex[a]; ok {
		return m.resources[i]
	}
	return nil
}

// Checks returns the check blocks.
func (m *Module) Checks() []*Check { return m.checks }

// Demands returns functions that demand everything in the module except resources and calls, so
// that all errors are reported.
func (m *Module) Demands() []func(*demand.Task) {
	out := m.Inputs()
	for i := range m.locals {
		out = append(out, func(t *demand.Task) { m.locals[i].Get(t, nil) })
	}
	for i := range m.outputs {
		out = append(out, func(t *demand.Task) { m.outputs[i].Get(t, nil) })
	}
	return out
}

// Inputs returns the part of Demands for variables.
func (m *Module) Inputs() []func(*demand.Task) {
	var out []func(*demand.Task)
	for i := range m.variables {
		out = append(out, func(t *demand.Task) { m.variables[i].Get(t, nil); m.validateOthers(t, m.code.variables[i]) })
	}
	return out
}

// Validations returns the part of Demands for variables with validation rules for which only
// returns true.
func (m *Module) Validations(only func(name string) bool) []func(*demand.Task) {
	var out []func(*demand.Task)
	for i, v := range m.code.variables {
		if v.hasRules() && only(v.cfg.Name) {
			out = append(out, func(t *demand.Task) { m.variables[i].Get(t, nil); m.validateOthers(t, v) })
		}
	}
	return out
}

// Outputs returns the names of the outputs, sorted.
func (m *Module) Outputs() []string {
	names := make([]string, len(m.code.outputs))
	for i, o := range m.code.outputs {
		names[i] = o.cfg.Name
	}
	return names
}

// Output computes one output. ok is false if it failed or does not exist.
func (m *Module) Output(t *demand.Task, name string) (v cty.Value, ok bool) {
	i, found := m.code.outputIndex[name]
	if !found {
		return cty.DynamicVal, false
	}
	return m.outputs[i].Get(t, nil)
}

// NullOutputs returns the names of the outputs that were computed and are null.
func (m *Module) NullOutputs() []string {
	var out []string
	for i, o := range m.code.outputs {
		if v, ok := m.outputs[i].Peek(); ok && v.IsNull() {
			out = append(out, o.cfg.Name)
		}
	}
	return out
}

// RefusedOutputs returns the nodes of outputs that were computed although a precondition
// failed.
func (ev *Evaluator) RefusedOutputs() map[*demand.Node]bool {
	out := map[*demand.Node]bool{}
	var walk func(*Module)
	walk = func(m *Module) {
		for i, outcomes := range m.outcomes {
			if slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Status == Fail }) {
				out[&m.outputs[i].Node] = true
			}
		}
		for _, call := range m.Calls() {
			for _, child := range call.Known() {
				walk(child)
			}
		}
	}
	walk(ev.Root)
	return out
}

// OutputNode returns the node of an output, to inspect its reads.
func (m *Module) OutputNode(name string) *demand.Node {
	return &m.outputs[m.code.outputIndex[name]].Node
}

// OutputRules returns the results of output preconditions, by output. Outputs that were not
// computed have no results.
func (m *Module) OutputRules() map[string][]Outcome {
	var out map[string][]Outcome
	for i, o := range m.code.outputs {
		if len(o.pre) == 0 {
			continue
		}
		if out == nil {
			out = map[string][]Outcome{}
		}
		out[o.cfg.Name] = m.outcomes[i]
	}
	return out
}

// VariableRules returns the results of variable validations that were computed, by variable.
func (m *Module) VariableRules() map[string][]Outcome {
	out := map[string][]Outcome{}
	for i, outcomes := range m.validated {
		if len(outcomes) > 0 {
			out[m.code.variables[i].cfg.Name] = outcomes
		}
	}
	return out
}

// Local computes one local value.
func (m *Module) Local(t *demand.Task, name string) (v cty.Value, ok bool) {
	i, found := m.code.localIndex[name]
	if !found {
		return cty.DynamicVal, false
	}
	return m.locals[i].Get(t, nil)
}

// Variable computes one input variable.
func (m *Module) Variable(t *demand.Task, name string) (v cty.Value, ok bool) {
	i, found := m.code.varIndex[name]
	if !found {
		return cty.DynamicVal, false
	}
	return m.variables[i].Get(t, nil)
}

// variable computes the value of an input variable: the value that the caller gives, converted,
// or the default. Then it evaluates the validations.
func (m *Module) variable(t *demand.Task, v *varCode) (cty.Value, diag.List) {
	cfg := v.cfg
	ty := cfg.Type.WithoutOptionalAttributesDeep()
	unknown := cty.UnknownVal(ty)
	given, at, from, ds := m.given(t, v)
	if ds.HasErrors() {
		return m.marked(cfg.Sensitive, cfg.Ephemeral, unknown), ds
	}
	val := given
	if val == cty.NilVal || !cfg.Nullable && val.IsKnown() && unmarked(val).IsNull() && !cfg.Required() {
		if cfg.Required() {
			if m.ev.o.Validating || m.parent != nil {
				return m.marked(cfg.Sensitive, cfg.Ephemeral, unknown), ds
			}
			return unknown, append(ds, diag.Errorf(diag.CodeVarsMissing, &cfg.At, "No value for required variable", "The root module input variable %q is not set, and has no default value. Use a -var or -var-file command line argument to provide a value for this variable.", cfg.Name)...)
		}
		val, at = cfg.Default, nil
	}
	if cfg.Defaults != nil && !unmarked(val).IsNull() {
		val = value.WithDefaults(cfg.Defaults.Apply, val)
	}
	out, err := value.Convert(val, cfg.Type)
	if err != nil {
		return unknown, append(ds, m.badInput(cfg.Name, at, &cfg.At, from, "is not suitable for the variable: "+lang.ErrorText(err))...)
	}
	if !cfg.Nullable && out.IsKnown() && unmarked(out).IsNull() {
		return unknown, append(ds, &diag.Message{Code: diag.CodeEvalNullVariable, Summary: "Required variable not set", At: pick(at, &cfg.At),
			Detail: fmt.Sprintf("The given value is not suitable for %s defined at %s: required variable may not be set to null.", m.name("var."+cfg.Name), cfg.At)})
	}
	if !cfg.Ephemeral && value.ContainsMark(out, value.Ephemeral) {
		return unknown, append(ds, &diag.Message{Code: diag.CodeEvalEphemeralInput, Summary: "Variable does not allow ephemeral value", At: pick(at, &cfg.At),
			Detail: fmt.Sprintf("The value used for the variable %q is ephemeral, but it is not configured to allow one. Set ephemeral = true in the variable block.", cfg.Name)})
	}
	if cfg.Deprecated != "" && given != cty.NilVal && !(m.parent == nil && m.ev.o.Validating) {
		summary := "Variable marked as deprecated by the module author"
		if m.parent == nil {
			summary = "Deprecated variable used from the root module"
		}
		ds = append(ds, diag.Warnf(diag.CodeEvalDeprecatedVariable, pick(at, &cfg.At), summary, "Variable %q is marked as deprecated with the following message:\n%s", cfg.Name, cfg.Deprecated)...)
	}
	out = m.marked(cfg.Sensitive, cfg.Ephemeral, out)
	if len(v.own) > 0 && m.represents == nil {
		ds = append(ds, m.validate(t, v, v.own, Input{out, at, from})...)
	}
	if m.ev.o.Validating && m.parent != nil { // rules of a module are checked with whatever value it is called
		out = m.marked(cfg.Sensitive, cfg.Ephemeral, unknown)
	}
	return out, ds
}

// given returns the value that the caller gives to a variable, or cty.NilVal.
func (m *Module) given(t *demand.Task, v *varCode) (val cty.Value, at *source.Range, from string, ds diag.List) {
	if m.parent == nil {
		if in, ok := m.ev.o.Variables[v.cfg.Name]; ok {
			return in.Value, in.At, in.From, nil
		}
		if m.ev.o.Validating {
			return cty.UnknownVal(v.cfg.Type.WithoutOptionalAttributesDeep()), nil, "", nil
		}
		return cty.NilVal, nil, "", nil
	}
	x := m.call.input(v.cfg.Name)
	if x == nil {
		return cty.NilVal, nil, "", nil
	}
	r := x.Range()
	if !m.call.code.repeat.none() {
		m.call.children.Get(t, &r) // each.value and count.index depend on it
	}
	val, ds = lang.Eval(t, m.call.scope(m.inst), x, cty.DynamicPseudoType)
	val, more := m.ev.used(val, r)
	return val, &r, "", append(ds, more...)
}

func (m *Module) badInput(name string, at, decl *source.Range, from, what string) diag.List {
	msg := &diag.Message{Code: diag.CodeEvalBadInput, Summary: "Invalid value for input variable", At: pick(at, decl)}
	if from != "" && at == nil {
		msg.Detail = fmt.Sprintf("The value of the variable %q, given by %s, %s.", name, from, what)
	} else {
		msg.Detail = fmt.Sprintf("The given value for %s %s.", m.name("var."+name), what)
	}
	if at != nil {
		msg.Notes = append(msg.Notes, diag.Note{Text: "the variable is declared here", At: decl})
	}
	return diag.List{msg}
}

func (m *Module) name(rest string) string {
	if m.Addr == "" {
		return rest
	}
	return string(m.Addr) + "." + rest
}

func (m *Module) marked(sensitive, ephemeral bool, v cty.Value) cty.Value {
	if sensitive {
		v = v.Mark(value.Sensitive)
	}
	if ephemeral {
		v = v.Mark(value.Ephemeral)
	}
	return v
}

func pick(at, or *source.Range) *source.Range {
	if at != nil {
		return at
	}
	return or
}

func unmarked(v cty.Value) cty.Value {
	v, _ = v.Unmark()
	return v
}

// output computes an output value and checks the rules of outputs.
func (m *Module) output(t *demand.Task, o *outputCode) (cty.Value, diag.List) {
	cfg := o.cfg
	var ds diag.List
	m.touch(t, o.after)
	if len(o.pre) > 0 {
		res, more := m.ev.Rules(t, m, "Module output value precondition", o.pre, m.name("output."+cfg.Name))
		m.outcomes[m.code.outputIndex[cfg.Name]] = res
		ds = append(ds, more...)
		if ds.HasErrors() {
			return cty.DynamicVal, ds
		}
	}
	if o.expr == nil {
		return cty.DynamicVal, append(ds, demand.Fail()...)
	}
	v, more := lang.Eval(t, m, o.expr, cty.DynamicPseudoType)
	ds = append(ds, more...)
	if ds.HasErrors() {
		return v, ds
	}
	at := o.expr.Range()
	v, more = m.ev.used(v, at)
	ds = append(ds, more...)
	if v, more = m.typed(cfg, v, at); more.HasErrors() {
		return v, append(ds, more...)
	}
	if m.parent == nil {
		v, ds = m.rootOutput(o, v, ds)
	}
	if !cfg.Ephemeral && value.ContainsMark(v, value.Ephemeral) {
		return cty.DynamicVal, append(ds, diag.Errorf(diag.CodeEvalEphemeralOutput, &at, "Output does not allow ephemeral value", "The value of the output %q is ephemeral, but the output is not declared with ephemeral = true.", cfg.Name)...)
	}
	v = m.marked(cfg.Sensitive, cfg.Ephemeral, v)
	if cfg.Deprecated != "" && m.parent != nil {
		v = m.ev.deprecate(v, m.name(cfg.Name), cfg.Deprecated)
	}
	return v, ds
}

// typed converts the value of an output to its type. at is the range of the value.
func (m *Module) typed(cfg *config.Output, v cty.Value, at source.Range) (cty.Value, diag.List) {
	if cfg.Type == cty.DynamicPseudoType {
		return v, nil
	}
	if cfg.Defaults != nil && !unmarked(v).IsNull() {
		v = value.WithDefaults(cfg.Defaults.Apply, v)
	}
	out, err := value.Convert(v, cfg.Type)
	if err == nil {
		return out, nil
	}
	typ := cfg.Settings["type"].Range
	return cty.UnknownVal(cfg.Type.WithoutOptionalAttributesDeep()), diag.Errorf(diag.CodeEvalOutputType, &at, "Invalid output value",
		"The value of %s is not suitable for its type: %s.", m.name("output."+cfg.Name), lang.ErrorText(err)).Note(&typ, "the type is set here")
}

func (m *Module) rootOutput(o *outputCode, v cty.Value, ds diag.List) (cty.Value, diag.List) {
	at := o.cfg.At
	if o.cfg.Ephemeral {
		return v, append(ds, diag.Errorf(diag.CodeEvalOutput, &at, "Invalid output configuration", "Root modules are not allowed to have ephemeral outputs.")...)
	}
	if !o.cfg.Sensitive && value.ContainsMark(v, value.Sensitive) {
		return v, append(ds, diag.Errorf(diag.CodeEvalSensitiveOutput, &at, "Output refers to sensitive values", "To reduce the risk of accidentally exporting sensitive data that was intended to be only internal, Terrace requires that any root module output containing sensitive data be explicitly marked as sensitive, to confirm your intent.\n\nIf you do intend to export this data, annotate the output value as sensitive by adding the following argument:\n    sensitive = true")...)
	}
	if !o.cfg.Sensitive && value.ContainsMark(v, value.Hidden) {
		more := diag.Warnf(diag.CodeEvalHiddenOutput, &at, "Output refers to sensitive outputs of other units", "The output %q holds what another unit declares as sensitive, so it is taken for sensitive too. Mark it with sensitive = true, so that it is so for everyone.", o.cfg.Name)
		return v, append(ds, more...)
	}
	return v, ds
}
