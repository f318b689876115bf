package rules

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Files with rules
//
// The files NAME.rules.hcl and NAME.policy.hcl have one grammar. Only NAME.rules.hcl contains rule and
// exception blocks. Policy files come from Terraform 1.17; docs/rules.md lists the supported parts.

// A Text is a file with its text.
type Text struct {
	Name string // as in messages
	Text []byte
}

// IsFile reports whether a file with this name contains rules.
func IsFile(name string) bool {
	return strings.HasSuffix(name, Suffix) || strings.HasSuffix(name, PolicySuffix)
}

// IsTest reports whether a file with this name contains tests of rules.
func IsTest(name string) bool {
	return strings.HasSuffix(name, TestSuffix) || strings.HasSuffix(name, PolicyTestSuffix)
}

var (
	fileSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "rule", LabelNames: []string{"name"}}, {Type: "exception", LabelNames: []string{"rule"}},
		{Type: "resource_policy", LabelNames: []string{"type", "name"}}, {Type: "module_policy", LabelNames: []string{"source", "name"}},
		{Type: "provider_policy", LabelNames: []string{"provider", "name"}},
		{Type: "policy"}, {Type: "input", LabelNames: []string{"name"}}, {Type: "locals"},
	}}
	policySchema = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "enforcement_level"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "required_providers"}, {Type: "terraform_config"}, {Type: "plugins"}},
	}
	inputSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "type"}, {Name: "default"}, {Name: "description"}}}
	ruleSchema  = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{
			{Name: "resource"}, {Name: "data"}, {Name: "module"}, {Name: "provider"}, {Name: "unit"}, {Name: "edge"},
			{Name: "level"}, {Name: "filter"}, {Name: "operations"},
		},
		Blocks: []hcl.BlockHeaderSchema{{Type: "enforce"}, {Type: "locals"}},
	}
	policyRuleSchema = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "enforcement_level"}, {Name: "filter"}, {Name: "operations"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "enforce"}, {Type: "locals"}},
	}
	enforceSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "condition", Required: true}, {Name: "error_message"}, {Name: "info_message"},
	}}
	exceptionSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "address"}, {Name: "unit"}, {Name: "reason", Required: true}, {Name: "expires"},
	}}
)

// kinds are the kinds of subjects that an argument of a rule selects.
var kinds = []subject.Kind{subject.Resource, subject.Data, subject.Module, subject.Provider, subject.Unit, subject.Edge}

// operations are the planned operations that the argument operations may list.
var operations = []string{"create", "read", "update", "delete", "replace", "no-op", "forget"}

// Parse parses files with rules and adds their texts to set.
func Parse(files []Text, set *source.Set) (*Set, diag.List) {
	p := &parser{out: &Set{}, names: map[string]source.Range{}}
	for _, f := range files {
		p.parseFile(f, set)
	}
	for _, e := range p.out.Exceptions {
		i := slices.IndexFunc(p.out.Rules, func(r *Rule) bool { return r.Name == e.Rule })
		switch {
		case i < 0:
			p.errorf(diag.CodeRulesFile, e.At, "Invalid exception", "There is no rule with the name %q.", e.Rule)
		case p.out.Rules[i].Final:
			p.errorf(diag.CodeRulesFile, e.At, "Invalid exception", "The enforcement level of the policy %q is \"mandatory\", which allows no exceptions. Use \"mandatory_overridable\".", e.Rule)
		}
	}
	return p.out, p.ds.Sort().Once()
}

type parser struct {
	out   *Set
	names map[string]source.Range // of rules
	known map[string]bool         // see functions
	ds    diag.List
}

func (p *parser) errorf(code string, at source.Range, summary, detail string, args ...any) {
	p.ds = append(p.ds, diag.Errorf(code, &at, summary, detail, args...)...)
}

func (p *parser) invalid(at source.Range, detail string, args ...any) {
	p.errorf(diag.CodeRulesFile, at, "Invalid rule", detail, args...)
}

func (p *parser) unsupported(at source.Range, what, instead string) {
	p.errorf(diag.CodeRulesPolicy, at, "Unsupported policy construct", "Terrace does not support %s in policy files. %s", what, instead)
}

