package rules

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Tests of rules
//
// A file NAME.rulestest.hcl contains run blocks. Each contains objects with given values, and the
// rules that must fail for them. A file NAME.policytest.hcl, as Terraform 1.17 reads it, contains
// such objects without runs: each is a test of its own.

// A TestFile is the result of a file with tests.
type TestFile struct {
	Name  string
	Diags diag.List // errors of the file
	Runs  []*TestRun
}

// A TestRun is the result of one test.
type TestRun struct {
	Name  string
	At    source.Range
	Diags diag.List // empty if the test passed
}

var (
	mockTypes = []hcl.BlockHeaderSchema{
		{Type: "resource", LabelNames: []string{"type", "name"}}, {Type: "data", LabelNames: []string{"type", "name"}},
		{Type: "module", LabelNames: []string{"source", "name"}}, {Type: "provider", LabelNames: []string{"provider", "name"}},
	}
	testSchema           = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "run", LabelNames: []string{"name"}}, {Type: "locals"}}}
	policyTestConfSchema = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "targets"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "terraform_config"}, {Type: "plugins"}},
	}
	mockSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "attrs"}, {Name: "config"}, {Name: "meta"}, {Name: "prior_attrs"}, {Name: "unit"}}}
	unitSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "attrs"}, {Name: "meta"}, {Name: "dependencies"}}}
	// policyMockSchema is the schema of objects in policy tests.
	policyMockSchema = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "attrs"}, {Name: "meta"}, {Name: "prior_attrs"}, {Name: "expect_failure"}, {Name: "skip"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "inputs"}},
	}
)

// runSchema returns the schema of run blocks.
func runSchema() *hcl.BodySchema {
	return &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "rules"}, {Name: "expect_failures"}, {Name: "expect_unknown"}, {Name: "planned"}},
		Blocks:     append([]hcl.BlockHeaderSchema{{Type: "unit", LabelNames: []string{"name"}}, {Type: "inputs"}}, mockTypes...),
	}
}

// policyTestSchema returns the schema of files with policy tests.
func policyTestSchema() *hcl.BodySchema {
	return &hcl.BodySchema{Blocks: append([]hcl.BlockHeaderSchema{{Type: "policytest"}, {Type: "inputs"}, {Type: "locals"}}, mockTypes...)}
}

// Test runs the tests in files with the rules of a set, without its exceptions. The texts are added
// to sources.
func Test(ctx context.Context, s *Set, files []Text, o Options, sources *source.Set) []*TestFile {
	var out []*TestFile
	for _, f := range files {
		t := &tester{set: s, o: o, parser: parser{out: &Set{}}, policy: strings.HasSuffix(f.Name, PolicyTestSuffix), sources: sources, result: &TestFile{Name: f.Name}}
		if body := t.body(f, sources); body != nil {
			t.file(ctx, f.Name, body)
		}
		t.result.Diags = t.ds
		out = append(out, t.result)
	}
	return out
}

// A tester runs the tests of one file.
type tester struct {
	parser
	set    *Set
	o      Options
	policy bool
	result *TestFile

	sources *source.Set

	task  *demand.Task
	scope *scope // of the expressions in the file
}

func (t *tester) invalid(at source.Range, detail string, args ...any) {
	t.errorf(diag.CodeRulesTest, at, "Invalid test of rules", detail, args...)
}

// file runs the tests of a file.
func (t *tester) file(ctx context.Context, name string, body hcl.Body) {
	of := &file{name: name, locals: map[string]*lang.Expr{}}
	schema := testSchema
	if t.policy {
		schema = policyTestSchema()
	}
	c := t.content(body, schema)
	for _, b := range c.Blocks.OfType("locals") {
		t.locals(of.locals, b)
	}
	if !t.cycles(&Rule{file: of}) || t.ds.HasErrors() {
		return
	}
	t.task = (&demand.Graph{}).Task(ctx)
	t.scope = &scope{c: NewChecker(ctx, &Set{files: []*file{of}}, t.o), file: of}
	if t.policy {
		t.policyTests(ctx, c)
		return
	}
	for _, b := range c.Blocks.OfType("run") {
		if slices.ContainsFunc(t.result.Runs, func(r *TestRun) bool { return r.Name == b.Labels[0] }) {
			t.invalid(b.DefRange, "There is another run with the name %q.", b.Labels[0])
			continue
		}
		t.run(ctx, b)
	}
}

