package eval

import (
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// Status is the result of a condition.
type Status string

// The statuses, as spelled in state files.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Failed  Status = "error"
	Unknown Status = "unknown"
)

// An Outcome is the result of one condition.
type Outcome struct {
	Status  Status
	Message string // error message of a failed condition
}

// Rules evaluates conditions. A failed condition is an error (with Lenient a warning) whose
// summary contains kind. about is the object that has the conditions.
func (ev *Evaluator) Rules(t *demand.Task, s lang.Scope, kind string, rules []*ruleCode, about string) ([]Outcome, diag.List) {
	out := make([]Outcome, len(rules))
	var ds diag.List
	for i, r := range rules {
		var more diag.List
		out[i], more = ev.rule(t, s, kind, r)
		ds = append(ds, more.About(about)...)
	}
	if ev.o.Lenient && about != "" { // failed validations of variables remain errors
		for _, m := range ds {
			if m.Code == diag.Condition {
				m.Severity = diag.Warning
			}
		}
	}
	if about != "" {
		for _, m := range ds {
			if m.Code == diag.Condition {
				m.Extra = diag.Checked(about)
			}
		}
	}
	return out, ds
}

// Condition evaluates one condition that is not in the module tree, in a scope.
func (ev *Evaluator) Condition(t *demand.Task, s lang.Scope, kind string, r *config.Rule) (Outcome, diag.List) {
	return ev.rule(t, s, kind, &ruleCode{cfg: r, cond: lang.Compile(r.Condition), msg: lang.Compile(r.ErrorMessage)})
}

func (ev *Evaluator) rule(t *demand.Task, s lang.Scope, kind string, r *ruleCode) (Outcome, diag.List) {
	cond, ds := lang.Eval(t, s, r.cond, cty.DynamicPseudoType)
	if ev.o.Validating && r.msg != nil { // while planning it is only evaluated if the condition fails
		_, more := lang.Eval(t, s, r.msg, cty.String)
		ds = append(ds, more...)
	}
	if ds.HasErrors() {
		return Outcome{Status: Failed}, ds
	}
	at := r.cond.Range()
	cond, more := ev.used(cond, at)
	ds = append(ds, more...)
	cond, _ = cond.Unmark()
	switch {
	case !cond.IsKnown():
		return Outcome{Status: Unknown}, ds
	case cond.IsNull():
		return Outcome{Status: Failed}, append(ds, diag.Errorf(diag.CodeTestCondition, &at, "Invalid condition result", "Condition expression must return either true or false, not null.")...)
	}
	b, err := convert.Convert(cond, cty.Bool)
	if err != nil {
		return Outcome{Status: Failed}, append(ds, diag.Errorf(diag.CodeTestCondition, &at, "Invalid condition result", "Invalid condition result value: %s.", err)...)
	}
	if b.True() {
		return Outcome{Status: Pass}, ds
	}
	text, more := ev.ruleMessage(t, s, r)
	ds = append(ds, more...)
	summary := kind + " failed"
	if kind == "Invalid value for variable" {
		summary = kind
	}
	m := &diag.Message{Code: diag.Condition, Summary: summary, Detail: text, At: &at}
	if kind == "Invalid value for variable" {
		m.Detail += "\n\nThis was checked by the validation rule at " + r.cfg.At.String() + "."
	}
	if ctx, ctxDiags := lang.Context(t, s, r.cond); !ctxDiags.HasErrors() {
		m.Values = diag.Explain(r.cond.Expression, ctx, true)
		m.Diff = difference(r.cond.Expression, ctx)
	}
	return Outcome{Status: Fail, Message: text}, append(ds, m)
}

// difference returns the two sides of a condition that consists of a single ==.
func difference(x hcl.Expression, ctx *hcl.EvalContext) *diag.Difference {
	eq, ok := x.(*hclsyntax.BinaryOpExpr)
	if !ok || eq.Op != hclsyntax.OpEqual {
		return nil
	}
	before, more := eq.LHS.Value(ctx)
	after, bad := eq.RHS.Value(ctx)
	if more.HasErrors() || bad.HasErrors() {
		return nil
	}
	d := &diag.Difference{}
	d.Before, d.BeforeSecret = bare(before)
	d.After, d.AfterSecret = bare(after)
	return d
}