// body parses the text of a file.
func (p *parser) body(f Text, set *source.Set) hcl.Body {
	set.Add(&source.File{Path: f.Name, Bytes: f.Text, Layer: &source.Layer{Kind: source.Base}})
	if deep := diag.TooDeep(f.Name, f.Text); deep != nil {
		p.ds = append(p.ds, deep...)
		return nil
	}
	parsed, diags := hclsyntax.ParseConfig(f.Text, f.Name, hcl.InitialPos)
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	if parsed == nil || diags.HasErrors() {
		return nil
	}
	return parsed.Body
}

func (p *parser) content(b hcl.Body, s *hcl.BodySchema) *hcl.BodyContent {
	c, diags := b.Content(s)
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	return c
}

func (p *parser) parseFile(t Text, set *source.Set) {
	body := p.body(t, set)
	if body == nil {
		return
	}
	f := &file{name: t.Name, base: path.Base(filepath.ToSlash(t.Name)), inputs: map[string]cty.Value{}, locals: map[string]*lang.Expr{}, policy: strings.HasSuffix(t.Name, PolicySuffix)}
	p.out.files = append(p.out.files, f)
	content, from := p.content(body, fileSchema), len(p.out.Rules)
	for _, b := range content.Blocks.OfType("input") { // the arguments of rules can refer to them
		p.input(f, b)
	}
	for _, b := range content.Blocks {
		switch b.Type {
		case "rule":
			if f.policy {
				p.unsupported(b.DefRange, "rule blocks", "Write them in a file whose name ends in .rules.hcl.")
				continue
			}
			p.rule(f, b)
		case "exception":
			if f.policy {
				p.unsupported(b.DefRange, "exception blocks", "Write them in a file whose name ends in .rules.hcl.")
				continue
			}
			p.exception(b)
		case "resource_policy", "module_policy", "provider_policy":
			p.policy(f, b)
		case "policy":
			c := p.content(b.Body, policySchema)
			for _, in := range c.Blocks.OfType("plugins") {
				p.unsupported(in.DefRange, "plugins", "Terrace runs no programs while it checks rules. Use the functions of the language.")
			}
		case "locals":
			p.locals(f.locals, b)
		}
	}
	for _, r := range p.out.Rules[from:] {
		p.finish(r)
	}
	p.cycles(&Rule{file: f})
}

// input parses an input block. Its value is the default.
func (p *parser) input(f *file, b *hcl.Block) {
	c := p.content(b.Body, inputSchema)
	d := c.Attributes["default"]
	if d == nil {
		p.invalid(b.DefRange, "The input %q has no default. Terrace uses the defaults of inputs as their values.", b.Labels[0])
		return
	}
	v, diags := d.Expr.Value(nil)
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	if ty := c.Attributes["type"]; ty != nil && !diags.HasErrors() {
		want, diags := typeexpr.TypeConstraint(ty.Expr)
		p.ds = append(p.ds, diag.FromHCL(diags)...)
		if diags.HasErrors() {
			return
		}
		converted, err := value.Convert(v, want)
		if err != nil {
			p.invalid(d.Expr.Range(), "The default of the input %q does not have its type: %s.", b.Labels[0], lang.ErrorText(err))
			return
		}
		v = converted
	}
	f.inputs[b.Labels[0]] = v
}

func (p *parser) locals(into map[string]*lang.Expr, b *hcl.Block) {
	attrs, diags := b.Body.JustAttributes()
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	for name, a := range attrs {
		if into[name] != nil {
			p.invalid(a.NameRange, "The local value %q is defined twice.", name)
		}
		into[name] = lang.Compile(a.Expr)
	}
}

// value returns the value of an argument that is needed before any rule is checked: it can refer to
// inputs. It returns an unknown value after an error.
func (p *parser) value(f *file, a *hcl.Attribute) cty.Value {
	var ctx *hcl.EvalContext
	if f != nil && len(a.Expr.Variables()) > 0 {
		ctx = &hcl.EvalContext{Variables: map[string]cty.Value{"input": cty.ObjectVal(f.inputs)}}
	}
	v, diags := a.Expr.Value(ctx)
	p.ds = append(p.ds, diag.FromHCL(diags)...)
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	return v
}