// eval returns the value of an argument, or cty.NilVal if it is missing or has errors.
func (t *tester) eval(c *hcl.BodyContent, name string) cty.Value {
	a := c.Attributes[name]
	if a == nil {
		return cty.NilVal
	}
	v, ds := lang.Eval(t.task, t.scope, lang.Compile(a.Expr), cty.DynamicPseudoType)
	if t.ds = append(t.ds, ds...); ds.HasErrors() {
		return cty.NilVal
	}
	return v
}

// object returns the value of an argument that is an object, or cty.NilVal.
func (t *tester) object(c *hcl.BodyContent, name string) cty.Value {
	v := t.eval(c, name)
	if v == cty.NilVal || v.IsNull() {
		return cty.NilVal
	}
	if ty := v.Type(); !ty.IsObjectType() && !ty.IsMapType() || !v.IsKnown() {
		t.invalid(c.Attributes[name].Expr.Range(), "The argument %q must be an object.", name)
		return cty.NilVal
	}
	return cty.ObjectVal(v.AsValueMap())
}

func (t *tester) flag(c *hcl.BodyContent, name string, otherwise bool) bool {
	v := t.eval(c, name)
	if v == cty.NilVal {
		return otherwise
	}
	b, err := value.Convert(v, cty.Bool)
	if err != nil || b.IsNull() || !b.IsKnown() {
		t.invalid(c.Attributes[name].Expr.Range(), "The argument %q must be true or false.", name)
		return otherwise
	}
	return b.True()
}

// inputsOf returns the values in an inputs block.
func (t *tester) inputsOf(b *hcl.Block) map[string]cty.Value {
	attrs, diags := b.Body.JustAttributes()
	t.ds = append(t.ds, diag.FromHCL(diags)...)
	out := map[string]cty.Value{}
	for name, a := range attrs {
		v, ds := lang.Eval(t.task, t.scope, lang.Compile(a.Expr), cty.DynamicPseudoType)
		t.ds = append(t.ds, ds...)
		out[name] = v
	}
	return out
}