// bare removes the marks of a value and returns the paths that must not be shown.
func bare(v cty.Value) (plain cty.Value, secret []cty.Path) {
	for _, m := range []any{value.Sensitive, value.Ephemeral, value.Hidden} {
		secret = append(secret, value.PathsWith(v, m)...)
	}
	plain, _ = v.UnmarkDeep()
	return plain, secret
}

func (ev *Evaluator) ruleMessage(t *demand.Task, s lang.Scope, r *ruleCode) (string, diag.List) {
	if r.msg == nil {
		return "This check failed, and has no error message.", nil
	}
	v, ds := lang.Eval(t, s, r.msg, cty.String)
	at := r.msg.Range()
	switch {
	case ds.HasErrors():
		return "This check failed, but its error message could not be evaluated.", ds
	case value.ContainsSecret(v):
		return "The error message included a sensitive value, so it will not be displayed.", append(ds, diag.Warnf(diag.CodeEvalSensitiveMessage, &at, "Error message refers to sensitive values", "The error expression used to explain this condition refers to sensitive values, so Terrace will not display the resulting message. You can correct this by removing references to sensitive values, or by carefully using the nonsensitive() function if the expression will not reveal the sensitive data.")...)
	case value.ContainsMark(v, value.Ephemeral):
		return "The error message included an ephemeral value, so it will not be displayed.", append(ds, diag.Warnf(diag.CodeEvalEphemeralMessage, &at, "Error message refers to ephemeral values", "The error expression used to explain this condition refers to ephemeral values, so Terrace will not display the resulting message.")...)
	}
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown():
		return "This check failed, and its error message is not known yet.", ds
	case v.IsNull():
		return "This check failed, and its error message is null.", ds
	}
	return strings.TrimSpace(v.AsString()), ds
}

// validate evaluates a variable's validation rules.
func (m *Module) validate(t *demand.Task, v *varCode, rules []*ruleCode, in Input) diag.List {
	s := &ownScope{Module: m, name: v.cfg.Name, value: in.Value}
	outcomes, ds := m.ev.Rules(t, s, "Invalid value for variable", rules, "")
	i := m.code.varIndex[v.cfg.Name]
	m.validated[i] = append(m.validated[i], outcomes...)
	if m.ev.o.Validating && m.parent == nil && !in.Value.IsKnown() { // the actual value may satisfy them
		ds = slices.DeleteFunc(ds, func(d *diag.Message) bool { return d.Code == diag.Condition })
	}
	for _, msg := range ds {
		if msg.Code != diag.Condition {
			continue
		}
		msg.Extra = diag.Checked(m.name("var." + v.cfg.Name))
		if in.At != nil || in.From != "" { // values without a known origin are not shown
			msg.Values, msg.Diff = nil, nil
		}
		if in.At != nil {
			msg.Notes = append(msg.Notes, diag.Note{Text: "checked by the rule here", At: msg.At})
			msg.At = in.At
		} else if in.From != "" {
			msg.Notes = append(msg.Notes, diag.Note{Text: "the value was given by " + in.From})
		}
	}
	return ds
}

// validateOthers evaluates the rules of a variable that refer to other objects, too.
func (m *Module) validateOthers(t *demand.Task, v *varCode) {
	if len(v.other) == 0 {
		return
	}
	val, ok := m.variables[m.code.varIndex[v.cfg.Name]].Get(t, nil)
	if !ok {
		return
	}
	_, at, from, _ := m.given(t, v)
	var ds diag.List
	for _, d := range m.validate(t, v, v.other, Input{val, at, from}) {
		if d.Summary != "" {
			ds = append(ds, d)
		}
	}
	t.Report(ds)
}

// ownScope resolves a variable's own name while its cell is being computed.
type ownScope struct {
	*Module
	name  string
	value cty.Value
}