// texts returns the value of an argument that is a string or a list of strings.
func (p *parser) texts(f *file, a *hcl.Attribute) []string {
	v := p.value(f, a)
	if !v.IsKnown() {
		return nil
	}
	if v.Type() == cty.String && !v.IsNull() {
		return []string{v.AsString()}
	}
	var out []string
	null := false
	if list, err := value.Convert(v, cty.List(cty.String)); err == nil && !list.IsNull() && list.IsWhollyKnown() {
		for it := list.ElementIterator(); it.Next(); {
			if _, el := it.Element(); el.IsNull() {
				null = true
			} else {
				out = append(out, el.AsString())
			}
		}
	}
	if len(out) == 0 || null {
		p.invalid(a.Expr.Range(), "The argument %q must be a string or a list of strings.", a.Name)
	}
	return out
}

func (p *parser) text(f *file, a *hcl.Attribute) string {
	all := p.texts(f, a)
	if len(all) > 1 {
		p.invalid(a.Expr.Range(), "The argument %q must be one string.", a.Name)
	}
	return strings.Join(all, " ")
}

func (p *parser) add(r *Rule, at source.Range) {
	if first, ok := p.names[r.Name]; ok {
		p.ds = append(p.ds, diag.Errorf(diag.CodeRulesFile, &at, "Duplicate rule", "There is another rule with the name %q. Exceptions and tests need the names, which must be different in all files.", r.Name).Note(&first, "the other rule")...)
		return
	}
	p.names[r.Name] = at
	p.out.Rules = append(p.out.Rules, r)
}

// rule parses a rule block.
func (p *parser) rule(f *file, b *hcl.Block) {
	c := p.content(b.Body, ruleSchema)
	r := &Rule{Name: b.Labels[0], At: b.DefRange, Kind: subject.Estate, Level: finding.Error, file: f}
	for _, k := range kinds {
		a := c.Attributes[string(k)]
		switch {
		case a == nil:
			continue
		case r.Kind != subject.Estate:
			p.invalid(a.NameRange, "A rule has one subject: %q and %q exclude each other.", r.Kind, k)
			continue
		}
		r.Kind = k
		for _, text := range p.texts(f, a) {
			if from, to, ok := strings.Cut(text, "->"); k == subject.Edge && ok {
				text = strings.TrimSpace(from) + " -> " + strings.TrimSpace(to)
			} else if k == subject.Edge && text != "*" {
				p.invalid(a.Expr.Range(), "The edge %q has no \"->\". Write FROM -> TO with the names of two units, such as \"prod/* -> dev/*\".", text)
			}
			r.Patterns = append(r.Patterns, NewPattern(text))
		}
	}
	if a := c.Attributes["level"]; a != nil {
		v := p.value(f, a)
		l, ok := finding.Level(0), !v.IsKnown()
		if value.IsText(v) {
			l, ok = finding.ParseLevel(v.AsString())
		}
		if !ok {
			p.invalid(a.Expr.Range(), "The level must be \"error\", \"warning\" or \"advice\".")
		}
		r.Level = cmp.Or(l, finding.Error)
	}
	p.conditions(r, c, b.DefRange)
}

// policy parses a block of a policy file.
func (p *parser) policy(f *file, b *hcl.Block) {
	c := p.content(b.Body, policyRuleSchema)
	r := &Rule{Name: b.Labels[1], At: b.DefRange, Kind: subject.Kind(strings.TrimSuffix(b.Type, "_policy")), Patterns: []Pattern{NewPattern(b.Labels[0])}, Level: finding.Error, Final: true, file: f}
	if a := c.Attributes["enforcement_level"]; a != nil {
		v := p.value(f, a)
		text := "mandatory" // unknown after an error
		if v.IsKnown() {
			text = ""
		}
		if value.IsText(v) {
			text = v.AsString()
		}
		switch text {
		case "mandatory":
		case "mandatory_overridable":
			r.Final = false
		case "advisory":
			r.Level, r.Final = finding.Warning, false
		default:
			p.invalid(a.Expr.Range(), "The enforcement level must be \"mandatory\", \"mandatory_overridable\" or \"advisory\".")
		}
	}
	p.conditions(r, c, b.DefRange)
}