// mock returns the subject that a block defines.
func (t *tester) mock(b *hcl.Block, c *hcl.BodyContent, planned bool) *subject.Subject {
	s := &subject.Subject{Kind: subject.Kind(b.Type), Name: b.Labels[0], At: b.DefRange}
	name := b.Labels[1]
	null := cty.NullVal(cty.String)
	switch s.Kind {
	case subject.Resource, subject.Data:
		s.Address = s.Name + "." + name
		if s.Kind == subject.Data {
			s.Address = "data." + s.Address
		}
		typ, _, _ := strings.Cut(s.Name, "_")
		s.Meta = map[string]cty.Value{
			"type": cty.StringVal(s.Name), "name": cty.StringVal(name), "module": cty.StringVal(""), "module_path": cty.StringVal("."), "key": null,
			"provider": cty.StringVal("hashicorp/" + typ), "provider_type": cty.StringVal(typ), "prevent_destroy": cty.False, "create_before_destroy": cty.False,
		}
	case subject.Module:
		s.Address = "module." + name
		s.Meta = map[string]cty.Value{"name": cty.StringVal(name), "source": cty.StringVal(s.Name), "version": null, "module": cty.StringVal(""), "key": null}
	case subject.Provider:
		s.Address = "provider." + name
		s.Meta = map[string]cty.Value{
			"name": cty.StringVal(s.Name), "alias": null, "source": cty.StringVal("hashicorp/" + s.Name), "type": cty.StringVal(s.Name), "namespace": cty.StringVal("hashicorp"),
			"hostname": cty.StringVal("registry.opentofu.org"), "version": null, "version_constraint": null, "module": cty.StringVal(""), "key": null,
		}
	}
	s.Meta["address"] = cty.StringVal(s.Address)
	attrs, prior := t.object(c, "attrs"), t.object(c, "prior_attrs")
	s.Attrs, s.Prior = attrs, prior
	if attrs == cty.NilVal {
		s.Attrs = cty.EmptyObjectVal
	}
	if s.Config = s.Attrs; c.Attributes["config"] != nil {
		if v := t.object(c, "config"); v != cty.NilVal {
			s.Config = v
		}
	}
	if s.Nulls = planned; !planned {
		s.Lacks = "is not written in the test"
	}
	if s.Kind == subject.Resource || s.Kind == subject.Data {
		op := "create"
		switch {
		case attrs == cty.NilVal && prior != cty.NilVal:
			op, s.Gone, s.Attrs = "delete", true, cty.NullVal(cty.DynamicPseudoType)
		case prior != cty.NilVal:
			op = "update"
		}
		if s.Meta["operation"] = cty.StringVal(op); !planned {
			s.Meta["operation"] = cty.UnknownVal(cty.String)
		}
	}
	if meta := t.object(c, "meta"); meta != cty.NilVal {
		maps.Copy(s.Meta, meta.AsValueMap())
		if v := s.Meta["address"]; value.IsText(v) {
			s.Address = v.AsString()
		}
		if v := s.Meta["operation"]; v != cty.NilVal && value.IsText(v) {
			s.Gone = v.AsString() == "delete" || v.AsString() == "forget"
		}
	}
	return s
}

// check checks rules for subjects. inputs replaces the values of inputs.
func (t *tester) check(ctx context.Context, only func(*Rule) bool, about *subject.Subject, units []*Unit, inputs map[string]cty.Value, planned bool) Result {
	set := &Set{}
	files := map[*file]*file{}
	for _, f := range t.set.files {
		n := *f
		n.inputs = maps.Clone(f.inputs)
		for name, v := range inputs {
			if _, declared := n.inputs[name]; declared {
				n.inputs[name] = v
			}
		}
		files[f] = &n
		set.files = append(set.files, &n)
	}
	for _, r := range t.set.Rules {
		if only(r) {
			n := *r
			n.file = files[r.file]
			set.Rules = append(set.Rules, &n)
		}
	}
	o := t.o
	o.Planned, o.only = planned, about
	c := NewChecker(ctx, set, o)
	for _, u := range units {
		c.Add(u)
	}
	return c.Finish()
}