func (s *ownScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if isAttr(ref, "var", s.name) {
		return s.value, 2, nil
	}
	return s.Module.Resolve(t, ref, at)
}

// A Check is a check block in a module instance.
type Check struct {
	Mod  *Module
	code *checkCode
}

// Describe returns the name and the source range of the check.
func (c *Check) Describe() (string, *source.Range) {
	return c.Mod.name("check." + c.code.cfg.Name), &c.code.cfg.At
}

// Config returns the check block.
func (c *Check) Config() *config.Check { return c.code.cfg }

// Data returns the scoped data source, or nil.
func (c *Check) Data() *Resource {
	if c.code.cfg.Data == nil {
		return nil
	}
	return c.Mod.Resource(*c.code.cfg.Data)
}

// Run evaluates the assertions. Failures are warnings. It must be called once.
func (c *Check) Run(t *demand.Task) ([]Outcome, diag.List) {
	name, _ := c.Describe()
	var ds diag.List
	cell := demand.NewCell(demand.Subject(c), nil, func(t *demand.Task) ([]Outcome, diag.List) {
		var out []Outcome
		out, ds = c.Mod.ev.Rules(t, c.Mod, "Check block assertion", c.code.asserts, name)
		ds = append(ds, c.open(out)...)
		return out, nil
	})
	out, _ := cell.Get(t, nil)
	for _, m := range ds {
		if m.Alone = true; !c.Mod.ev.o.Validating || m.Code == diag.CodeEvalCondition { // during validation an assertion that cannot be evaluated is an error
			m.Severity = diag.Warning
		}
	}
	return out, ds
}

// CheckOpen is the code of the warning that an assertion can only be evaluated during apply.
const CheckOpen = diag.CodeEvalCheckOpen

// open warns about assertions that can only be evaluated during apply.
func (c *Check) open(out []Outcome) (ds diag.List) {
	if c.Mod.ev.o.Validating || c.Mod.ev.o.Applying {
		return nil
	}
	for i, o := range out {
		if o.Status == Unknown {
			at := c.code.asserts[i].cond.Range()
			ds = append(ds, &diag.Message{Code: CheckOpen, Severity: diag.Warning, At: &at, Summary: "Check block assertion known after apply",
				Detail: "This condition depends on values that are not known yet. It will be evaluated when the plan is applied."})
		}
	}
	return ds
}

// providerFunction returns the function with the name provider::NAME::FUNCTION or
// provider::NAME::ALIAS::FUNCTION.
func (m *Module) providerFunction(t *demand.Task, name string) (function.Function, diag.List) {
	parts := strings.Split(name, "::")
	if len(parts) != 3 && len(parts) != 4 {
		return function.Function{}, diag.Errorf(diag.CodeEvalFunctionName, nil, "Invalid function name", "%s is not the name of a provider function: it has the form provider::NAME::FUNCTION.", name)
	}
	local := parts[1]
	if _, declared := m.Node.Config.RequiredProviders[local]; !declared {
		return function.Function{}, diag.Errorf(diag.CodeEvalUndeclared, nil, "Unknown function provider", "Provider %q does not exist within the required_providers of this module, so %s cannot be called.", local, name)
	}
	alias := ""
	if len(parts) == 4 {
		alias = parts[2]
	}
	src := m.Node.Config.Source(local)
	ref := config.ProviderRef{Name: local, Alias: alias}
	b, ds := m.bind(ref)
	if ds.HasErrors() {
		return function.Function{}, ds
	}
	var cfg *ProviderConfig
	if b.cfg != nil { // declared here, passed by a call, or in a parent
		if cfg, ds = m.ResolveProvider(t, ref, m); ds.HasErrors() {
			return function.Function{}, ds
		}
	}
	f, ds := m.ev.o.Phase.Function(t, src, cfg, parts[len(parts)-1])
	return f, ds
}

func toNumber(v cty.Value) (*big.Float, error) {
	n, err := convert.Convert(v, cty.Number)
	if err != nil {
		return nil, err
	}
	return n.AsBigFloat(), nil
}