// conditions parses the arguments and blocks that all kinds of rules have, and adds the rule.
func (p *parser) conditions(r *Rule, c *hcl.BodyContent, at source.Range) {
	if a := c.Attributes["operations"]; a != nil {
		if r.Kind != subject.Resource && r.Kind != subject.Data {
			p.invalid(a.NameRange, "Only rules about resources and data sources have the argument \"operations\".")
		}
		r.operations = p.texts(r.file, a)
		for _, o := range r.operations {
			if !slices.Contains(operations, o) {
				p.invalid(a.Expr.Range(), "There is no operation %q. The operations are %s.", o, strings.Join(operations, ", "))
			}
		}
	}
	if a := c.Attributes["filter"]; a != nil {
		r.filter = lang.Compile(a.Expr)
	}
	r.locals = map[string]*lang.Expr{}
	for _, b := range c.Blocks {
		if b.Type == "locals" {
			p.locals(r.locals, b)
			continue
		}
		in := p.content(b.Body, enforceSchema)
		if cond := in.Attributes["condition"]; cond != nil {
			one := condition{expr: lang.Compile(cond.Expr)}
			if m := in.Attributes["error_message"]; m != nil {
				one.message = lang.Compile(m.Expr)
			}
			r.conditions = append(r.conditions, one)
		}
	}
	if len(r.conditions) == 0 {
		if len(c.Blocks.OfType("enforce")) > 0 {
			return // the missing condition is reported
		}
		p.invalid(at, "A rule needs an enforce block with a condition.")
		return
	}
	p.add(r, at)
}

func (p *parser) exception(b *hcl.Block) {
	c := p.content(b.Body, exceptionSchema)
	e := &Exception{Rule: b.Labels[0], At: b.DefRange}
	text := func(name string) string {
		if a := c.Attributes[name]; a != nil {
			return p.text(nil, a)
		}
		return ""
	}
	e.Address, e.Unit, e.Reason = NewPattern(text("address")), NewPattern(text("unit")), text("reason")
	if c.Attributes["address"] == nil && c.Attributes["unit"] == nil {
		p.errorf(diag.CodeRulesFile, b.DefRange, "Invalid exception", "An exception needs an address or a unit. To allow everything, remove the rule.")
	}
	if a := c.Attributes["reason"]; a != nil && strings.TrimSpace(e.Reason) == "" {
		p.errorf(diag.CodeRulesFile, a.Expr.Range(), "Invalid exception", "The reason of an exception must not be empty.")
	}
	if a := c.Attributes["expires"]; a != nil {
		day, err := time.Parse(time.DateOnly, text("expires"))
		if err != nil {
			p.errorf(diag.CodeRulesFile, a.Expr.Range(), "Invalid exception", "The argument \"expires\" must be a date, such as \"2027-01-31\".")
		}
		e.Expires = day
	}
	p.out.Exceptions = append(p.out.Exceptions, e)
}

// impure are the functions that rules cannot call: their results are unknown in rules.
var impure = []string{"timestamp", "uuid", "bcrypt"}

// finish checks the expressions of a rule.
func (p *parser) finish(r *Rule) {
	if !p.cycles(r) {
		return
	}
	for _, x := range r.exprs() {
		r.walk(x, map[*lang.Expr]bool{}, func(x *lang.Expr) {
			for _, call := range callsOf(x) {
				switch call.name {
				case "core::getdatasource", "core::gethttprequest":
					p.unsupported(call.at, "the function "+call.name, "Rules are checked without providers and without network access.")
				}
				if name := strings.TrimPrefix(call.name, "core::"); slices.Contains(impure, name) {
					p.unknown(call.at, "The result of %q differs from call to call, so that the rule would never be decided. The time of the check is plantimestamp().", call.name)
				}
				if strings.HasPrefix(call.name, "plugin::") || strings.HasPrefix(call.name, "provider::") {
					p.unsupported(call.at, "the function "+call.name, "Terrace runs no programs while it checks rules.")
				} else if _, ok := p.functions()[call.name]; !ok {
					p.unknown(call.at, "There is no function %q.%s", call.name, lang.Suggest(call.name, p.functions()))
				}
			}
			for _, ref := range x.Refs() {
				p.reference(r, ref)
			}
		})
	}
	r.lists = r.findLists()
	r.wide = r.Kind == subject.Estate || len(r.lists) > 0
}