// run runs a run block.
func (t *tester) run(ctx context.Context, b *hcl.Block) {
	before := len(t.ds)
	c := t.content(b.Body, runSchema())
	planned := t.flag(c, "planned", true)
	byName := map[string]*Unit{}
	var units []*Unit
	unit := func(name string) *Unit {
		if byName[name] == nil {
			byName[name] = &Unit{Name: name, Meta: map[string]cty.Value{"address": cty.StringVal(name), "name": cty.StringVal(name), "source": cty.NullVal(cty.String), "dependencies": cty.EmptyTupleVal, "excluded": cty.False}}
			units = append(units, byName[name])
		}
		return byName[name]
	}
	inputs := map[string]cty.Value{}
	for _, in := range c.Blocks {
		switch in.Type {
		case "inputs":
			inputs = t.inputsOf(in)
		case "unit":
			t.unit(unit(in.Labels[0]), in)
		default:
			m := t.content(in.Body, mockSchema)
			name := ""
			if v := t.eval(m, "unit"); v != cty.NilVal && value.IsText(v) {
				name = v.AsString()
			}
			u := unit(name)
			u.Subjects = append(u.Subjects, t.mock(in, m, planned))
		}
	}
	tested, fails, unknown := t.rules(c, "rules"), t.rules(c, "expect_failures"), t.rules(c, "expect_unknown")
	if len(t.ds) > before {
		return
	}
	res := t.check(ctx, func(r *Rule) bool { return tested == nil || slices.Contains(tested, r.Name) }, nil, units, inputs, planned)
	run := &TestRun{Name: b.Labels[0], At: b.DefRange, Diags: res.Diags}
	t.result.Runs = append(t.result.Runs, run)
	seen := map[string]finding.Verdict{}
	for _, f := range res.Findings {
		if seen[f.Rule] != finding.Fail {
			seen[f.Rule] = f.Verdict
		}
		if f.Verdict == finding.Fail && !slices.Contains(fails, f.Rule) {
			at := f.Defined
			if at.Filename == "" {
				at = run.At
			}
			run.Diags = append(run.Diags, diag.Errorf(diag.CodeRulesTest, &at, "Unexpected result of a rule", "The rule %q failed, and expect_failures does not contain it: %s", f.Rule, f.Message)...)
		}
	}
	expect := func(names []string, attr string, verdict finding.Verdict, what string) {
		for _, name := range names {
			if seen[name] != verdict {
				at := c.Attributes[attr].Expr.Range()
				run.Diags = append(run.Diags, diag.Errorf(diag.CodeRulesTest, &at, "Unexpected result of a rule", "The rule %q %s.", name, what)...)
			}
		}
	}
	expect(fails, "expect_failures", finding.Fail, "did not fail")
	expect(unknown, "expect_unknown", finding.Unknown, "is known")
}

// unit adds the subjects of a unit block.
func (t *tester) unit(u *Unit, b *hcl.Block) {
	c := t.content(b.Body, unitSchema)
	if meta := t.object(c, "meta"); meta != cty.NilVal {
		maps.Copy(u.Meta, meta.AsValueMap())
	}
	s := &subject.Subject{Kind: subject.Unit, Address: u.Name, Name: u.Name, At: b.DefRange, Meta: u.Meta, Nulls: true, Attrs: cty.EmptyObjectVal}
	if v := t.object(c, "attrs"); v != cty.NilVal {
		s.Attrs = v
	}
	s.Config = s.Attrs
	u.Subjects = append(u.Subjects, s)
	a := c.Attributes["dependencies"]
	if a == nil {
		return
	}
	names := t.texts(nil, a)
	needs := []cty.Value{}
	for _, to := range names {
		needs = append(needs, cty.StringVal(to))
		name := u.Name + " -> " + to
		u.Subjects = append(u.Subjects, &subject.Subject{
			Kind: subject.Edge, Address: name, Name: name, At: a.Expr.Range(), Attrs: cty.EmptyObjectVal, Config: cty.EmptyObjectVal,
			Meta: map[string]cty.Value{"address": cty.StringVal(name), "from": cty.StringVal(u.Name), "to": cty.StringVal(to)},
		})
	}
	u.Meta["dependencies"] = cty.TupleVal(needs)
}

// rules returns the names in a list of rules, such as [rule.tags]. It returns nil if there is none.
func (t *tester) rules(c *hcl.BodyContent, name string) []string {
	a := c.Attributes[name]
	if a == nil {
		return nil
	}
	items, diags := hcl.ExprList(a.Expr)
	t.ds = append(t.ds, diag.FromHCL(diags)...)
	out := []string{}
	for _, x := range items {
		ref, diags := hcl.AbsTraversalForExpr(x)
		got := ""
		if !diags.HasErrors() && len(ref) == 2 && ref.RootName() == "rule" {
			if step, ok := ref[1].(hcl.TraverseAttr); ok {
				got = step.Name
			}
		}
		if v, diags := x.Value(nil); got == "" && !diags.HasErrors() && value.IsText(v) {
			got = v.AsString()
		}
		if !slices.ContainsFunc(t.set.Rules, func(r *Rule) bool { return r.Name == got }) {
			t.invalid(x.Range(), "Each element of %q must be the name of a rule, such as rule.tags.", name)
			continue
		}
		out = append(out, got)
	}
	return out
}