// functions returns the functions that rules can call.
func (p *parser) functions() map[string]bool {
	if p.known == nil {
		p.known = map[string]bool{"semverconstraint": true, "core::semverconstraint": true, "core::getdatasource": true, "core::gethttprequest": true}
		for name := range funcs.Table(funcs.Config{PureOnly: true}) {
			p.known[name] = true
		}
		for name := range listFunctions {
			p.known[name] = true
		}
	}
	return p.known
}

// unknown reports a name that does not exist, once for each place.
func (p *parser) unknown(at source.Range, detail string, args ...any) {
	p.invalid(at, detail, args...)
	p.ds = p.ds.Once()
}

// reference reports a reference to a name that no subject has. Otherwise, a rule without a subject would
// not be noticed.
func (p *parser) reference(r *Rule, ref lang.Ref) {
	name := ""
	if len(ref.Traversal) > 1 {
		if a, ok := ref.Traversal[1].(hcl.TraverseAttr); ok {
			name = a.Name
		}
	}
	switch root := ref.Traversal.RootName(); root {
	case "local":
	case "attrs", "config", "prior_attrs", "meta", "unit":
		if r.Kind == subject.Estate {
			p.unknown(ref.At, "A rule without a subject cannot refer to %q. Name the objects that the rule is about, as in: resource = \"aws_*\".", root)
		}
	case "input":
		if _, ok := r.file.inputs[name]; !ok {
			p.unknown(ref.At, "The file has no input %q.%s", name, lang.Suggest(name, r.file.inputs))
		}
	default:
		p.unknown(ref.At, "The reference %q does not exist. Rules can refer to attrs, config, prior_attrs, meta, unit, local and input.", root)
	}
}

// cycles reports local values that refer to themselves. It returns false if there are any.
func (p *parser) cycles(r *Rule) bool {
	state := map[*lang.Expr]int{} // 1: being visited, 2: done
	ok := true
	var visit func(x *lang.Expr)
	visit = func(x *lang.Expr) {
		state[x] = 1
		for _, ref := range x.Refs() {
			if ref.Traversal.RootName() != "local" || len(ref.Traversal) < 2 {
				continue
			}
			a, isAttr := ref.Traversal[1].(hcl.TraverseAttr)
			if !isAttr {
				continue
			}
			l := r.local(a.Name)
			switch {
			case l == nil:
				p.invalid(ref.At, "There is no local value %q.", a.Name)
				ok = false
			case state[l] == 1:
				p.invalid(ref.At, "The local value %q refers to itself.", a.Name)
				ok = false
			case state[l] == 0:
				visit(l)
			}
		}
		state[x] = 2
	}
	all := r.exprs()
	if r.Name == "" { // the locals of the file
		for _, x := range r.file.locals {
			all = append(all, x)
		}
	}
	for _, x := range r.locals {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *lang.Expr) int { return cmp.Compare(a.Range().Start.Byte, b.Range().Start.Byte) })
	for _, x := range all {
		if state[x] == 0 {
			visit(x)
		}
	}
	return ok
}

// A call is a call of a function.
type call struct {
	name string
	at   source.Range
	arg  string // the first argument, if it is a text; "*" otherwise
}

// callsOf returns the function calls in an expression.
func callsOf(x *lang.Expr) (out []call) {
	native, ok := x.Expression.(hclsyntax.Node)
	if !ok {
		return nil
	}
	_ = hclsyntax.VisitAll(native, func(n hclsyntax.Node) hcl.Diagnostics {
		if c, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			one := call{name: c.Name, at: c.NameRange, arg: "*"}
			if len(c.Args) > 0 {
				if v, diags := c.Args[0].Value(nil); !diags.HasErrors() && value.IsText(v) {
					one.arg = v.AsString()
				}
			}
			out = append(out, one)
		}
		return nil
	})
	return out
}