// load adds the policy files that a test names and the set lacks.
func (t *tester) load(targets []string, at source.Range) {
	for _, target := range targets {
		base := path.Base(filepath.ToSlash(target))
		if !IsFile(target) || slices.ContainsFunc(t.set.files, func(f *file) bool { return f.base == base }) {
			continue
		}
		text, err := Text{}, fs.ErrNotExist
		if t.o.Target != nil {
			text, err = t.o.Target(target)
		}
		if err != nil {
			t.invalid(at, "The policy file %q cannot be read: %s.", target, diag.Reason(err))
			continue
		}
		more, ds := Parse([]Text{text}, t.sources)
		t.ds = append(t.ds, ds...)
		t.set = &Set{files: slices.Concat(t.set.files, more.files), Rules: slices.Concat(t.set.Rules, more.Rules)}
	}
}

// policyTests runs the tests of a file of Terraform's form.
func (t *tester) policyTests(ctx context.Context, c *hcl.BodyContent) {
	var targets []string
	inputs := map[string]cty.Value{}
	type test struct {
		s      *subject.Subject
		inputs map[string]cty.Value
		fails  bool
		skip   bool
	}
	var tests []test
	all := &Unit{Meta: map[string]cty.Value{"name": cty.StringVal("")}}
	for _, b := range c.Blocks {
		switch b.Type {
		case "policytest":
			conf := t.content(b.Body, policyTestConfSchema)
			if a := conf.Attributes["targets"]; a != nil {
				targets = t.texts(nil, a)
				t.load(targets, a.Expr.Range())
			}
			for _, p := range conf.Blocks.OfType("plugins") {
				t.unsupported(p.DefRange, "plugins", "Terrace runs no programs while it checks rules. Use the functions of the language.")
			}
		case "inputs":
			inputs = t.inputsOf(b)
		case "locals":
		default:
			m := t.content(b.Body, policyMockSchema)
			one := test{s: t.mock(b, m, true), fails: t.flag(m, "expect_failure", false), skip: t.flag(m, "skip", false)}
			for _, in := range m.Blocks {
				one.inputs = t.inputsOf(in)
			}
			all.Subjects = append(all.Subjects, one.s)
			tests = append(tests, one)
		}
	}
	if t.ds.HasErrors() {
		return
	}
	only := func(r *Rule) bool {
		return len(targets) == 0 || slices.ContainsFunc(targets, func(target string) bool {
			return path.Base(filepath.ToSlash(target)) == r.file.base || strings.HasSuffix(target, "/") || !IsFile(target)
		})
	}
	for _, one := range tests {
		if one.skip {
			continue
		}
		given := maps.Clone(inputs)
		maps.Copy(given, one.inputs)
		res := t.check(ctx, only, one.s, []*Unit{all}, given, true)
		run := &TestRun{Name: one.s.Address, At: one.s.At}
		t.result.Runs = append(t.result.Runs, run)
		var failed []*finding.Finding
		for _, f := range res.Findings {
			if f.Verdict == finding.Fail && f.Address == one.s.Address {
				failed = append(failed, f)
			}
		}
		slices.SortFunc(failed, func(a, b *finding.Finding) int { return cmp.Compare(a.Rule, b.Rule) })
		switch {
		case one.fails && len(failed) == 0:
			run.Diags = append(res.Diags, diag.Errorf(diag.CodeRulesTest, &run.At, "Unexpected result of a rule", "No policy failed for %s, and expect_failure is true.", one.s.Address)...)
		case !one.fails:
			run.Diags = res.Diags
			for _, f := range failed {
				run.Diags = append(run.Diags, diag.Errorf(diag.CodeRulesTest, &run.At, "Unexpected result of a rule", "The policy %q failed: %s", f.Rule, f.Message)...)
			}
		}
	}
}
